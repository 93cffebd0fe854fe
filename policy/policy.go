// Package policy composes resilience policies around a func(ctx) error.
//
// A [Policy] runs a function and may limit, repeat, refuse or replace it. Policies nest: a [Pipeline] runs several around
// each other, outermost first, and is a Policy itself. This package has the policies [Timeout] and [Fallback]; packages
// retry, breaker, bulkhead and ratelimit have the others.
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
// Policies judge the result of a call as one of three outcomes: [Success], [Failure] or [Ignored] (see [Classify]). A refusal
// by another policy and a caller who gives up are ignored, since they say nothing about the dependency. Mark an error that is
// the answer of a healthy dependency, such as "no such row", with [Healthy].
//
// Unless documented otherwise, a policy runs fn on the caller's goroutine and does not recover its panics. Under a context
// that is already done nothing runs and nothing is counted; Do returns the context's error.
package policy

import (
	"context"

	"github.com/switchgear-go/switchgear/internal/call"
)

// Func is the type of the functions that policies run.
type Func = func(ctx context.Context) error

// Policy runs a function under some protection. An implementation must
//
//   - be safe for concurrent use;
//   - run fn under ctx or a context derived from it, and not start it after Do has returned;
//   - return an error that matches fn's, by errors.Is and errors.As, if it passes one on;
//   - give each run a context from [Fork] if it runs fn several times at once.
//
// policytest.Conform checks all this, and more.
type Policy interface {
	Do(ctx context.Context, fn Func) error
}

// PolicyFunc is a function as a [Policy].
type PolicyFunc func(ctx context.Context, fn Func) error

// Do calls f.
func (f PolicyFunc) Do(ctx context.Context, fn Func) error { return f(ctx, fn) }

// Wrap returns a function that runs fn under p.
func Wrap(p Policy, fn Func) Func {
	if isNil(p) {
		panic("policy: Wrap with a nil policy")
	}
	if fn == nil {
		panic("policy: Wrap with a nil fn")
	}
	return func(ctx context.Context) error { return p.Do(ctx, fn) }
}

// Attempt returns the number of the attempt that ctx belongs to: 1 for the first attempt of the innermost retry or hedge, and
// outside of any.
func Attempt(ctx context.Context) int {
	if a := call.AttemptOf(ctx); a != nil {
		return a.Number
	}
	return 1
}

// check panics if Do was called with a nil context or a nil fn.
func check(who string, ctx context.Context, fn Func) {
	if ctx == nil {
		panic("policy: " + who + ": nil context")
	}
	if fn == nil {
		panic("policy: " + who + ": nil fn")
	}
}
