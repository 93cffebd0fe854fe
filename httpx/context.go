package httpx

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/internal/cancelkey"
	"github.com/switchgear-go/switchgear/internal/instant"
)

// sendContext is the context of one send. It has the values of the attempt that sends. It ends with the attempt until the
// header of the response has come; from then on, since the policies are through with the attempt while the body is still to
// be read, it ends with the caller's context.
type sendContext struct {
	context.Context // the attempt's
	caller          context.Context
	done            chan struct{}
	outlived        atomic.Bool // the attempt does not matter any more

	timer       *time.Timer // of the attempt's end; nil if that is not known
	stopAttempt func() bool // then stops waiting for it
	stopCaller  func() bool // stops waiting for the caller's end; nil before that began, and where it never comes

	mu      sync.Mutex
	err     error     // guarded by mu
	waiters *waiter   // guarded by mu
	room    [1]waiter // guarded by mu: for the only one there is as a rule
	used    bool      // guarded by mu: room is
}

// start begins the context of a send that the attempt makes for the caller. It reports whether the send needs it: an attempt
// that does not end before the caller does well by itself. And it reports whether runs are known not to overlap.
func (c *sendContext) start(caller, attempt context.Context) (needed, alone bool) {
	end, alone := call.Life(attempt, caller)
	if alone && end == call.Never || !alone && attempt.Done() == caller.Done() {
		return false, alone
	}
	c.Context, c.caller, c.done = attempt, caller, make(chan struct{})
	if alone { // one timer, and the attempt's contexts need none
		c.timer = time.AfterFunc(time.Duration(end)-instant.Now(), c.attemptEnded)
		c.watchCaller()
	} else {
		c.stopAttempt = context.AfterFunc(attempt, c.attemptEnded)
	}
	return true, alone
}

// outlive lets the context live on without the attempt; it reports false if the attempt has ended already.
func (c *sendContext) outlive() bool {
	if !c.leaveAttempt() {
		return false
	}
	c.outlived.Store(true)
	if c.stopCaller == nil {
		c.watchCaller()
	}
	return true
}

// leaveAttempt stops waiting for the attempt's end; it reports false if that has come.
func (c *sendContext) leaveAttempt() bool {
	if c.timer != nil {
		return c.timer.Stop()
	}
	return c.stopAttempt()
}

func (c *sendContext) watchCaller() {
	if c.caller.Done() != nil {
		c.stopCaller = context.AfterFunc(c.caller, c.callerEnded)
	}
}

// release stops waiting for ends of others.
func (c *sendContext) release() {
	if !c.outlived.Load() {
		c.leaveAttempt()
	}
	if c.stopCaller != nil {
		c.stopCaller()
	}
}

// attemptEnded ends the context with that of the attempt, and not before: policies ask theirs whose fault an error is.
func (c *sendContext) attemptEnded() {
	<-c.Context.Done()
	c.end(c.Context.Err())
}

func (c *sendContext) callerEnded() {
	if !c.outlived.Load() {
		<-c.Context.Done() // derives from it
	}
	c.end(c.caller.Err())
}

// end ends the context, once.
func (c *sendContext) end(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	w := c.waiters
	c.waiters = nil
	close(c.done)
	c.mu.Unlock()
	for ; w != nil; w = w.next {
		go w.run()
	}
}

// Deadline returns the caller's: that of the attempt ends with it.
func (c *sendContext) Deadline() (time.Time, bool) { return c.caller.Deadline() }

func (c *sendContext) Done() <-chan struct{} { return c.done }

func (c *sendContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *sendContext) Value(key any) any {
	if key == cancelkey.Key && c.outlived.Load() {
		return c.caller.Value(key)
	}
	return c.Context.Value(key)
}

// AfterFunc saves package context a goroutine for each context that derives from this one, as net/http's does.
func (c *sendContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	w := &c.room[0]
	if c.used {
		w = new(waiter)
	}
	c.used = true
	w.ctx, w.run, w.next = c, f, c.waiters
	c.waiters = w
	return w.stop
}

// waiter is one function that runs when a sendContext ends.
type waiter struct {
	ctx  *sendContext
	run  func()
	next *waiter // guarded by ctx.mu
}

func (w *waiter) stop() bool {
	w.ctx.mu.Lock()
	defer w.ctx.mu.Unlock()
	for at := &w.ctx.waiters; *at != nil; at = &(*at).next {
		if *at == w {
			*at = w.next
			return true
		}
	}
	return false
}
