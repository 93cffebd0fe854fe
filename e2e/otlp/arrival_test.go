package otlp_test

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/trace"

	"github.com/switchgear-go/switchgear/e2e"
	"github.com/switchgear-go/switchgear/e2e/internal/workload"
	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

func TestEveryMetricArrives(t *testing.T) {
	e2e.Real(t)
	t.Parallel()
	c := startCollector(t)
	app := startApp(t, c)
	keep := workload.Everything(t.Context(), app.observer())
	app.flush(t)
	runtime.KeepAlive(keep)

	arrived := c.metricsByName(t)
	for n := range semconv.Metrics {
		want := &semconv.Metrics[n]
		got, ok := arrived[want.Name]
		if assert.True(t, ok, "%s has not arrived", want.Name) {
			delete(arrived, want.Name)
			assertMetric(t, want, got)
		}
	}
	assert.Empty(t, arrived, "not in the registry")
}

func assertMetric(t *testing.T, want *semconv.Metric, got pmetric.Metric) {
	t.Helper()
	assert.Equal(t, want.Unit, got.Unit(), want.Name)
	assert.Equal(t, want.Description, got.Description(), want.Name)
	sets := attributeSets(got)
	require.NotEmpty(t, sets, want.Name)
	for _, set := range sets {
		name, ok := set.Get(want.NameKey)
		assert.True(t, ok && name.Str() != "", "%s has no %s: %v", want.Name, want.NameKey, set.AsRaw())
		set.Remove(want.NameKey)
		assertAttributes(t, want.Name, want.Attributes, set)
	}
	switch want.Instrument {
	case semconv.Histogram:
		require.Equal(t, pmetric.MetricTypeHistogram, got.Type(), want.Name)
		assert.Equal(t, want.Boundaries, got.Histogram().DataPoints().At(0).ExplicitBounds().AsRaw(), want.Name)
	default:
		require.Equal(t, pmetric.MetricTypeSum, got.Type(), want.Name)
		assert.Equal(t, want.Instrument == semconv.ObservableCounter, got.Sum().IsMonotonic(), want.Name)
		assert.Equal(t, pmetric.AggregationTemporalityCumulative, got.Sum().AggregationTemporality(), want.Name)
	}
}

// assertAttributes checks that set has what the registry says, and nothing else.
func assertAttributes(t *testing.T, signal string, want []semconv.Attribute, set pcommon.Map) {
	t.Helper()
	for key, value := range set.All() {
		i := slices.IndexFunc(want, func(a semconv.Attribute) bool { return a.Key == key })
		if assert.GreaterOrEqual(t, i, 0, "%s has an attribute %s that is not in the registry", signal, key) && want[i].Values != nil {
			assert.Contains(t, want[i].Values, value.Str(), "%s: %s", signal, key)
		}
	}
	for _, a := range want {
		if _, ok := set.Get(a.Key); !ok {
			assert.NotEmpty(t, a.Optional, "%s has no %s: %v", signal, a.Key, set.AsRaw())
		}
	}
}

func TestEveryEventArrivesOnTheCallersSpanAndAsALogRecord(t *testing.T) {
	e2e.Real(t)
	t.Parallel()
	c := startCollector(t)
	app := startApp(t, c)
	var told []observe.Event
	o := observe.Tee(
		app.observer(otelx.WithEvents(otelx.SpanEvents|otelx.LogEvents)),
		observe.Func(func(_ context.Context, e observe.Event) { told = append(told, e) }))
	ctx, span := app.tracer().Start(t.Context(), "request")
	workload.Everything(ctx, o)
	span.End()
	app.flush(t)

	require.Equal(t, 1, c.traces.SpanCount(), "policies make no spans of their own")
	arrived := c.span(t, "request")
	records := c.records()
	require.Len(t, told, len(records))
	require.Len(t, told, arrived.Events().Len())
	seen := map[string]bool{}
	for i, r := range records { // in the order in which they were told
		e := arrived.Events().At(i)
		assert.Equal(t, r.EventName(), e.Name())
		seen[e.Name()] = true
		assertEvent(t, r, e)
		assert.Equal(t, told[i].Time.UnixNano(), r.Timestamp().AsTime().UnixNano(), e.Name())
		assert.Equal(t, arrived.TraceID(), r.TraceID(), e.Name())
		assert.Equal(t, arrived.SpanID(), r.SpanID(), e.Name())
	}
	for n := range semconv.Events {
		assert.True(t, seen[semconv.Events[n].Name], "%s has not arrived", semconv.Events[n].Name)
	}
}

func assertEvent(t *testing.T, r plog.LogRecord, e ptrace.SpanEvent) {
	t.Helper()
	i := slices.IndexFunc(semconv.Events, func(e semconv.Event) bool { return e.Name == r.EventName() })
	require.GreaterOrEqual(t, i, 0, "%s is not in the registry", r.EventName())
	want := &semconv.Events[i]
	severity := want.Severity
	if by, ok := r.Attributes().Get(want.SeverityBy); ok {
		if of, ok := want.SeverityOf[by.Str()]; ok {
			severity = of
		}
	}
	severities := map[slog.Level]plog.SeverityNumber{
		slog.LevelDebug: plog.SeverityNumberDebug, slog.LevelInfo: plog.SeverityNumberInfo, slog.LevelWarn: plog.SeverityNumberWarn,
	}
	assert.Equal(t, severities[severity], r.SeverityNumber(), want.Name)
	assertAttributes(t, want.Name, want.Attributes, r.Attributes())
	assertAttributes(t, want.Name, want.Attributes, e.Attributes())
	onSpan := e.Attributes().AsRaw()
	delete(onSpan, semconv.EventLag) // only a span event has it
	assert.Equal(t, r.Attributes().AsRaw(), onSpan, want.Name)
}

func TestExemplarsOfTheDurationPointToTheCallersTrace(t *testing.T) {
	e2e.Real(t)
	t.Parallel()
	c := startCollector(t)
	app := startApp(t, c)
	p := policy.NewPipeline("charge", policy.Timeout(policyLimit)).Observed(app.observer())
	callers := map[string]trace.SpanContext{} // by outcome
	for outcome, fn := range map[string]policy.Func{semconv.OutcomeSuccess: workload.Succeed, semconv.OutcomeFailure: workload.Fail} {
		ctx, span := app.tracer().Start(t.Context(), "request")
		_ = p.Do(ctx, fn)
		span.End()
		callers[outcome] = span.SpanContext()
	}
	_ = p.Do(t.Context(), workload.Succeed) // outside a trace: no exemplar
	app.flush(t)

	duration, ok := c.metricsByName(t)[semconv.PipelineDuration]
	require.True(t, ok)
	points := duration.Histogram().DataPoints()
	require.Equal(t, len(callers), points.Len())
	for i := range points.Len() {
		point := points.At(i)
		outcome, _ := point.Attributes().Get(semconv.CallOutcome)
		caller := callers[outcome.Str()]
		require.Equal(t, 1, point.Exemplars().Len(), outcome.Str())
		exemplar := point.Exemplars().At(0)
		assert.Equal(t, caller.TraceID().String(), exemplar.TraceID().String())
		assert.Equal(t, caller.SpanID().String(), exemplar.SpanID().String())
		assert.LessOrEqual(t, exemplar.DoubleValue(), point.Max())
	}
}

func TestSpansOfAPipelineAndItsAttemptsArriveUnderTheCallersSpan(t *testing.T) {
	e2e.Real(t)
	t.Parallel()
	c := startCollector(t)
	app := startApp(t, c)
	ctx, span := app.tracer().Start(t.Context(), "request")
	p := twoAttempts(app.observer(otelx.WithSpans()))
	require.ErrorIs(t, p.Do(ctx, workload.Fail), workload.ErrDown)
	span.End()
	app.flush(t)

	request, call := c.span(t, "request"), c.span(t, "pipeline charge")
	assert.Equal(t, request.SpanID(), call.ParentSpanID())
	for _, name := range []string{"attempt 1", "attempt 2"} {
		attempt := c.span(t, name)
		assert.Equal(t, call.SpanID(), attempt.ParentSpanID(), name)
		assert.Equal(t, call.TraceID(), attempt.TraceID(), name)
		assert.Equal(t, ptrace.StatusCodeError, attempt.Status().Code(), name)
	}
}
