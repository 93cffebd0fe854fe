package policytest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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

func heedsDoneContexts(c *checker) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	expired, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	for _, ctx := range []context.Context{canceled, expired} {
		e := c.do(ctx, c.policy(), func(context.Context) error {
			c.fault("fn runs under a context that is done already (%v)", ctx.Err())
			return nil
		})
		if !errors.Is(e.err, ctx.Err()) {
			c.fault("under a context that is done already (%v) Do %v", ctx.Err(), e)
		}
	}
}

func keepsErrors(c *checker) {
	if e := c.do(context.Background(), c.policy(), OK); e != (ending{}) {
		c.fault("where fn returned nil, Do %v", e)
	}
	for _, mark := range []func(error) error{
		func(err error) error { return err },
		func(err error) error { return fmt.Errorf("wrapped: %w", err) },
		policy.Healthy,
	} {
		err := &failure{1}
		e := c.do(context.Background(), c.policy(), func(context.Context) error { return mark(err) })
		found := (*failure)(nil)
		switch {
		case e.err == nil:
			c.fault("where fn failed, Do %v", e)
		case !errors.Is(e.err, err):
			c.fault("where fn returned %q, Do %v, in which errors.Is does not find it", mark(err), e)
		case !errors.As(e.err, &found):
			c.fault("where fn returned %q, Do %v, in which errors.As does not find it", mark(err), e)
		}
	}
}

// value is what a run of fn returns to a Get.
type value struct {
	run    int
	err    error
	closed atomic.Bool
}

func (v *value) Close() error {
	v.closed.Store(true)
	return nil
}

func keepsValues(c *checker) {
	// What fn does, run by run, and for how long: runs that overlap end out of order.
	for _, script := range [][]error{
		{nil},
		{&failure{1}},
		{&failure{1}, nil},
		{nil, &failure{2}},
	} {
		var mu sync.Mutex
		var made []*value
		p := c.policy()
		var got *value
		e := c.do(context.Background(), getting(p, &got, func(ctx context.Context) (*value, error) {
			mu.Lock()
			v := &value{run: len(made) + 1, err: script[min(len(made), len(script)-1)]}
			made = append(made, v)
			mu.Unlock()
			if v.run == 1 {
				time.Sleep(time.Minute)
			}
			return v, v.err
		}), OK)
		time.Sleep(day) // until the runs that lost have ended
		synctest.Wait()
		c.checkValues(e, got, made)
	}
}

// getting returns the policy that runs fn under p by policy.Get, and keeps the value.
func getting(p policy.Policy, got **value, fn func(context.Context) (*value, error)) policy.Policy {
	return policy.PolicyFunc(func(ctx context.Context, _ policy.Func) (err error) {
		*got, err = policy.Get(ctx, p, fn)
		return err
	})
}

func (c *checker) checkValues(e ending, got *value, made []*value) {
	switch {
	case e.panicked != nil:
		c.fault("policy.Get %v", e)
	case len(made) == 0:
		c.fault("the first call of a new policy does not run fn")
	case got == nil:
		c.fault("policy.Get returns no value, though fn returned one")
	case got.closed.Load():
		c.fault("policy.Get returns a value that is closed")
	case e.err == nil && got.err != nil:
		c.fault("policy.Get returns the value of a run that failed, though another one decided the call")
	case e.err != nil && got.err == nil:
		c.fault("policy.Get returns an error beside the value of a run that succeeded")
	}
	for _, v := range made {
		if v != got && !v.closed.Load() {
			c.fault("the value of a run that did not decide the call is not closed")
		}
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

func passesPanics(c *checker) {
	want := &panicValue{}
	e := c.do(context.Background(), c.policy(), Panic(want))
	switch {
	case e.panicked == nil:
		c.fault("where fn panics, Do %v", e)
	case e.panicked != any(want):
		c.fault("where fn panics, Do panics with another value: %v", e.panicked)
	}
}

func passesGoexit(c *checker) {
	if e := c.do(context.Background(), c.policy(), Goexit); !e.exited {
		c.fault("where fn ends its goroutine by runtime.Goexit, Do %v", e)
	}
}

func heedsCancellation(c *checker) {
	for _, tt := range []struct {
		name string
		fn   Step
	}{
		{"waits for its context", Hang},
		{"fails at once", Fail(&failure{1})},
		{"fails after a while", After(30*time.Millisecond, Fail(&failure{1}))},
	} {
		// However long a policy waits between runs, one of these comes in such a wait.
		for at := time.Millisecond; at < time.Minute; at = at * 3 / 2 {
			if late := c.lateness(at, tt.fn); late > 0 {
				c.fault("where fn %s and the caller cancels after %v, Do returns only %v later", tt.name, at, late)
				break
			}
		}
	}
}

// lateness returns how long after a cancellation at that time Do returns; 0 if it had returned before.
func (c *checker) lateness(at time.Duration, fn Step) time.Duration {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	gone := time.Now().Add(at)
	timer := time.AfterFunc(at, cancel)
	defer timer.Stop()
	c.do(ctx, c.policy(), policy.Func(fn))
	return time.Since(gone)
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

// caller is the context of a caller that counts what waits for its end. Contexts derived from it use AfterFunc, not a goroutine.
type caller struct {
	context.Context
	done chan struct{}

	mu    sync.Mutex
	err   error     // guarded by mu
	funcs []*func() // guarded by mu
}

func newCaller() *caller {
	return &caller{Context: context.Background(), done: make(chan struct{})}
}

func (c *caller) Done() <-chan struct{} { return c.done }

func (c *caller) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// AfterFunc is what package context asks a context for that is not one of its own.
func (c *caller) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	own := &f
	c.funcs = append(c.funcs, own)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := slices.Index(c.funcs, own)
		if i < 0 {
			return false
		}
		c.funcs = slices.Delete(c.funcs, i, i+1)
		return true
	}
}

// waiting returns how many callbacks wait for the end.
func (c *caller) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.funcs)
}

func (c *caller) end(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	funcs := c.funcs
	c.funcs = nil
	close(c.done)
	c.mu.Unlock()
	for _, f := range funcs {
		go (*f)()
	}
}
