package contract

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/ratelimit"
	"github.com/switchgear-go/switchgear/retry"
)

// tracedCall runs a call that fails a number of times through a retry with spans, and returns those that have ended by name.
func tracedCall(t *testing.T, failures int) (l *lab, ended map[string]sdktrace.ReadOnlySpan) {
	l = newLab(t, otelx.WithSpans())
	p := policy.NewPipeline("charge", retry.New(retry.Config{BackOff: everySecond})).Observed(l.Observer)
	_ = l.run(context.Background(), p, func(ctx context.Context) error {
		if policy.Attempt(ctx) <= failures {
			return typed{kind: "503"}
		}
		return nil
	})
	ended = map[string]sdktrace.ReadOnlySpan{}
	for _, s := range l.spans.Ended() {
		ended[s.Name()] = s
	}
	require.Len(t, ended, len(l.spans.Ended()), "two spans of one name")
	return l, ended
}

// The report: otelresty#9.
func TestEverySpanOfARetriedCallEndsAndBelongsToItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, ended := tracedCall(t, 2)
		assert.Len(t, l.spans.Started(), len(ended), "what starts ends")
		caller, call := ended["caller"], ended["pipeline charge"]
		assert.Equal(t, caller.SpanContext().SpanID(), call.Parent().SpanID())
		for n, name := range []string{"attempt 1", "attempt 2", "attempt 3"} {
			s := ended[name]
			require.NotNil(t, s, name)
			assert.Equal(t, call.SpanContext().SpanID(), s.Parent().SpanID(), name)
			assert.Equal(t, caller.SpanContext().TraceID(), s.SpanContext().TraceID(), name)
			assert.Contains(t, s.Attributes(), attribute.Int(semconv.AttemptNumber, n+1), name)
		}
		var numbers []int64
		for _, e := range call.Events() {
			require.Equal(t, semconv.EventRetryAttempt, e.Name)
			for _, kv := range e.Attributes {
				if kv.Key == semconv.AttemptNumber {
					numbers = append(numbers, kv.Value.AsInt64())
				}
			}
		}
		assert.Equal(t, []int64{2, 3}, numbers)
		assert.Equal(t, 2*time.Second, call.EndTime().Sub(call.StartTime()))
	})
}

// The reports: opentelemetry-go-contrib#950, azure-sdk-for-java#37975.
func TestASpanHasTheStatusOfItsOwnCallOrAttempt(t *testing.T) {
	for _, c := range []struct {
		name     string
		failures int
		call     codes.Code
		attempts []codes.Code
	}{
		{"a success", 0, codes.Unset, []codes.Code{codes.Unset}},
		{"retried, then well", 2, codes.Unset, []codes.Code{codes.Error, codes.Error, codes.Unset}},
		{"a failure", 3, codes.Error, []codes.Code{codes.Error, codes.Error, codes.Error}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, ended := tracedCall(t, c.failures)
				require.Len(t, ended, 2+len(c.attempts))
				assert.Equal(t, c.call, ended["pipeline charge"].Status().Code)
				if c.call == codes.Error {
					assert.Contains(t, ended["pipeline charge"].Attributes(), attribute.String(semconv.ErrorType, "exhausted"))
				}
				for n, want := range c.attempts {
					s := ended["attempt "+string(rune('1'+n))]
					assert.Equal(t, want, s.Status().Code, s.Name())
					if want == codes.Error {
						assert.Contains(t, s.Attributes(), attribute.String(semconv.ErrorType, "503"), s.Name())
					}
				}
				assert.Equal(t, codes.Unset, ended["caller"].Status().Code, "the caller's span is the caller's")
			})
		})
	}
}

func TestSpansEndWhereTheCallPanics(t *testing.T) {
	l := newLab(t, otelx.WithSpans())
	p := policy.NewPipeline("charge", retry.New(retry.Config{})).Observed(l.Observer)
	assert.PanicsWithValue(t, "boom", func() {
		_ = l.run(context.Background(), p, func(context.Context) error { panic("boom") })
	})
	require.Len(t, l.spans.Ended(), 3)
	for _, s := range l.spans.Ended()[:2] {
		assert.Equal(t, codes.Error, s.Status().Code, s.Name())
		assert.Contains(t, s.Attributes(), attribute.String(semconv.ErrorType, "panic"), s.Name())
	}
}

// The report: failsafe-go#56. Events come with the context of the call that set them off, so an observer can tell its trace
// and whatever else the caller put there.
func TestEveryEventOfACallComesWithItsCallersContext(t *testing.T) {
	type userKey struct{}
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		seen := map[observe.Kind]bool{}
		l := newLab(t)
		ctx, span := l.tracer.Start(context.WithValue(context.Background(), userKey{}, "ada"), "caller")
		defer span.End()
		o := observe.Func(func(got context.Context, e observe.Event) {
			mu.Lock()
			defer mu.Unlock()
			seen[e.Kind] = true
			assert.Equal(t, "ada", got.Value(userKey{}), "%v of a %s", e.Kind, e.Policy)
			assert.Equal(t, span.SpanContext(), trace.SpanContextFromContext(got), "%v of a %s", e.Kind, e.Policy)
		})
		// call runs fn under policies that report to o.
		call := func(fn policy.Func, policies ...policy.Policy) {
			_ = policy.NewPipeline("charge", policies...).Observed(o).Do(ctx, fn)
		}
		down := func(context.Context) error { return errDown }
		b := breaker.New("b", breaker.Config{Consecutive: 1, Observer: o})
		full := bulkhead.New("full", bulkhead.Config{Max: 1, Observer: o})
		release, err := full.Acquire(ctx)
		require.NoError(t, err)
		defer release()

		call(down, retry.New(retry.Config{BackOff: everySecond, Retryable: func(context.Context, error) bool { return true }}), b)
		call(down, full)
		call(down, ratelimit.New("dry", ratelimit.Config{Rate: 0, Observer: o}))
		call(down, policy.Fallback(func(context.Context, error) error { return errors.New("no plan") }))
		call(func(context.Context) error { time.Sleep(2 * time.Second); return errDown },
			policy.Timeout(time.Second), retry.NewHedge(retry.HedgeConfig{Delay: time.Second / 2}))
		for kind := observe.StateChange; kind <= observe.FellBack; kind++ {
			assert.True(t, seen[kind], "never told: %v", kind)
		}
	})
}
