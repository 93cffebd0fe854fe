package otelx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// typed is an error with a value of error.type.
type typed string

func (e typed) Error() string     { return "answered " + string(e) }
func (e typed) ErrorType() string { return string(e) }

var eventCases = []struct {
	event    observe.Event
	name     string
	severity log.Severity
	attrs    map[string]any // beside the policy's name
}{
	{
		observe.Event{
			Kind: observe.StateChange, Policy: "circuit_breaker", From: "closed", To: "open", Reason: "failure_ratio",
			Ratio: .75, Calls: 20, Delay: 5500 * time.Millisecond, Reopenings: 2, Err: errors.New("down"),
		},
		"switchgear.circuit_breaker.state_change", log.SeverityWarn,
		map[string]any{
			"switchgear.circuit_breaker.state": "open", "switchgear.circuit_breaker.previous_state": "closed",
			"switchgear.circuit_breaker.reason": "failure_ratio", "switchgear.circuit_breaker.ratio": .75,
			"switchgear.circuit_breaker.judged_calls": int64(20), "switchgear.circuit_breaker.cooldown": 5.5,
			"switchgear.circuit_breaker.reopenings": int64(2),
		},
	},
	{
		observe.Event{Kind: observe.StateChange, Policy: "circuit_breaker", From: "half_open", To: "open", Reason: "probe_failed", Delay: time.Second},
		"switchgear.circuit_breaker.state_change", log.SeverityWarn,
		map[string]any{
			"switchgear.circuit_breaker.state": "open", "switchgear.circuit_breaker.previous_state": "half_open",
			"switchgear.circuit_breaker.reason": "probe_failed", "switchgear.circuit_breaker.cooldown": 1.,
			"switchgear.circuit_breaker.reopenings": int64(0),
		},
	},
	{
		observe.Event{Kind: observe.StateChange, Policy: "circuit_breaker", From: "closed", To: "forced_open", Reason: "manual"},
		"switchgear.circuit_breaker.state_change", log.SeverityWarn,
		map[string]any{
			"switchgear.circuit_breaker.state": "forced_open", "switchgear.circuit_breaker.previous_state": "closed",
			"switchgear.circuit_breaker.reason": "manual",
		},
	},
	{
		observe.Event{Kind: observe.StateChange, Policy: "circuit_breaker", From: "open", To: "half_open", Reason: "cooldown_elapsed"},
		"switchgear.circuit_breaker.state_change", log.SeverityInfo,
		map[string]any{
			"switchgear.circuit_breaker.state": "half_open", "switchgear.circuit_breaker.previous_state": "open",
			"switchgear.circuit_breaker.reason": "cooldown_elapsed",
		},
	},
	{
		observe.Event{Kind: observe.Rejected, Policy: "circuit_breaker", From: "open", Reason: "rejected"},
		"switchgear.circuit_breaker.rejected", log.SeverityDebug,
		map[string]any{"switchgear.circuit_breaker.state": "open"},
	},
	{
		observe.Event{Kind: observe.Attempt, Policy: "retry", Attempt: 2, Delay: 250 * time.Millisecond, Err: typed("503")},
		"switchgear.retry.attempt", log.SeverityInfo,
		map[string]any{"switchgear.attempt.number": int64(2), "switchgear.retry.delay": .25, "error.type": "503"},
	},
	{
		observe.Event{Kind: observe.Exhausted, Policy: "retry", Attempt: 3, Reason: "exhausted", Err: errors.New("secret")},
		"switchgear.retry.exhausted", log.SeverityWarn,
		map[string]any{"switchgear.retry.result": "exhausted", "switchgear.attempt.number": int64(3), "error.type": "_OTHER"},
	},
	{
		observe.Event{Kind: observe.TimedOut, Policy: "timeout", Delay: 1500 * time.Millisecond, Err: context.DeadlineExceeded},
		"switchgear.timeout.exceeded", log.SeverityWarn,
		map[string]any{"switchgear.timeout.limit": 1.5},
	},
	{
		observe.Event{Kind: observe.Rejected, Policy: "bulkhead", Reason: "timeout"},
		"switchgear.bulkhead.rejected", log.SeverityDebug,
		map[string]any{"switchgear.acquire.result": "timeout"},
	},
	{
		observe.Event{Kind: observe.Rejected, Policy: "rate_limiter", Reason: "rejected"},
		"switchgear.rate_limiter.rejected", log.SeverityDebug,
		map[string]any{"switchgear.acquire.result": "rejected"},
	},
	{
		observe.Event{Kind: observe.Hedged, Policy: "hedge", Attempt: 2},
		"switchgear.hedge.attempt", log.SeverityDebug,
		map[string]any{"switchgear.attempt.number": int64(2)},
	},
	{
		observe.Event{Kind: observe.FellBack, Policy: "fallback", Err: typed("429")},
		"switchgear.fallback.used", log.SeverityInfo,
		map[string]any{"error.type": "429"},
	},
	{
		observe.Event{Kind: observe.Rejected, Policy: "load_shedder", Reason: "rejected"},
		"switchgear.load_shedder.rejected", log.SeverityDebug,
		map[string]any{"switchgear.acquire.result": "rejected"},
	},
}

func TestAnEventIsTheSameOnTheCallersSpanAndInTheLog(t *testing.T) {
	for n, c := range eventCases {
		for _, pipeline := range []string{"", "charge"} {
			spans, tracer := recorded()
			logs := &logRecorder{}
			o := otelx.New(otelx.WithEvents(otelx.SpanEvents|otelx.LogEvents),
				otelx.WithLoggerProvider(sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewSimpleProcessor(logs)))))
			e := c.event
			e.Name, e.Pipeline, e.Time = "payments-api", pipeline, time.Now()
			ctx, span := tracer.Start(context.Background(), "caller")
			o.Observe(ctx, e)
			span.End()

			want := map[string]any{"switchgear.policy.name": "payments-api"}
			if pipeline != "" {
				want["switchgear.pipeline.name"] = pipeline
			}
			for k, v := range c.attrs {
				want[k] = v
			}
			require.Len(t, spans.Ended(), 1, "case %d", n)
			require.Len(t, spans.Ended()[0].Events(), 1, "case %d", n)
			got := spans.Ended()[0].Events()[0]
			assert.Equal(t, c.name, got.Name, "case %d", n)
			attrs := values(got.Attributes)
			delete(attrs, "switchgear.event.lag") // a slow machine
			assert.Equal(t, want, attrs, "case %d", n)

			require.Len(t, logs.records, 1, "case %d", n)
			r := logs.records[0]
			var kvs []attribute.KeyValue
			r.WalkAttributes(func(kv attribute.KeyValue) bool { kvs = append(kvs, kv); return true })
			assert.Equal(t, c.name, r.EventName(), "case %d", n)
			assert.Equal(t, c.severity, r.Severity(), "case %d", n)
			assert.True(t, e.Time.Equal(r.Timestamp()), "case %d", n)
			assert.Equal(t, want, values(kvs), "case %d", n)
			assert.Equal(t, span.SpanContext().TraceID(), r.TraceID(), "case %d", n)
			assert.Equal(t, otelx.ScopeName, r.InstrumentationScope().Name)
		}
	}
}

func TestEventsGoWhereTheyAreWanted(t *testing.T) {
	for _, c := range []struct {
		opts        []otelx.Option
		spans, logs int
	}{
		{nil, 1, 0},
		{[]otelx.Option{otelx.WithEvents(otelx.SpanEvents)}, 1, 0},
		{[]otelx.Option{otelx.WithEvents(otelx.LogEvents)}, 0, 1},
		{[]otelx.Option{otelx.WithEvents(otelx.LogEvents | otelx.SpanEvents)}, 1, 1},
		{[]otelx.Option{otelx.WithEvents(0)}, 0, 0},
	} {
		spans, tracer := recorded()
		logs := &logRecorder{}
		o := otelx.New(append(c.opts,
			otelx.WithLoggerProvider(sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewSimpleProcessor(logs)))))...)
		ctx, span := tracer.Start(context.Background(), "caller")
		o.Observe(ctx, observe.Event{Kind: observe.FellBack})
		o.Observe(context.Background(), observe.Event{Kind: 99})
		o.Observe(ctx, observe.Event{Kind: 99})
		span.End()
		assert.Len(t, spans.Ended()[0].Events(), c.spans)
		assert.Len(t, logs.records, c.logs)
	}
}

func TestASpanEventTellsHowLateItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			ago  time.Duration
			want any
		}{
			{0, nil},
			{999 * time.Microsecond, nil},
			{1500 * time.Millisecond, 1.5},
			{-2 * time.Second, -2.}, // a clock of the policy's own
		} {
			spans, tracer := recorded()
			ctx, span := tracer.Start(context.Background(), "caller")
			at := time.Now()
			otelx.New().Observe(ctx, observe.Event{Kind: observe.StateChange, To: "half_open", Time: at.Add(-c.ago)})
			otelx.New().Observe(ctx, observe.Event{Kind: observe.StateChange, To: "half_open"}) // no time, no lag
			span.End()
			events := spans.Ended()[0].Events()
			assert.True(t, at.Equal(events[0].Time), "a span event keeps its own time")
			assert.Equal(t, c.want, values(events[0].Attributes)["switchgear.event.lag"])
			assert.NotContains(t, values(events[1].Attributes), "switchgear.event.lag")
		}
	})
}

func TestACallAddsAtMost32EventsToASpan(t *testing.T) {
	o := otelx.New()
	rejected := observe.Event{Kind: observe.Rejected, Policy: "bulkhead"}
	terminal := []observe.Event{
		{Kind: observe.StateChange, To: "open"}, {Kind: observe.Exhausted}, {Kind: observe.TimedOut}, {Kind: observe.FellBack},
	}
	run := func(body func(ctx context.Context, other trace.Tracer)) []int {
		spans, tracer := recorded()
		ctx, span := tracer.Start(context.Background(), "caller")
		body(ctx, tracer)
		span.End()
		var events []int
		for _, s := range spans.Ended() {
			events = append(events, len(s.Events()))
		}
		return events
	}
	pipeline := policy.NewPipeline("p").Observed(observe.Discard)
	flood := func(ctx context.Context) {
		for range 100 {
			o.Observe(ctx, rejected)
		}
	}
	do := func(ctx context.Context, fn func(ctx context.Context)) {
		require.NoError(t, pipeline.Do(ctx, func(ctx context.Context) error { fn(ctx); return nil }))
	}
	t.Run("the last ones are never dropped", func(t *testing.T) {
		assert.Equal(t, []int{36}, run(func(ctx context.Context, _ trace.Tracer) {
			do(ctx, func(ctx context.Context) {
				flood(ctx)
				for _, e := range terminal {
					o.Observe(ctx, e)
				}
			})
		}))
	})
	t.Run("each call has its own", func(t *testing.T) {
		assert.Equal(t, []int{64}, run(func(ctx context.Context, _ trace.Tracer) {
			do(ctx, flood)
			do(ctx, flood)
		}))
	})
	t.Run("nested calls share the outermost", func(t *testing.T) {
		assert.Equal(t, []int{32}, run(func(ctx context.Context, _ trace.Tracer) {
			do(ctx, func(ctx context.Context) {
				do(ctx, func(ctx context.Context) { do(ctx, flood) })
				do(ctx, flood)
				flood(ctx)
			})
		}))
	})
	t.Run("a span in between counts apart", func(t *testing.T) {
		assert.Equal(t, []int{32, 32}, run(func(ctx context.Context, tracer trace.Tracer) {
			do(ctx, func(ctx context.Context) {
				inner, span := tracer.Start(ctx, "between")
				do(inner, func(ctx context.Context) { do(ctx, flood) })
				span.End()
				flood(ctx)
			})
		}))
	})
	t.Run("nested calls share it also from within another span", func(t *testing.T) {
		assert.Equal(t, []int{0, 32}, run(func(ctx context.Context, tracer trace.Tracer) {
			caller := trace.SpanFromContext(ctx)
			do(ctx, func(ctx context.Context) {
				inner, span := tracer.Start(ctx, "between")
				do(inner, func(ctx context.Context) { flood(trace.ContextWithSpan(ctx, caller)) })
				span.End()
				flood(ctx)
			})
		}))
	})
	t.Run("a retry alone", func(t *testing.T) {
		assert.Equal(t, []int{33}, run(func(ctx context.Context, _ trace.Tracer) {
			for n := 2; n <= 100; n++ {
				o.Observe(ctx, observe.Event{Kind: observe.Attempt, Policy: "retry", Attempt: n})
			}
			o.Observe(ctx, observe.Event{Kind: observe.Exhausted, Policy: "retry", Attempt: 100})
		}))
	})
}

func TestErrorsNeverAddASeries(t *testing.T) {
	o, reader := observed()
	p := policy.NewPipeline("p").Observed(o)
	for n := range 1000 {
		_ = p.Do(context.Background(), func(context.Context) error { return fmt.Errorf("error %d", n) })
		_ = p.Do(context.Background(), func(context.Context) error { return typed(fmt.Sprint("type", n)) })
	}
	got := readings(t, reader)
	equal(t, 2000, got["pipeline.duration{error.type=_OTHER,call.outcome=failure,pipeline.name=p}"])
	assert.Len(t, got, 2)
}

func recorded() (*tracetest.SpanRecorder, trace.Tracer) {
	spans := tracetest.NewSpanRecorder()
	return spans, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
}

func values(kvs []attribute.KeyValue) map[string]any {
	m := map[string]any{}
	for _, kv := range kvs {
		m[string(kv.Key)] = kv.Value.AsInterface()
	}
	return m
}

type logRecorder struct{ records []sdklog.Record }

func (l *logRecorder) Export(_ context.Context, records []sdklog.Record) error {
	for _, r := range records {
		l.records = append(l.records, r.Clone())
	}
	return nil
}
func (*logRecorder) Shutdown(context.Context) error   { return nil }
func (*logRecorder) ForceFlush(context.Context) error { return nil }
