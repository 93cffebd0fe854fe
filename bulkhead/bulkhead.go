// Package bulkhead limits how many calls run at once, so that one slow dependency cannot take up every goroutine and
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

// Bulkhead is a [policy.Policy] that lets a limited number of calls run at once. A call beyond that waits in a bounded queue,
// if Config.Queue allows one, or is refused with an error that matches [ErrFull]. Most callers want [Bulkhead.Do].
//
// A call holds its permit until fn returns, panics or calls [runtime.Goexit], even if its context ends before: work that goes
// on still burdens the dependency.
//
// Create one bulkhead per dependency with [New] and share it; it is safe for concurrent use.
type Bulkhead struct {
	*leaf
	name     string
	cfg      Config
	full     refusals
	observer observe.Observer
	probe    observe.Probe

	mu    sync.Mutex // held for bookkeeping only, never while fn, an observer or a context's method runs
	max   int        // guarded by mu
	queue queue      // guarded by mu
}

// leaf is what changes with every call, on one cache line. It does not refer to the Bulkhead, so an observer that keeps the
// counts does not keep the Bulkhead alive.
type leaf struct {
	permits permits
	counts  [len(shadowCounts)]atomic.Int64
	_       [64 - 8 - 8*len(shadowCounts)]byte
}

// New returns a bulkhead. name is what it reports under: usually the name of the dependency. New panics with the error of
// [Config.Validate] if cfg is not valid.
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

// Do runs fn with a permit and returns fn's error. If there is no permit for it, fn does not run and Do returns a
// *[policy.RejectedError] that matches [ErrFull]. If ctx ends while the call waits, Do returns ctx's error.
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

// DoAt is Do for a pipeline, which has found ctx not done. It ignores the instant: taking a free permit needs no clock.
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

// Acquire takes a permit for work that does not fit in a function, such as a stream. It waits as [Bulkhead.Do] does and
// returns the same errors. release gives the permit back and must be called exactly once: a second call panics, without
// giving back another call's permit. With an error, release does nothing; it is never nil.
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

// Resize changes Config.Max to n. If that is more, waiting calls start; if it is less, running calls finish, and none starts
// until fewer than n run. Resize panics if n is not valid for Config.Max.
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

// String returns bulkhead(name).
func (b *Bulkhead) String() string { return "bulkhead(" + b.name + ")" }

// InUse reports whether calls run or wait. A [policy.Group] then keeps the bulkhead, since a new one in its place would not
// count them.
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
