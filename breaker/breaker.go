// Package breaker implements a circuit breaker: it stops calls to a failing dependency until the dependency has recovered.
//
// A [Breaker] watches how calls end. When too many fail it opens: calls are refused at once with [ErrCircuitOpen], so
// callers do not wait for a failure and the dependency gets a rest. After a cooldown the breaker is half-open and lets a
// single call through as a probe. If the probe succeeds the breaker closes; if it fails the breaker opens again, for longer.
//
//	payments := breaker.New("payments-api", breaker.Config{}) // once, at start
//	...
//	err := payments.Do(ctx, func(ctx context.Context) error {
//		return client.Charge(ctx, order)
//	})
//
// Create one breaker per dependency and share it among all its callers: it learns from every call. A call allocates
// nothing. [policy.Classify], or Config.Classify, decides what counts as a failure: by default every error does, except
// that a call whose caller gave up is ignored and an error marked [policy.Healthy] is a success.
package breaker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/internal/window"
	"github.com/switchgear-go/switchgear/policy"
)

// Breaker is a circuit breaker: a [policy.Policy] to put in a pipeline, or to call through [Breaker.Do]. Create it with
// [New]; it is safe for concurrent use. No lock is held while a call or an observer runs.
//
// A breaker has no timer and no goroutine. A cooldown or a probe's timeout that has ended takes effect as of that instant,
// however late the next call or read finds it.
//
// State changes are reported to the observer one at a time and in order, before the call that caused them returns; if
// another call is reporting at that moment, that one reports them. If an observer panics, the panic leaves through the call
// that was reporting, after its result was recorded and its slot freed; the next call reports what is left.
type Breaker struct {
	name   string
	config Config // resolved
	clock  clock
	counts []atomic.Int64 // see table; the observer reads them after the breaker is gone

	current atomic.Pointer[generation] // what admits calls; written under mu
	owed    atomic.Bool                // queue holds changes and nobody is telling them; written under mu

	// mu is held for bookkeeping and for reading the clock, never while fn, an observer, Classify or TripOn runs.
	mu            sync.Mutex
	calls         calls          // the window; guarded by mu, as is all that follows
	failures      *window.Latest // the instants of failures, for Failures in a window of time; else nil
	consecutive   int            // failures in a row
	lastFailure   error
	lastFailureAt time.Duration
	failed        bool                  // there was a failure: lastFailure and lastFailureAt are set
	openings      int                   // openings that are not forgotten; the next one is the reopening of that number
	lastWait      time.Duration         // the cooldown of the latest opening
	spent         [states]time.Duration // in each state, without the present stay
	used          [states]bool          // states whose rows are reported
	queue         []change              // changes of state that the observer has yet to be told
	telling       bool                  // some goroutine is telling
}

// calls is a window of calls: a [window.Sliding] or a [window.Last].
type calls interface {
	Add(now time.Duration, failed, slow bool)
	At(now time.Duration) window.Counts
	Clear(now time.Duration)
}

var (
	_ policy.Policy = (*Breaker)(nil)
	_ call.Timed    = (*Breaker)(nil)
)

// New returns a closed breaker. name is what it reports under: usually the name of the dependency. New panics with the
// error of [Config.Validate] if cfg is not valid.
func New(name string, cfg Config) *Breaker {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	b := &Breaker{name: name, config: cfg.resolved(), counts: make([]atomic.Int64, table.counts)}
	b.clock.set(cfg.Clock)
	now := b.clock.now()
	if b.config.Calls > 0 {
		b.calls = window.NewLast(b.config.Calls)
	} else {
		b.calls = window.NewSliding(b.config.Window, now)
		if b.config.Failures > 0 {
			b.failures = window.NewLatest(b.config.Failures)
		}
	}
	b.startCounts()
	b.current.Store(b.closedSince(now))
	b.attach()
	return b
}

// Do runs fn and returns its error, which Config.Classify judges. If the breaker refuses the call, fn does not run and Do
// returns a *[policy.RejectedError] that matches [ErrCircuitOpen]. If fn panics or calls [runtime.Goexit], that counts as a
// failure and continues to Do's caller. If ctx is already done, Do returns ctx's error and counts nothing.
func (b *Breaker) Do(ctx context.Context, fn policy.Func) error {
	b.check("Do", ctx)
	if fn == nil {
		panic("breaker: " + b.name + ": Do with a nil fn")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if g := b.current.Load(); g.free.Load() { // saves reading the clock
		return b.run(ctx, permit{gen: g}, fn)
	}
	return b.guard(ctx, b.clock.now(), fn)
}

// DoAt is Do for a pipeline, which has read the clock and found ctx not done.
func (b *Breaker) DoAt(ctx context.Context, now call.Instant, fn policy.Func) error {
	if g := b.current.Load(); g.free.Load() {
		return b.run(ctx, permit{gen: g}, fn)
	}
	at := time.Duration(now)
	if b.config.Clock != nil {
		at = b.clock.now()
	}
	return b.guard(ctx, at, fn)
}

func (b *Breaker) guard(ctx context.Context, now time.Duration, fn policy.Func) error {
	p, refusal := b.admit(ctx, now)
	if refusal != nil {
		return refusal
	}
	return b.run(ctx, p, fn)
}

// run runs fn and settles p, whether fn returns, panics or exits.
func (b *Breaker) run(ctx context.Context, p permit, fn policy.Func) error {
	r := unreturned
	defer func() { b.settle(ctx, &p, &r) }()
	err := fn(ctx)
	r.err = err
	b.judge(ctx, &r)
	return err
}

// Name returns the breaker's name.
func (b *Breaker) Name() string { return b.name }

// String returns breaker(name).
func (b *Breaker) String() string { return "breaker(" + b.name + ")" }

func (b *Breaker) check(method string, ctx context.Context) {
	if ctx == nil {
		panic("breaker: " + b.name + ": " + method + " with a nil context")
	}
}
