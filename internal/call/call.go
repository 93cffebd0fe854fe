// Package call holds what the packages of policies pass to each other: values in the context of a call, and the interfaces
// between policies and the pipeline.
package call

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/switchgear-go/switchgear/internal/instant"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// Node is a pipeline's part in the context of one call. The pipeline's context answers [NodeKey] with it.
type Node struct {
	context.Context // of the caller
	Pipeline        string

	told atomic.Int32
}

// Outer returns the node around n, or nil.
func (n *Node) Outer() *Node { return NodeOf(n.Context) }

// Told counts an event on the span of the call. It returns the number of events so far.
func (n *Node) Told() int { return int(n.told.Add(1)) }

// NodeKey is the context key of the innermost [Node].
type NodeKey struct{}

// NodeOf returns the innermost node in ctx, or nil.
func NodeOf(ctx context.Context) *Node {
	n, _ := ctx.Value(NodeKey{}).(*Node)
	return n
}

// Pipeline returns the name of the innermost pipeline that ctx runs in, or "".
func Pipeline(ctx context.Context) string {
	if n := NodeOf(ctx); n != nil {
		return n.Pipeline
	}
	return ""
}

// A Timed policy can be given the current instant, at which ctx is not done, so that the policies of a pipeline share one
// reading of the clock. If it waits before it runs fn, it runs fn under [Restart].
type Timed interface {
	DoAt(ctx context.Context, now Instant, fn func(ctx context.Context) error) error
}

// Budgeted is a policy, as returned by Bind, that counts its calls in a budget.
type Budgeted interface {
	SharedBudget() any // identifies the budget; nil if there is none
	LeaveDeposits()    // stops counting calls: a policy outside this one in the pipeline counts them
}

// Instant is a reading of [instant.Now]. It is a type of this internal package so that only this module can call DoAt.
type Instant time.Duration

// StartKey is the context key of the instant at which the innermost pipeline call or repeated attempt started. The value
// is an *Instant.
type StartKey struct{}

// Restart returns ctx with the current instant as its [Start], for a policy that has waited.
func Restart(ctx context.Context) context.Context {
	return &restarted{ctx, Instant(instant.Now())}
}

type restarted struct {
	context.Context
	start Instant
}

func (r *restarted) Value(key any) any {
	if _, ok := key.(StartKey); ok {
		return &r.start
	}
	return r.Context.Value(key)
}

// Start returns the instant at which the innermost pipeline call or repeated attempt in ctx started; now, if there is none.
// A policy may take it for the current instant only if all policies between the two are [Timed].
func Start(ctx context.Context) Instant {
	if at, ok := ctx.Value(StartKey{}).(*Instant); ok {
		return *at
	}
	return Instant(instant.Now())
}

// Attempt is the context of an attempt that a retry or a hedge makes beyond the first. (Marking the first would cost an
// allocation on every call.)
type Attempt struct {
	context.Context

	Number int     // from 2
	Start  Instant // when it began
	Retry  bool    // made by a retry: a retry inside it stands aside
}

type attemptKey struct{}

// Value answers the keys of this package.
func (a *Attempt) Value(key any) any {
	switch key.(type) {
	case StartKey:
		return &a.Start
	case attemptKey:
		return a
	}
	return a.Context.Value(key)
}

// AttemptOf returns the innermost marked attempt in ctx, or nil.
func AttemptOf(ctx context.Context) *Attempt {
	a, _ := ctx.Value(attemptKey{}).(*Attempt)
	return a
}

// Tell tells o of e. Where fn did not return, a panic of the observer must not take the place of fn's, or end its Goexit.
func Tell(ctx context.Context, o observe.Observer, e observe.Event, fnReturned bool) {
	defer Hush(fnReturned)
	o.Observe(ctx, e)
}

// EndSpan ends a span with the result of fn: [observe.ErrPanicked] where that did not return. As in [Tell], fn's panic wins.
func EndSpan(end func(error), err error) {
	defer Hush(err != observe.ErrPanicked) //nolint:errorlint // the very value
	end(err)
}

// Hush is deferred around calls of an observer's code: where fn did not return, it recovers a panic of that code, and fn's
// own goes on.
func Hush(fnReturned bool) {
	if !fnReturned {
		_ = recover()
	}
}
