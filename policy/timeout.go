package policy

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/internal/errtree"
	"github.com/switchgear-go/switchgear/internal/instant"
	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// ErrTimeout is what the error of every [Timeout] matches, with errors.Is. The end of the caller's own deadline does not
// match it.
var ErrTimeout error = errtree.Reason("policy: timeout")

// TimeoutError says that the limit of a [Timeout] ended a call. It matches [ErrTimeout] and [context.DeadlineExceeded]. While
// fn still runs, a TimeoutError without Err is the [context.Cause] of its context.
type TimeoutError struct {
	Limit time.Duration // of the timeout
	Err   error         // what fn returned
}

// Error returns the limit and the text of Err.
func (e *TimeoutError) Error() string {
	text := "policy: timeout after " + e.Limit.String()
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Is reports whether target is [ErrTimeout] or [context.DeadlineExceeded].
func (e *TimeoutError) Is(target error) bool {
	return target == ErrTimeout || target == context.DeadlineExceeded
}

// Unwrap returns Err.
func (e *TimeoutError) Unwrap() error { return e.Err }

// Timeout returns true, for code that asks as it would a [net.Error].
func (e *TimeoutError) Timeout() bool { return true }

// ErrorType returns "timeout", the value of the attribute error.type in telemetry.
func (e *TimeoutError) ErrorType() string { return "timeout" }

// Timeout returns a policy that runs fn with a context that ends after limit. In a pipeline, a Timeout outside a retry limits
// the whole call, one inside it each attempt. Timeout panics unless limit is above 0.
//
// The timeout is cooperative: Do waits until fn returns, so fn must respect its context. If fn returns an error after the
// limit, Do returns a [TimeoutError] that wraps it. If fn returns nil after the limit, so does Do, and the call is counted as
// late. If the caller's own context ends first, Do returns fn's error as it is.
//
// The context is cheaper than one of [context.WithTimeout]: it sets a timer only when its Done method is called.
func Timeout(limit time.Duration) Policy {
	if limit <= 0 {
		panic("policy: Timeout: limit is " + limit.String() + ", must be above 0")
	}
	return &timeout{limit: limit}
}

// timeout is a Timeout that no pipeline has bound.
type timeout struct {
	limit time.Duration
	once  sync.Once
	alone *boundTimeout
}

func (t *timeout) Do(ctx context.Context, fn Func) error {
	t.once.Do(func() { t.alone = newBoundTimeout(t.limit, "timeout", otelx.Default()) })
	return t.alone.Do(ctx, fn)
}

func (t *timeout) Name() string   { return "" }
func (t *timeout) String() string { return "timeout(" + t.limit.String() + ")" }

func (t *timeout) Bind(name string, o observe.Observer) Policy {
	return newBoundTimeout(t.limit, name, o)
}

// boundTimeout is a Timeout that has a name to report under.
type boundTimeout struct {
	limit    time.Duration
	name     string
	observer observe.Observer
	counts   []atomic.Int64
}

// The results of a timeout's call, as rows.
const (
	timeoutCompleted = iota
	timeoutLate
	timeoutTimedOut
	timeoutCanceled
)

var timeoutRows = []observe.Row{
	timeoutCompleted: {Metric: semconv.TimeoutCalls, Attrs: []observe.Attr{{Key: semconv.TimeoutResult, Value: semconv.ResultCompleted}}},
	timeoutLate:      {Metric: semconv.TimeoutCalls, Attrs: []observe.Attr{{Key: semconv.TimeoutResult, Value: semconv.ResultLate}}},
	timeoutTimedOut:  {Metric: semconv.TimeoutCalls, Attrs: []observe.Attr{{Key: semconv.TimeoutResult, Value: semconv.ResultTimedOut}}},
	timeoutCanceled:  {Metric: semconv.TimeoutCalls, Attrs: []observe.Attr{{Key: semconv.TimeoutResult, Value: semconv.ResultCanceled}}},
}

func newBoundTimeout(limit time.Duration, name string, o observe.Observer) *boundTimeout {
	t := &boundTimeout{limit: limit, name: name, observer: o, counts: make([]atomic.Int64, len(timeoutRows))}
	observe.Attach(o, t, observe.Source{Policy: "timeout", Name: name, Rows: timeoutRows, Counts: t.counts}, nil)
	return t
}

func (t *boundTimeout) Do(ctx context.Context, fn Func) error {
	check("timeout", ctx, fn)
	if err := ctx.Err(); err != nil {
		return err
	}
	return t.DoAt(ctx, call.Instant(instant.Now()), fn)
}

func (t *boundTimeout) DoAt(ctx context.Context, now call.Instant, fn Func) (err error) {
	end := time.Duration(now) + t.limit
	if end < time.Duration(now) {
		end = math.MaxInt64
	}
	c := &limited{Context: ctx, end: end, cause: TimeoutError{Limit: t.limit}}
	returned := false
	defer func() { err = t.settle(c, err, returned) }()
	err = fn(c)
	returned = true
	return err
}

// settle ends c, counts how the call went, and returns what Do returns.
func (t *boundTimeout) settle(c *limited, err error, returned bool) error {
	ended := c.release()
	mine := ended && context.Cause(c) == error(&c.cause) //nolint:errorlint // the very value of this call
	result := timeoutCompleted
	switch {
	case mine && returned && err == nil:
		result = timeoutLate
	case mine:
		result = timeoutTimedOut
	case ended && err != nil:
		result = timeoutCanceled
	}
	t.counts[result].Add(1)
	if result != timeoutTimedOut {
		return err
	}
	call.Tell(c.Context, t.observer, observe.Event{
		Kind: observe.TimedOut, Policy: "timeout", Name: t.name, Pipeline: call.Pipeline(c.Context),
		Delay: t.limit, Err: err, Time: instant.Time(c.end),
	}, returned)
	return &TimeoutError{Limit: t.limit, Err: err}
}
