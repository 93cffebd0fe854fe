// Package ratelimit limits how many calls start per second.
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

// Limiter is a [policy.Policy] that lets calls start at a rate, with bursts up to a number. Those beyond it wait for a token
// as far as Config.MaxWait allows, in the order of arrival, or are refused with [ErrLimited] and told when to come back. Most
// callers want [Limiter.Do].
//
// A call takes its token in the instant it starts, so one that gave up waiting costs none. A token is spent then: it does not
// come back, whatever becomes of the call.
//
// Make one for each limit and share it. It is safe for concurrent use; make it with [New].
type Limiter struct {
	name     string
	cfg      Config
	observer observe.Observer
	probe    observe.Probe
	counts   []atomic.Int64 // of shadowCounts
	minSleep time.Duration  // keeps a call from looking all the time at a clock that stands still

	mu      sync.Mutex            // bookkeeping only: nothing is run, told or waited for under it
	bucket  bucket                // guarded by mu
	queue   queue                 // guarded by mu
	refusal *policy.RejectedError // for all who are refused while nothing changes; nil if there is none yet; guarded by mu
}

// New returns a limiter with a full burst that reports under name. It panics if cfg is not valid.
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

// Do runs fn once it has a token. It returns fn's error, a [policy.RejectedError] that matches [ErrLimited] if there was no
// token for fn in time, or the context's error if that ended before. A refusal's RetryAt is when a token will be there: zero
// if none ever will.
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

// DoAt is Do under a context that is not done. It has no use for the instant: tokens come by the clock that is read under the
// lock.
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

// Allow takes a token as Do does, for work that is not one function. It waits as Do does: nil is a token, an error none.
func (l *Limiter) Allow(ctx context.Context) error {
	l.check("Allow", ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := l.admit(ctx)
	return err
}

// SetRate changes the rate from now on, for those who wait too: one that would wait too long at the new rate is refused now.
// The tokens stay. A burst that Config gave stays, else it follows. SetRate panics unless r is one that Config.Rate could be.
func (l *Limiter) SetRate(r float64) {
	if !validRate(r) {
		panic(fmt.Sprintf("ratelimit: SetRate of %s: rate is %v, must be 0 (none) or more, or +Inf (no limit)", l.name, r))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	clock, now := l.readLocked()
	l.serveGhostsLocked(now)
	l.bucket.set(now, r, l.cfg.burst(r))
	l.reviseLocked(clock, now)
}

// Name returns the limiter's name.
func (l *Limiter) Name() string { return l.name }

// String returns the limiter with its name.
func (l *Limiter) String() string { return "ratelimit(" + l.name + ")" }

// InUse reports whether tokens are missing or waited for. A limiter that is dropped while they are and made again would let
// a burst too many through.
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

// readLocked reads the clock. It returns what that shows, and the bucket's time.
func (l *Limiter) readLocked() (clock, now time.Time) {
	clock = l.cfg.Clock()
	now, anew := l.bucket.show(clock)
	if anew {
		l.reviseLocked(clock, now)
	}
	return clock, now
}

// takeLocked takes a token that nobody waits for.
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
