package breaker

import (
	"context"
	"sync/atomic"
)

// Permit is the leave to make one call, which ends with [Permit.Done]. It may be passed between goroutines.
type Permit struct {
	breaker *Breaker
	ctx     context.Context // the one that Done's result is judged under
	permit  permit
	done    atomic.Bool
}

// Allow asks for leave to make one call, for work that is no function: a stream, a callback. Where [Breaker.Do] would have
// refused, it returns that error and no permit. Every permit needs a [Permit.Done]: a probe whose permit is forgotten fails
// when ProbeTimeout has passed, and a forgotten call that SlowCall watches counts as slow.
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

// Done ends the call with its result, as fn's would be in [Breaker.Do]. The first call counts; later ones do nothing.
func (p *Permit) Done(err error) {
	if p.done.Swap(true) {
		return
	}
	r := unreturned
	r.err = err
	defer func() { p.breaker.settle(p.ctx, &p.permit, &r) }()
	p.breaker.judge(p.ctx, &r)
}
