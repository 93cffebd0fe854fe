package otlp_test

import (
	"context"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/retry"
)

const policyLimit = time.Minute

// app is an application with OpenTelemetry set up as in production: all three signals, over OTLP and gRPC.
type app struct {
	meters  *metric.MeterProvider
	tracers *sdktrace.TracerProvider
	loggers *sdklog.LoggerProvider
}

// startApp returns an app that exports to c until the test ends.
func startApp(t *testing.T, c *collector) *app {
	t.Helper()
	ctx := t.Context()
	metrics, err := otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint(c.address), otlpmetricgrpc.WithInsecure())
	require.NoError(t, err)
	spans, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(c.address), otlptracegrpc.WithInsecure())
	require.NoError(t, err)
	logs, err := otlploggrpc.New(ctx, otlploggrpc.WithEndpoint(c.address), otlploggrpc.WithInsecure())
	require.NoError(t, err)
	a := &app{
		meters:  metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(metrics, metric.WithInterval(time.Hour)))),
		tracers: sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans)),
		loggers: sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(logs))),
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		require.NoError(t, a.meters.Shutdown(ctx))
		require.NoError(t, a.tracers.Shutdown(ctx))
		require.NoError(t, a.loggers.Shutdown(ctx))
	})
	return a
}

func (a *app) observer(opts ...otelx.Option) observe.Observer {
	return otelx.New(append(opts, otelx.WithMeterProvider(a.meters), otelx.WithTracerProvider(a.tracers), otelx.WithLoggerProvider(a.loggers))...)
}

func (a *app) tracer() trace.Tracer { return a.tracers.Tracer("app") }

// flush sends all there is.
func (a *app) flush(t *testing.T) {
	t.Helper()
	require.NoError(t, a.meters.ForceFlush(t.Context()))
	require.NoError(t, a.tracers.ForceFlush(t.Context()))
	require.NoError(t, a.loggers.ForceFlush(t.Context()))
}

func twoAttempts(o observe.Observer) *policy.Pipeline {
	return policy.NewPipeline("charge", retry.New(retry.Config{
		Attempts: 2,
		BackOff:  func() backoff.BackOff { return backoff.NewConstantBackOff(time.Millisecond) },
	})).Observed(o)
}

// metricsByName returns the metrics of the policies that arrived.
func (c *collector) metricsByName(t *testing.T) map[string]pmetric.Metric {
	t.Helper()
	byName := map[string]pmetric.Metric{}
	for _, md := range c.metrics.AllMetrics() {
		for _, resource := range md.ResourceMetrics().All() {
			for _, scope := range resource.ScopeMetrics().All() {
				require.Equal(t, otelx.ScopeName, scope.Scope().Name())
				for _, m := range scope.Metrics().All() {
					byName[m.Name()] = m
				}
			}
		}
	}
	return byName
}

func attributeSets(m pmetric.Metric) (sets []pcommon.Map) {
	if m.Type() == pmetric.MetricTypeHistogram {
		for _, point := range m.Histogram().DataPoints().All() {
			sets = append(sets, point.Attributes())
		}
		return sets
	}
	for _, point := range m.Sum().DataPoints().All() {
		sets = append(sets, point.Attributes())
	}
	return sets
}

// span returns the one span of that name that arrived.
func (c *collector) span(t *testing.T, name string) ptrace.Span {
	t.Helper()
	var found []ptrace.Span
	for _, td := range c.traces.AllTraces() {
		for _, resource := range td.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					if span.Name() == name {
						found = append(found, span)
					}
				}
			}
		}
	}
	require.Len(t, found, 1, "spans %q", name)
	return found[0]
}

// records returns the log records that arrived, in order.
func (c *collector) records() (all []plog.LogRecord) {
	for _, ld := range c.logs.AllLogs() {
		for _, resource := range ld.ResourceLogs().All() {
			for _, scope := range resource.ScopeLogs().All() {
				for _, r := range scope.LogRecords().All() {
					all = append(all, r)
				}
			}
		}
	}
	return all
}
