// Package policy composes resilience policies around a func(ctx) error.
//
// A [Policy] runs a function and may limit, repeat, refuse or replace it. Policies nest: [NewPipeline] puts several around
// each other, outermost first, and is a Policy itself.
//
//	charge := policy.NewPipeline("charge",
//		policy.Timeout(5*time.Second),                   // for the whole call
//		retry.New(retry.Config{}),                       // 3 attempts, jittered backoff
//		breaker.New("payments-api", breaker.Config{}),   // shared by all who call it
//		bulkhead.New("payments-api", bulkhead.Config{Max: 50}),
//	)
//	receipt, err := policy.Get(ctx, charge, func(ctx context.Context) (Receipt, error) {
//		return payments.Charge(ctx, order)
//	})
//
// Policies judge errors by three outcomes (see [Classify]): a refusal by another policy and a caller who gave up say
// nothing about the dependency and count for nothing. What is an error to a program but a healthy answer of the dependency
// is marked with [Healthy].
//
// Every policy runs fn on the caller's goroutine and never recovers its panics, except those that document otherwise. A
// context that is already done runs nothing and counts nowhere: its error returns.
package policy

import (
	"context"

	"github.com/switchgear-go/switchgear/internal/call"
)

// Func is what policies run.
type Func = func(ctx context.Context) error

// Policy runs a function under some protection. An implementation must be safe for concurrent use, run fn under ctx or a
// context derived from it, and keep the identity of the errors it passes on. One that runs fn more than once at a time
// uses [Fork]. Package policytest checks all that.
type Policy interface {
	Do(ctx context.Context, fn Func) error
}

// PolicyFunc is a function as a [Policy].
type PolicyFunc func(ctx context.Context, fn Func) error

// Do calls f.
func (f PolicyFunc) Do(ctx context.Context, fn Func) error { return f(ctx, fn) }

// Wrap returns fn under p, for keeping and calling often.
func Wrap(p Policy, fn Func) Func {
	if p == nil {
		panic("policy: Wrap with a nil policy")
	}
	if fn == nil {
		panic("policy: Wrap with a nil fn")
	}
	return func(ctx context.Context) error { return p.Do(ctx, fn) }
}

// Attempt returns the number of the attempt that ctx belongs to, as the innermost retry or hedge counts them; 1 outside one.
func Attempt(ctx context.Context) int {
	if a := call.AttemptOf(ctx); a != nil {
		return a.Number
	}
	return 1
}

// check panics for a misuse of Do.
func check(who string, ctx context.Context, fn Func) {
	if ctx == nil {
		panic("policy: " + who + ": nil context")
	}
	if fn == nil {
		panic("policy: " + who + ": nil fn")
	}
}
