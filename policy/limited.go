package policy

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/internal/cancelkey"
	"github.com/switchgear-go/switchgear/internal/instant"
)

// limited is the context of a Timeout. It behaves like one of context.WithDeadlineCause but is cheaper. Most of the cost of
// that is setting a timer and registering with the parent, which only matters to a call that waits for Done. So limited makes
// a real context, and from then on leaves everything to it, only when Done is called, which every derived context does, or
// when Err finds that the limit has passed or the parent has ended. Until then it has not ended, and needs no more than Err.
type limited struct {
	context.Context // the parent

	end      time.Duration // the instant of the limit
	cause    TimeoutError  // what context.Cause returns after the limit
	deadline atomic.Pointer[time.Time]
	armed    atomic.Pointer[armed]
}

// armed is the real context behind a limited one.
type armed struct {
	context.Context
	cancel context.CancelFunc
}

// released is the real context of every call that has returned without needing one of its own: it is cancelled.
var released = func() *armed {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &armed{ctx, cancel}
}()

func (c *limited) Done() <-chan struct{} { return c.arm().Done() }

func (c *limited) Err() error {
	if real := c.armed.Load(); real != nil {
		return real.Err()
	}
	if c.Context.Err() == nil && instant.Now() < c.end {
		return nil
	}
	return c.arm().Err()
}

func (c *limited) Deadline() (time.Time, bool) {
	own := c.limit()
	if outer, ok := c.Context.Deadline(); ok && outer.Before(own) {
		return outer, true
	}
	return own, true
}

func (c *limited) Value(key any) any {
	if key == cancelkey.Key {
		_ = c.Err() // arms c if it has ended
		if real := c.armed.Load(); real != nil {
			return real.Value(key)
		}
	}
	return c.Context.Value(key)
}

// Life returns the parent and the limit's instant.
func (c *limited) Life() (context.Context, call.Instant) { return c.Context, call.Instant(c.end) }

// limit returns the time of the limit. It returns the same time at each call, although the wall clock may be set.
func (c *limited) limit() time.Time {
	if at := c.deadline.Load(); at != nil {
		return *at
	}
	at := instant.Time(c.end)
	if !c.deadline.CompareAndSwap(nil, &at) {
		return *c.deadline.Load()
	}
	return at
}

// arm returns the real context, and makes it if there is none. It holds no lock, since it calls methods of the parent.
func (c *limited) arm() *armed {
	if real := c.armed.Load(); real != nil {
		return real
	}
	ctx, cancel := context.WithDeadlineCause(c.Context, c.limit(), &c.cause)
	real := &armed{ctx, cancel}
	if !c.armed.CompareAndSwap(nil, real) {
		cancel()
		return c.armed.Load()
	}
	return real
}

// release ends the context, as its CancelFunc would, and reports whether it had ended by itself.
func (c *limited) release() (ended bool) {
	ended = c.Err() != nil
	if !c.armed.CompareAndSwap(nil, released) {
		c.armed.Load().cancel()
	}
	return ended
}
