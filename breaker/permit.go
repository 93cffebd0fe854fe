package breaker

import (
	"context"
	"sync/atomic"
)

// Permit allows one call, from [Breaker.Allow] to [Permit.Done]. It may be passed between goroutines.
type Permit struct {
	breaker *Breaker
	ctx     context.Context // of Allow, for Classify
	permit  permit
	done    atomic.Bool
}

// Allow admits one call that does not fit in a function, such as a stream or a callback. If the breaker refuses, Allow
// returns a nil Permit and the error that [Breaker.Do] would return; if ctx is done, ctx's error.
//
// The caller must end every permit with [Permit.Done]. If it does not, a probe fails after ProbeTimeout, and a call that
// SlowCall watches counts as slow until the state changes.
func (b *Breaker) Allow(ctx context.Context) (*Permit, error) {
	b.check("Allow", ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	g := b.current.Load()
	if g.free.Load() {
		return &Permit{breaker: b, ctx: ctx, permit: permit{gen: g}}, nil
	}
	p, err := b.admit(ctx, b.clock.now())
	if err != nil {
		return nil, err
	}
	return &Permit{breaker: b, ctx: ctx, permit: p}, nil
}

// Done ends the call. err is its result, nil for success, which is judged as that of fn in [Breaker.Do]. Only the first
// Done counts; later ones do nothing.
func (p *Permit) Done(err error) {
	if p.done.Swap(true) {
		return
	}
	r := unreturned
	r.err = err
	defer func() { p.breaker.settle(p.ctx, &p.permit, &r) }()
	p.breaker.judge(p.ctx, &r)
}
