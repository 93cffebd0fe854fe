// Package ratelimit limits how many calls start per second, by a token bucket.
package ratelimit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// Limiter is a [policy.Policy] that lets calls start at a rate, in bursts of a limited size. A call that finds no token waits
// for one, in the order of arrival and at most for Config.MaxWait, or is refused with an error that matches [ErrLimited] and
// says when to try again. Most callers want [Limiter.Do].
//
// A call takes its token when it starts: a call that gives up waiting takes none. The token is then spent, however the call
// ends.
//
// Create one limiter per limit with [New] and share it; it is safe for concurrent use.
type Limiter struct {
	name     string
	cfg      Config
	observer observe.Observer
	probe    observe.Probe
	counts   []atomic.Int64 // of shadowCounts
	minSleep time.Duration  // between two looks of a waiting call at a Config.Clock, which may stand still

	mu      sync.Mutex            // held for bookkeeping and for reading the clock, never while fn or an observer runs
	bucket  bucket                // guarded by mu
	queue   queue                 // guarded by mu
	refusal *policy.RejectedError // of the next refusals, until something changes; nil before the first; guarded by mu
}

// New returns a limiter with a full burst. name is what it reports under. New panics with the error of [Config.Validate] if
// cfg is not valid.
func New(name string, cfg Config) *Limiter {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	minSleep := time.Millisecond
	if cfg.Clock == nil {
		cfg.Clock, minSleep = time.Now, 0
	}
	if cfg.Observer == nil {
		cfg.Observer = otelx.Default()
	}
	l := &Limiter{
		name:     name,
		cfg:      cfg,
		observer: cfg.Observer,
		counts:   make([]atomic.Int64, len(shadowCounts)),
		minSleep: minSleep,
		bucket:   newBucket(cfg.Rate, cfg.burst(cfg.Rate)),
	}
	l.probe = l.attach()
	return l
}

// Do runs fn once there is a token for it and returns fn's error. If there is no token in time, fn does not run and Do
// returns a *[policy.RejectedError] that matches [ErrLimited]; its RetryAt is when there will be a token, zero if never. If
// ctx ends while the call waits, Do returns ctx's error.
func (l *Limiter) Do(ctx context.Context, fn policy.Func) error {
	l.check("Do", ctx)
	if fn == nil {
		panic("ratelimit: Do of " + l.name + ": nil fn")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.DoAt(ctx, 0, fn)
}

// DoAt is Do for a pipeline, which has found ctx not done. It ignores the instant: the clock is read under the lock.
func (l *Limiter) DoAt(ctx context.Context, _ call.Instant, fn policy.Func) error {
	waited, err := l.admit(ctx)
	if err != nil {
		return err
	}
	if waited {
		ctx = call.Restart(ctx)
	}
	return fn(ctx)
}

// Allow takes a token for work that does not fit in a function. Unlike the Allow of x/time/rate it waits, as [Limiter.Do]
// does, and it returns the same errors; nil means that a token was taken.
func (l *Limiter) Allow(ctx context.Context) error {
	l.check("Allow", ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := l.admit(ctx)
	return err
}

// SetRate changes Config.Rate to r, in calls per second. It applies to waiting calls too: one that would wait too long at
// the new rate is refused now. The limiter keeps its tokens. A Burst that was set in Config stays; the default one changes
// with the rate. SetRate panics if r is not valid for Config.Rate.
func (l *Limiter) SetRate(r float64) {
	if !validRate(r) {
		panic(fmt.Sprintf("ratelimit: SetRate of %s: rate is %v, must be 0 (none) or more, or +Inf (no limit)", l.name, r))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	clock, now := l.readLocked()
	l.serveShadowedLocked(now)
	l.bucket.set(now, r, l.cfg.burst(r))
	l.reviseLocked(clock, now)
}

// Name returns the limiter's name.
func (l *Limiter) Name() string { return l.name }

// String returns ratelimit(name).
func (l *Limiter) String() string { return "ratelimit(" + l.name + ")" }

// InUse reports whether tokens are missing or calls wait. A [policy.Group] then keeps the limiter, since a new one in its
// place would start with a full burst.
func (l *Limiter) InUse() bool {
	s := l.Stats()
	return s.Waiting > 0 || s.Available < float64(s.Burst)
}

// admit takes a token and reports whether it had to wait for one.
func (l *Limiter) admit(ctx context.Context) (waited bool, err error) {
	if l.cfg.Shadow {
		l.rehearse(ctx)
		return false, nil
	}
	l.mu.Lock()
	clock, now := l.readLocked()
	if l.takeLocked(now) {
		l.mu.Unlock()
		l.counts[acquired].Add(1)
		return false, nil
	}
	if l.cfg.MaxWait == 0 {
		err := l.refusalLocked(now)
		l.mu.Unlock()
		return false, l.refuse(ctx, err, clock)
	}
	l.mu.Unlock()
	return l.wait(ctx)
}

// readLocked reads the clock. It returns the reading and the bucket's time.
func (l *Limiter) readLocked() (clock, now time.Time) {
	clock = l.cfg.Clock()
	now, anew := l.bucket.show(clock)
	if anew {
		l.reviseLocked(clock, now)
	}
	return clock, now
}

// takeLocked takes a token, if there is one that no call waits for.
func (l *Limiter) takeLocked(now time.Time) bool {
	if l.queue.len() > 0 || !l.bucket.take(now) {
		return false
	}
	l.refusal = nil
	return true
}

func (l *Limiter) check(what string, ctx context.Context) {
	if ctx == nil {
		panic("ratelimit: " + what + " of " + l.name + ": nil context")
	}
}
