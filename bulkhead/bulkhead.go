// Package bulkhead limits how many calls run at once, so that one slow dependency cannot take every goroutine and
// connection of a service.
package bulkhead

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// Bulkhead is a [policy.Policy] that lets a number of calls run at once. Those beyond it wait in a bounded queue, if there
// is one, or are refused with [ErrFull]. Most callers want [Bulkhead.Do].
//
// A call holds its permit until fn returns, also when its context has ended before: work that goes on still burdens the
// dependency. A panic in fn and [runtime.Goexit] give the permit back.
//
// Make one for each dependency and share it. It is safe for concurrent use; make it with [New].
type Bulkhead struct {
	*leaf
	name     string
	cfg      Config
	full     refusals
	observer observe.Observer
	probe    observe.Probe

	mu    sync.Mutex // bookkeeping only: nothing is run, told or waited for under it
	max   int        // guarded by mu
	queue queue      // guarded by mu
}

// leaf is what changes with every call, on one cache line. It leads nowhere, so that an observer may keep the counts.
type leaf struct {
	permits permits
	counts  [len(shadowCounts)]atomic.Int64
	_       [64 - 8 - 8*len(shadowCounts)]byte
}

// New returns a bulkhead that reports under name. It panics if cfg is not valid.
func New(name string, cfg Config) *Bulkhead {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	if cfg.Observer == nil {
		cfg.Observer = otelx.Default()
	}
	b := &Bulkhead{leaf: &leaf{}, name: name, cfg: cfg, full: newRefusals(name, cfg), observer: cfg.Observer, max: cfg.Max}
	b.permits.add(cfg.Max)
	b.probe = b.attach()
	return b
}

// Do runs fn while it holds a permit. It returns fn's error, a [policy.RejectedError] that matches [ErrFull] if there was
// no permit for fn, or the context's error if that ended before.
func (b *Bulkhead) Do(ctx context.Context, fn policy.Func) error {
	b.check("Do", ctx)
	if fn == nil {
		panic("bulkhead: Do of " + b.name + ": nil fn")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return b.DoAt(ctx, 0, fn)
}

// DoAt is Do under a context that is not done. It has no use for the instant: a free permit needs no clock.
func (b *Bulkhead) DoAt(ctx context.Context, _ call.Instant, fn policy.Func) error {
	waited, err := b.acquire(ctx)
	if err != nil {
		return err
	}
	defer b.release()
	if waited {
		ctx = call.Restart(ctx)
	}
	return fn(ctx)
}

// Acquire takes a permit as Do does, for work that is not one function: a stream, say. release gives it back and must be
// called once: a second time panics, and does no harm to others. After an error, release does nothing; it is never nil.
func (b *Bulkhead) Acquire(ctx context.Context) (release func(), err error) {
	b.check("Acquire", ctx)
	if err := ctx.Err(); err != nil {
		return nothing, err
	}
	if _, err := b.acquire(ctx); err != nil {
		return nothing, err
	}
	var released atomic.Bool
	return func() {
		if released.Swap(true) {
			panic("bulkhead: a permit of " + b.name + " was released twice")
		}
		b.release()
	}, nil
}

func nothing() {}

// Resize sets how many calls run at once. Raised, it lets waiting calls start; lowered, it lets the running ones finish and
// starts none until fewer than n run. It panics unless n is one that Config.Max could have.
func (b *Bulkhead) Resize(n int) {
	if n < 1 || n > most {
		panic("bulkhead: Resize of " + b.name + ": n is " + strconv.Itoa(n) + ", must be from 1 to " + strconv.Itoa(most))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.permits.add(n - b.max)
	b.max = n
	b.handOverLocked()
	b.queue.pace.restart()
}

// Name returns the bulkhead's name.
func (b *Bulkhead) Name() string { return b.name }

// String returns the bulkhead with its name.
func (b *Bulkhead) String() string { return "bulkhead(" + b.name + ")" }

// InUse reports whether a permit is held or waited for.
func (b *Bulkhead) InUse() bool {
	s := b.Stats()
	return s.Running > 0 || s.Waiting > 0
}

// acquire takes a permit and reports whether it had to wait for one.
func (b *Bulkhead) acquire(ctx context.Context) (waited bool, err error) {
	if b.permits.take() {
		b.counts[acquired].Add(1)
		return false, nil
	}
	switch {
	case b.cfg.Shadow:
		b.pass()
		return false, nil
	case b.cfg.Queue == 0:
		return false, b.refuse(ctx, rejected, b.full.atOnce)
	}
	return b.wait(ctx)
}

// pass lets a call run without a free permit, in shadow mode.
func (b *Bulkhead) pass() {
	if b.permits.overdraw() > b.cfg.Queue {
		b.counts[wouldReject].Add(1)
	}
	b.counts[acquired].Add(1)
}

func (b *Bulkhead) release() {
	if b.permits.add(1) {
		b.mu.Lock()
		b.handOverLocked()
		b.mu.Unlock()
	}
}

func (b *Bulkhead) check(what string, ctx context.Context) {
	if ctx == nil {
		panic("bulkhead: " + what + " of " + b.name + ": nil context")
	}
}
