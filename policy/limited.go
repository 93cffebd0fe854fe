package policy

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/internal/cancelkey"
	"github.com/switchgear-go/switchgear/internal/instant"
)

// limited is the context of a Timeout. It equals one of context.WithDeadlineCause but for its price: setting a timer and
// joining the parent's children are most of what that costs, and most calls end without anyone having waited for Done. So a
// real context is made only when Done is asked for (anything that derives from this one asks), or once something has ended;
// from then on the real one decides everything. Until then there is nothing to decide: nothing has ended.
type limited struct {
	context.Context // the parent

	end      time.Duration // the limit's instant
	cause    TimeoutError  // what Cause tells when the limit ended it
	deadline atomic.Pointer[time.Time]
	armed    atomic.Pointer[armed]
}

// armed is the real context of a limited one.
type armed struct {
	context.Context
	cancel context.CancelFunc
}

// released stands for the real context of calls that returned before anyone needed one.
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
		_ = c.Err() // what has ended is armed
		if real := c.armed.Load(); real != nil {
			return real.Value(key)
		}
	}
	return c.Context.Value(key)
}

// Life returns the parent and the limit's instant.
func (c *limited) Life() (context.Context, call.Instant) { return c.Context, call.Instant(c.end) }

// limit returns the limit as a time, the same one every time.
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

// arm returns the real context. It holds no lock, since it calls methods of the parent.
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
