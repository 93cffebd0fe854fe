package policytest

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/switchgear-go/switchgear/policy"
)

// Conform checks that the policies that build returns keep what every policy must, alone and in a pipeline:
//
//   - fn runs under a context derived from the caller's: it carries its values, ends with it and no later, and has not ended;
//   - a context that is done already runs nothing, and its error returns;
//   - errors keep their identity: what fn returned is found by errors.Is and errors.As, nil stays nil, a failure stays one;
//   - values keep theirs: policy.Get returns what the run that decided the call returned, and closes the others;
//   - fn runs at most once at a time, unless build is declared as [Overlapping], and never after Do has returned;
//   - a panic of fn reaches the caller with the same value, and [runtime.Goexit] ends the caller's goroutine;
//   - calls run at the same time and are not mixed up: one that has to wait for another gives up when its context ends;
//   - a call whose caller cancels returns as soon as fn has;
//   - what a call takes it gives back, however it ends: nothing stays behind, and later calls run.
//
// build must return a new policy each time. The policy must let its first call through, and another one after a day without
// calls; a day by the bubble's clock, so leave Config.Clock unset. Make its limits small, such as a bulkhead of one, so that a
// leak shows. A fallback must return the error that it gets. A policy with a method Close() error is closed before Conform
// looks for leaks.
//
// Run the test with -race as well, to find data races.
func Conform(t *testing.T, build func() policy.Policy) {
	t.Helper()
	for _, setting := range settings {
		ok := t.Run(setting.name, func(t *testing.T) {
			t.Helper()
			for _, r := range rules {
				ok := t.Run(r.name, func(t *testing.T) {
					t.Helper()
					for _, fault := range r.check(t, setting.of(build), patience) {
						t.Error(fault)
					}
				})
				if !ok && r.first {
					return
				}
			}
		})
		if !ok {
			return
		}
	}
}

// Overlapping declares that the policies which build returns may run fn several times at once, as a hedge does. Conform then
// holds them to what that takes: each run has a context from [policy.Fork], one of them decides the call, and those that are
// still running when it returns are cancelled.
func Overlapping(build func() policy.Policy) func() policy.Policy {
	return func() policy.Policy { return overlapping{build()} }
}

type overlapping struct{ policy.Policy }

// setting is where a policy is checked.
type setting struct {
	name string
	of   func(build func() policy.Policy) func() (p policy.Policy, overlaps bool)
}

var settings = []setting{
	{"alone", func(build func() policy.Policy) func() (policy.Policy, bool) {
		return func() (policy.Policy, bool) { return unwrapped(build()) }
	}},
	{"in a pipeline", func(build func() policy.Policy) func() (policy.Policy, bool) {
		return func() (policy.Policy, bool) {
			p, overlaps := unwrapped(build())
			return policy.NewPipeline("conform", p), overlaps
		}
	}},
}

func unwrapped(p policy.Policy) (policy.Policy, bool) {
	if o, ok := p.(overlapping); ok {
		return o.Policy, true
	}
	return p, false
}

// rule is something that every policy keeps.
type rule struct {
	name  string
	run   func(c *checker)
	real  bool // outside a bubble, in real time: where it is broken, a bubble would hang
	first bool // where it is broken, the others are not worth asking
}

// check returns how the policies break the rule.
func (r rule) check(t *testing.T, build func() (policy.Policy, bool), patience time.Duration) []string {
	c := &checker{build: build, patience: patience}
	if r.real {
		r.run(c)
		return c.all()
	}
	if trouble := bubble(t, patience, func(*testing.T) { r.run(c) }); trouble != "" && len(c.all()) == 0 {
		c.fault("%s", trouble)
	}
	return c.all()
}

// checker checks one rule.
type checker struct {
	build    func() (p policy.Policy, overlaps bool)
	patience time.Duration // in real time

	mu     sync.Mutex
	faults []string // guarded by mu
}

// fault notes a fault, once.
func (c *checker) fault(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.faults {
		if f == text {
			return
		}
	}
	c.faults = append(c.faults, text)
}

func (c *checker) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.faults
}

// policy returns a new policy.
func (c *checker) policy() policy.Policy {
	p, _ := c.build()
	return p
}

// ending is how a call ended.
type ending struct {
	err      error
	panicked any
	stack    string
	exited   bool
	pending  bool // it has not
}

func (e ending) String() string {
	switch {
	case e.pending:
		return "has not returned"
	case e.panicked != nil:
		return fmt.Sprintf("panicked with %v", e.panicked)
	case e.exited:
		return "ended its goroutine"
	}
	return "returned " + oneLine(e.err)
}

// start makes a call on a goroutine of its own.
func start(ctx context.Context, p policy.Policy, fn policy.Func) <-chan ending {
	ended := make(chan ending, 1)
	go func() {
		e := ending{exited: true}
		defer func() {
			if r := recover(); r != nil {
				e = ending{panicked: r, stack: string(debug.Stack())}
			}
			ended <- e
		}()
		e.err = p.Do(ctx, fn)
		e.exited = false
	}()
	return ended
}

// day is how long a policy rests, by the bubble's clock, and how long a call may take at most.
const day = 24 * time.Hour

// do makes a call in a bubble.
func (c *checker) do(ctx context.Context, p policy.Policy, fn policy.Func) ending {
	late := time.NewTimer(day)
	defer late.Stop()
	select {
	case e := <-start(ctx, p, fn):
		return e
	case <-late.C:
		c.fault("Do has not returned for a day")
		return ending{pending: true}
	}
}

// panicValue is what fn panics with. Its text is read where nobody recovers it.
type panicValue struct{}

func (*panicValue) Error() string {
	return "policytest: a panic of fn was lost: the policy runs fn on another goroutine and does not recover it there, " +
		"so that it can panic again with the same value on the caller's"
}

// failure is what fn fails with.
type failure struct{ run int }

func (f *failure) Error() string { return fmt.Sprintf("failure of run %d", f.run) }
