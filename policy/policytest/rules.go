package policytest

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/switchgear-go/switchgear/policy"
)

var rules = []rule{
	{name: "a call gives up waiting for another when its context ends", run: waitsNotForALock, real: true, first: true},
	{name: "no lock is left behind", run: leavesNoLock, real: true, first: true},
	{name: "nothing is left behind", run: leavesNothing, first: true},
	{name: "fn runs under a context derived from the caller's", run: derivesContexts, first: true},
	{name: "fn runs once at a time, and not after Do", run: runsInOrder, first: true},
	{name: "a done context runs nothing", run: heedsDoneContexts},
	{name: "errors keep their identity", run: keepsErrors},
	{name: "values keep their identity", run: keepsValues},
	{name: "a panic reaches the caller", run: passesPanics},
	{name: "Goexit ends the caller's goroutine", run: passesGoexit},
	{name: "a cancelled call returns as soon as fn has", run: heedsCancellation},
	{name: "calls are not mixed up", run: keepsCallsApart},
	{name: "what a call takes it gives back", run: givesBack},
}

// settling is how much real time a call gets to show that it has to wait for another. Only one that waits takes it.
const settling = 50 * time.Millisecond

func waitsNotForALock(c *checker) {
	p := c.policy()
	entered, release := make(chan struct{}, 1), make(chan struct{})
	first := start(context.Background(), p, func(context.Context) error {
		select {
		case entered <- struct{}{}:
		default:
		}
		<-release
		return nil
	})
	defer func() {
		close(release)
		c.await(first, "the first call")
	}()
	select {
	case <-entered:
	case e := <-first:
		c.fault("the first call of a new policy %v and did not run fn", e)
		first = already(e)
		return
	case <-time.After(c.patience):
		c.fault("the first call of a new policy does not run fn")
		return
	}
	if !c.second(p) {
		c.fault("while fn of one call runs, another call neither runs, is refused, nor gives up when its context ends: " +
			"does the policy hold a lock while it runs fn?")
	}
}

func leavesNoLock(c *checker) {
	for _, how := range []struct {
		name string
		fn   Step
	}{
		{"a call that panics", Panic(&panicValue{})},
		{"a call that ends by Goexit", Goexit},
		{"a call that succeeds", OK},
	} {
		p := c.policy()
		if !c.await(start(context.Background(), p, policy.Func(how.fn)), how.name) {
			return
		}
		if !c.second(p) {
			c.fault("after %s the next one hangs, even when its context has ended: was a lock left behind?", how.name)
		}
	}
}

// second makes a call that, should it have to wait, gives up. It reports whether it came to an end.
func (c *checker) second(p policy.Policy) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := start(ctx, p, OK)
	select {
	case <-ended:
		return true
	case <-time.After(settling):
	}
	cancel()
	select {
	case <-ended:
		return true
	case <-time.After(c.patience):
		return false
	}
}

func (c *checker) await(ended <-chan ending, what string) bool {
	select {
	case <-ended:
		return true
	case <-time.After(c.patience):
		c.fault("%s does not come to an end", what)
		return false
	}
}

func already(e ending) <-chan ending {
	ended := make(chan ending, 1)
	ended <- e
	return ended
}

// ways are how a call can end. Each makes fn; cancel is the caller's.
var ways = []struct {
	name string
	fn   func(cancel func()) Step
}{
	{"succeeds", func(func()) Step { return OK }},
	{"fails", func(func()) Step { return Fail(&failure{1}) }},
	{"waits and fails", func(func()) Step { return After(time.Millisecond, Fail(&failure{1})) }}, // it asks for Done
	{"panics", func(func()) Step { return Panic(&panicValue{}) }},
	{"ends by Goexit", func(func()) Step { return Goexit }},
	{"is cancelled", func(cancel func()) Step {
		return func(ctx context.Context) error {
			cancel()
			return After(time.Second, Fail(context.Canceled))(ctx) // not for ever, should the cancellation not arrive
		}
	}},
}

func leavesNothing(c *checker) {
	for _, way := range ways {
		before := goroutines()
		p := c.policy()
		caller := newCaller()
		c.do(caller, p, policy.Func(way.fn(func() { caller.end(context.Canceled) })))
		if closer, ok := p.(io.Closer); ok {
			_ = closer.Close()
		}
		synctest.Wait()
		if n := caller.waiting(); n > 0 {
			c.fault("a call that %s leaves %d contexts or callbacks behind that hang on the caller's context", way.name, n)
		}
		for id, stack := range goroutines() {
			if before[id] == "" {
				c.fault("a call that %s leaves a goroutine behind:\n%s", way.name, indented(stack))
			}
		}
		caller.end(context.Canceled) // let go what waits for it
	}
	time.Sleep(day)
}

type valueKey struct{}

func derivesContexts(c *checker) {
	for _, last := range []Step{OK, Fail(&failure{1})} {
		deadline := time.Now().Add(time.Hour)
		ctx, cancel := context.WithDeadline(context.WithValue(context.Background(), valueKey{}, "value"), deadline)
		e := c.do(ctx, c.policy(), func(ctx context.Context) error {
			c.checkContext(ctx, deadline)
			return last(ctx)
		})
		cancel()
		if e.panicked != nil {
			c.fault("Do %v", e)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var ran atomic.Bool
	c.do(ctx, c.policy(), func(ctx context.Context) error {
		ran.Store(true)
		cancel()
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
			c.fault("the context of fn does not end with the caller's")
		}
		return nil
	})
	if !ran.Load() {
		c.fault("the first call of a new policy does not run fn")
	}
}

func (c *checker) checkContext(ctx context.Context, deadline time.Time) {
	if ctx == nil {
		c.fault("fn gets a nil context")
		return
	}
	if err := ctx.Err(); err != nil {
		c.fault("the context of fn has ended before fn runs: %v", err)
	}
	if ctx.Value(valueKey{}) != "value" {
		c.fault("a value of the caller's context is missing in that of fn")
	}
	if d, ok := ctx.Deadline(); !ok || d.After(deadline) {
		c.fault("the deadline of the caller's context is missing in that of fn, or later there")
	}
}

func runsInOrder(c *checker) {
	for _, fn := range []Step{
		OK,
		Fail(&failure{1}),
		Deaf(time.Minute, OK),
		After(time.Minute, Fail(&failure{1})),
		Deaf(time.Minute, Fail(&failure{1})),
	} {
		p, overlaps := c.build()
		var running atomic.Int32
		var over atomic.Bool
		c.do(context.Background(), p, func(ctx context.Context) error {
			if over.Load() {
				c.fault("fn starts after Do has returned")
			}
			if running.Add(1) > 1 && !overlaps {
				c.fault("fn runs twice at once, which is for policies that are declared as Overlapping")
			}
			defer running.Add(-1)
			err := fn(ctx)
			if over.Load() && ctx.Err() == nil {
				c.fault("a run that goes on after Do has returned is not cancelled")
			}
			return err
		})
		if running.Load() > 0 && !overlaps {
			c.fault("Do returns while fn still runs")
		}
		over.Store(true)
		time.Sleep(day)
	}
}

// Calls at once, and how often each caller calls.
const (
	callers = 16
	repeats = 20
)

func keepsCallsApart(c *checker) {
	p := c.policy()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for n := range repeats {
				want := error(nil)
				if n%3 == 2 {
					want = &failure{i*repeats + n}
				}
				c.callOne(p, want)
			}
		})
	}
	all.Wait()
}

// callOne makes a call among others, which is to end with want.
func (c *checker) callOne(p policy.Policy, want error) {
	own := new(int)
	ctx := context.WithValue(context.Background(), valueKey{}, own)
	var ran atomic.Bool
	e := c.do(ctx, p, func(ctx context.Context) error {
		ran.Store(true)
		if ctx.Value(valueKey{}) != any(own) {
			c.fault("fn of one call runs under the context of another")
		}
		time.Sleep(time.Millisecond)
		return want
	})
	switch {
	case e.panicked != nil:
		c.fault("one of several calls at once panicked with %v:\n%s", e.panicked, indented(e.stack))
	case e.err == nil && !ran.Load():
		c.fault("one of several calls at once returned nil, but its fn did not run")
	case e.err == nil && want != nil:
		c.fault("one of several calls at once returned nil, though its fn failed")
	case ran.Load() && want != nil && !errors.Is(e.err, want) && !errors.Is(e.err, policy.ErrRejected):
		c.fault("one of several calls at once returned another one's error")
	case ran.Load() && want == nil && e.err != nil:
		c.fault("one of several calls at once returned %s, though its fn succeeded", oneLine(e.err))
	}
}

// rounds is how often a policy may leak before it must show: more than the permits of most.
const rounds = 100

func givesBack(c *checker) {
	for _, way := range ways {
		p := c.policy()
		for range rounds {
			ctx, cancel := context.WithCancel(context.Background())
			c.do(ctx, p, policy.Func(way.fn(cancel)))
			cancel()
			time.Sleep(day)
		}
		ran := false
		e := c.do(context.Background(), p, func(context.Context) error { ran = true; return nil })
		if !ran {
			c.fault("after %d calls of which each %s, and a day of rest, the next one %v and did not run fn", rounds, way.name, e)
		}
	}
}
