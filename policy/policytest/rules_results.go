package policytest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/switchgear-go/switchgear/policy"
)

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
