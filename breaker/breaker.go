// Package breaker stops calls to a dependency that fails, until it has recovered.
//
// A [Breaker] watches how calls end. When too many fail it opens: calls are refused at once, with [ErrCircuitOpen], so that
// callers get their answer without waiting and the dependency gets the quiet it needs. After a cooldown it lets a single
// call through as a probe, whose success closes it and whose failure opens it for longer.
//
//	payments := breaker.New("payments-api", breaker.Config{}) // once, at start
//	...
//	err := payments.Do(ctx, func(ctx context.Context) error {
//		return client.Charge(ctx, order)
//	})
//
// Make one for each dependency and share it among all who call that: it learns from every call and costs none an
// allocation. What counts against a dependency is for [policy.Classify] to say, or for Config.Classify: a caller who gives
// up says nothing about it, and an answer marked [policy.Healthy] speaks for it.
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

// Breaker is a circuit breaker: a [policy.Policy] that most callers put in a pipeline or call through [Breaker.Do]. It is
// safe for concurrent use. No lock is held while a call runs or an observer is told, and nothing runs between calls: what a
// cooldown's end or a probe's timeout changes, whoever looks next finds changed, as of that instant.
//
// State changes are told to the observer in order, one at a time, and before the call that set them off returns, unless
// another call is telling already. An observer that panics does so in the call that was telling, whose result and slot are
// settled by then; what it left untold, the next call tells.
type Breaker struct {
	name   string
	config Config // resolved
	clock  clock
	counts []atomic.Int64 // see table; the observer reads them after the breaker is gone

	current atomic.Pointer[generation] // what admits calls; written under mu
	owed    atomic.Bool                // there are changes to tell and nobody is telling; written under mu

	// Under mu: bookkeeping, and reading the clock. Never fn, an observer, or another function of the user's.
	mu            sync.Mutex
	calls         calls          // the window; guarded by mu, as is all that follows
	failures      *window.Latest // nil where only the counts in calls matter
	consecutive   int
	lastFailure   error
	lastFailureAt time.Duration
	failed        bool // lastFailure means something
	openings      int  // since it was last at ease; the next one is this reopening
	lastWait      time.Duration
	spent         [states]time.Duration // in each state, without the present stay
	used          [states]bool          // states that are reported
	queue         []change              // to be told
	telling       bool
}

// calls is a window of calls.
type calls interface {
	Add(now time.Duration, failed, slow bool)
	At(now time.Duration) window.Counts
	Clear(now time.Duration)
}

var (
	_ policy.Policy = (*Breaker)(nil)
	_ call.Timed    = (*Breaker)(nil)
)

// New returns a closed breaker for the dependency of that name, which it reports under. It panics with [Config.Validate]'s
// error if there is one.
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

// Do runs fn unless the breaker refuses it; then it returns a *[policy.RejectedError] that matches [ErrCircuitOpen]. What fn
// returned is judged by Config.Classify. A panic in fn, or [runtime.Goexit], is a failure and goes on. If ctx is done
// already, Do returns its error and nothing else happens.
func (b *Breaker) Do(ctx context.Context, fn policy.Func) error {
	b.check("Do", ctx)
	if fn == nil {
		panic("breaker: " + b.name + ": Do with a nil fn")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if g := b.current.Load(); g.free.Load() { // it needs no clock
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

// run runs fn and settles p, however fn ends.
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
