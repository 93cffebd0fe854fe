package policy

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/internal/errtree"
	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// Fallback returns a policy that runs fn when a call has failed or was refused. fn gets the call's error, and the context
// that the policy was called with, which a timeout inside the policy does not end. If fn returns nil, so does Do. If fn
// returns an error, Do returns one that wraps both it and the original.
//
// fn does not run for an error marked with [Healthy], nor once ctx is done. Fallback panics if fn is nil.
func Fallback(fn func(ctx context.Context, err error) error) Policy {
	if fn == nil {
		panic("policy: Fallback: nil fn")
	}
	return &fallback{run: fn}
}

// FallbackValue is a [Fallback] whose fn also returns the value for [Get] to return. It needs to run under a Get with the
// same type T: under a plain Do, or a Get with another type, fn does not run, and the original error is returned together
// with one that says so. FallbackValue panics if fn is nil.
func FallbackValue[T any](fn func(ctx context.Context, err error) (T, error)) Policy {
	if fn == nil {
		panic("policy: FallbackValue: nil fn")
	}
	return &fallback{run: func(ctx context.Context, err error) error {
		into, ok := target(ctx).(*branch[T])
		if !ok {
			var t T
			return fmt.Errorf("policy: FallbackValue[%T] needs to run under a Get of the same type", t)
		}
		v, err := fn(ctx, err)
		if err == nil {
			into.set(v)
		}
		return err
	}}
}

// fallback is a Fallback that no pipeline has bound.
type fallback struct {
	run   func(ctx context.Context, err error) error
	once  sync.Once
	alone *boundFallback
}

func (f *fallback) Do(ctx context.Context, fn Func) error {
	f.once.Do(func() { f.alone = newBoundFallback(f.run, "fallback", otelx.Default()) })
	return f.alone.Do(ctx, fn)
}

func (f *fallback) Name() string   { return "" }
func (f *fallback) String() string { return "fallback" }

func (f *fallback) Bind(name string, o observe.Observer) Policy {
	return newBoundFallback(f.run, name, o)
}

// boundFallback is a Fallback that has a name to report under.
type boundFallback struct {
	run      func(ctx context.Context, err error) error
	name     string
	observer observe.Observer
	counts   []atomic.Int64
}

// The results of a fallback, as rows.
const (
	fallbackSuccess = iota
	fallbackFailure
)

var fallbackRows = []observe.Row{
	fallbackSuccess: {Metric: semconv.FallbackCalls, Attrs: []observe.Attr{{Key: semconv.CallOutcome, Value: semconv.OutcomeSuccess}}},
	fallbackFailure: {Metric: semconv.FallbackCalls, Attrs: []observe.Attr{{Key: semconv.CallOutcome, Value: semconv.OutcomeFailure}}},
}

func newBoundFallback(run func(context.Context, error) error, name string, o observe.Observer) *boundFallback {
	f := &boundFallback{run: run, name: name, observer: o, counts: make([]atomic.Int64, len(fallbackRows))}
	observe.Attach(o, f, observe.Source{Policy: "fallback", Name: name, Rows: fallbackRows, Counts: f.counts}, nil)
	return f
}

func (f *boundFallback) Do(ctx context.Context, fn Func) error {
	check("fallback", ctx, fn)
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.DoAt(ctx, 0, fn)
}

func (f *boundFallback) DoAt(ctx context.Context, _ call.Instant, fn Func) error {
	err := fn(ctx)
	if err == nil || errtree.Sort(err) == errtree.Healthy || ctx.Err() != nil {
		return err
	}
	return f.fallBack(ctx, err)
}

func (f *boundFallback) fallBack(ctx context.Context, err error) error {
	result, returned := fallbackFailure, false
	defer func() {
		f.counts[result].Add(1)
		call.Tell(ctx, f.observer, observe.Event{
			Kind: observe.FellBack, Policy: "fallback", Name: f.name, Pipeline: call.Pipeline(ctx), Err: err, Time: time.Now(),
		}, returned)
	}()
	own := f.run(ctx, err)
	returned = true
	switch {
	case own == nil:
		result = fallbackSuccess
		return nil
	case holds(own, err): // it returned or wrapped the original
		return own
	}
	return fmt.Errorf("policy: fallback: %w (after: %w)", own, err)
}

// holds reports whether err is in own's tree. Errors that cannot be compared are found nowhere; errors.Is may panic for them.
func holds(own, err error) bool {
	return reflect.ValueOf(err).Comparable() && errors.Is(own, err)
}
