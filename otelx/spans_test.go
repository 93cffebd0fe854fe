package otelx_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// again is a retry with nothing to it: attempts until one succeeds, each in a span of the observer.
func again(o observe.Observer, attempts int) policy.Policy {
	return policy.PolicyFunc(func(ctx context.Context, fn policy.Func) (err error) {
		for n := 1; n <= attempts; n++ {
			attempt, end := o.(observe.Spanner).Start(ctx, "charge", n)
			err = fn(attempt)
			end(err)
			if err == nil {
				return nil
			}
			o.Observe(ctx, observe.Event{Kind: observe.Attempt, Policy: "retry", Name: "charge", Attempt: n + 1, Err: err})
		}
		return err
	})
}

func TestACallAndItsAttemptsHaveSpans(t *testing.T) {
	spans, caller := recorded()
	o := otelx.New(otelx.WithSpans(), otelx.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))
	p := policy.NewPipeline("charge", again(o, 3)).Observed(o)
	ctx, root := caller.Start(context.Background(), "caller")
	left := 2
	require.NoError(t, p.Do(ctx, func(ctx context.Context) error {
		_, work := caller.Start(ctx, "work")
		defer work.End()
		if left--; left >= 0 {
			return typed("503")
		}
		return nil
	}))
	root.End()

	require.Len(t, spans.Started(), len(spans.Ended()), "what starts ends")
	byName := map[string]sdktrace.ReadOnlySpan{}
	var works []sdktrace.ReadOnlySpan
	for _, s := range spans.Ended() {
		if s.Name() == "work" {
			works = append(works, s)
			continue
		}
		byName[s.Name()] = s
	}
	require.Len(t, byName, 5)
	call := byName["pipeline charge"]
	assert.Equal(t, root.SpanContext().SpanID(), call.Parent().SpanID())
	assert.Equal(t, trace.SpanKindInternal, call.SpanKind())
	assert.Equal(t, codes.Unset, call.Status().Code, "retried, then well")
	assert.Equal(t, map[string]any{"switchgear.pipeline.name": "charge"}, values(call.Attributes()))
	require.Len(t, call.Events(), 2)
	assert.EqualValues(t, 2, values(call.Events()[0].Attributes)["switchgear.attempt.number"])
	assert.EqualValues(t, 3, values(call.Events()[1].Attributes)["switchgear.attempt.number"])
	assert.Equal(t, otelx.ScopeName, call.InstrumentationScope().Name)
	for n, name := range []string{"attempt 1", "attempt 2", "attempt 3"} {
		attempt := byName[name]
		assert.Equal(t, call.SpanContext().SpanID(), attempt.Parent().SpanID(), name)
		assert.Equal(t, attempt.SpanContext().SpanID(), works[n].Parent().SpanID(), name)
		want := map[string]any{"switchgear.pipeline.name": "charge", "switchgear.attempt.number": int64(n + 1)}
		status := codes.Unset
		if n < 2 {
			want["error.type"], status = "503", codes.Error
		}
		assert.Equal(t, want, values(attempt.Attributes()), name)
		assert.Equal(t, status, attempt.Status().Code, name)
		assert.Empty(t, attempt.Events(), name)
	}
}

func TestASpanEndsAsTheCallDid(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name   string
		fn     policy.Func
		status codes.Code
		kind   any
	}{
		{"nil", func(context.Context) error { return nil }, codes.Unset, nil},
		{"healthy", func(context.Context) error { return policy.Healthy(errors.New("no such row")) }, codes.Unset, nil},
		{"failure", func(context.Context) error { return errors.New("down") }, codes.Error, "_OTHER"},
		{"timeout", func(context.Context) error { return context.DeadlineExceeded }, codes.Error, "timeout"},
		{"refusal", func(context.Context) error { return policy.Rejection("bulkhead", "b", nil, time.Time{}, nil) }, codes.Error, "rejected"},
		{"panic", func(context.Context) error { panic("no") }, codes.Error, "panic"},
		{"cancelled by nobody", func(context.Context) error { return context.Canceled }, codes.Error, "canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spans := tracetest.NewSpanRecorder()
			o := otelx.New(otelx.WithSpans(), otelx.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))
			func() {
				defer func() { _ = recover() }()
				_ = policy.NewPipeline("p").Observed(o).Do(context.Background(), c.fn)
			}()
			require.Len(t, spans.Ended(), 1)
			span := spans.Ended()[0]
			assert.Equal(t, c.status, span.Status().Code)
			assert.Equal(t, c.kind, values(span.Attributes())["error.type"])
			assert.Empty(t, span.Events(), "an error is told once")
		})
	}
	t.Run("cancelled by the caller", func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		o := otelx.New(otelx.WithSpans(), otelx.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))
		_, end := o.(observe.Spanner).Start(canceled, "p", 0)
		end(context.Canceled)
		assert.Equal(t, codes.Unset, spans.Ended()[0].Status().Code)
		assert.Equal(t, "canceled", values(spans.Ended()[0].Attributes())["error.type"])
	})
}

func TestOnlyWithSpansIsASpanner(t *testing.T) {
	_, ok := otelx.New(otelx.WithTransitionSpans()).(observe.Spanner)
	assert.False(t, ok)
	_, ok = otelx.New(otelx.WithSpans()).(observe.Spanner)
	assert.True(t, ok)
}

func TestAProviderWithoutSpansDoesNotTakeTheCallersAway(t *testing.T) {
	spans, tracer := recorded()
	o := otelx.New(otelx.WithSpans(), otelx.WithTracerProvider(noop.NewTracerProvider()))
	ctx, span := tracer.Start(context.Background(), "caller")
	_ = policy.NewPipeline("p").Observed(o).Do(ctx, func(ctx context.Context) error {
		o.Observe(ctx, observe.Event{Kind: observe.FellBack})
		return nil
	})
	span.End()
	assert.Len(t, spans.Ended()[0].Events(), 1)
}

func TestEachSpanOfOursHasItsOwnCountOfEvents(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	o := otelx.New(otelx.WithSpans(), otelx.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))
	p := policy.NewPipeline("p", again(o, 2)).Observed(o)
	_ = p.Do(context.Background(), func(ctx context.Context) error {
		for range 100 {
			o.Observe(ctx, observe.Event{Kind: observe.Rejected, Policy: "bulkhead"})
		}
		return errors.New("down")
	})
	for _, s := range spans.Ended() {
		want := 32
		if s.Name() == "pipeline p" {
			want = 2
		}
		assert.Len(t, s.Events(), want, s.Name())
	}
}

func TestATransitionWithoutARecordingSpanHasOneOfItsOwn(t *testing.T) {
	open := observe.Event{Kind: observe.StateChange, Policy: "circuit_breaker", Name: "db", From: "closed", To: "open", Reason: "manual"}
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	o := otelx.New(otelx.WithTransitionSpans(), otelx.WithTracerProvider(provider))
	o.Observe(context.Background(), open)
	o.Observe(context.Background(), observe.Event{Kind: observe.FellBack})
	require.Len(t, spans.Ended(), 1)
	own := spans.Ended()[0]
	assert.Equal(t, "switchgear.circuit_breaker.state_change", own.Name())
	assert.False(t, own.Parent().IsValid())
	assert.Equal(t, "open", values(own.Attributes())["switchgear.circuit_breaker.state"])
	require.Len(t, own.Events(), 1)
	assert.Equal(t, "switchgear.circuit_breaker.state_change", own.Events()[0].Name)

	ctx, caller := provider.Tracer("test").Start(context.Background(), "caller")
	o.Observe(ctx, open)
	caller.End()
	require.Len(t, spans.Ended(), 2, "the caller's span has the event")
	assert.Len(t, spans.Ended()[1].Events(), 1)

	for _, flags := range []trace.TraceFlags{0, trace.FlagsSampled} {
		remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: flags, Remote: true})
		o.Observe(trace.ContextWithRemoteSpanContext(context.Background(), remote), open)
		own = spans.Ended()[len(spans.Ended())-1]
		if flags.IsSampled() {
			assert.Equal(t, remote.TraceID(), own.SpanContext().TraceID())
			continue
		}
		assert.NotEqual(t, remote.TraceID(), own.SpanContext().TraceID(), "a trace of its own where the caller's is not sampled")
		require.Len(t, own.Links(), 1)
		assert.Equal(t, remote.TraceID(), own.Links()[0].SpanContext.TraceID())
	}
	assert.Len(t, spans.Ended(), 4)

	otelx.New(otelx.WithTracerProvider(provider)).Observe(context.Background(), open)
	assert.Len(t, spans.Ended(), 4, "off by default")
}
