package otelx_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// A call's whole price: asking, and recording where somebody listens.
func record(ctx context.Context, probe observe.Probe) func() {
	return func() {
		if probe.Enabled(ctx) {
			probe.Record(ctx, 0, time.Second)
		}
	}
}

func TestARecordingAllocatesNothing(t *testing.T) {
	o, _ := observed()
	d, probe := attachDevice(o, "db")
	sampled, span := sdktrace.NewTracerProvider().Tracer("test").Start(context.Background(), "caller")
	defer span.End()
	assert.Zero(t, testing.AllocsPerRun(1000, record(context.Background(), probe)))
	t.Logf("in a sampled span, exemplars of the SDK included: %v", testing.AllocsPerRun(1000, record(sampled, probe)))
	runtime.KeepAlive(d)
}

func TestWithoutAnSDKACallAllocatesNothing(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	for _, o := range []observe.Observer{
		otelx.Default(),
		otelx.New(otelx.WithEvents(otelx.SpanEvents|otelx.LogEvents), otelx.WithTransitionSpans()),
	} {
		d, probe := attachDevice(o, "db")
		probe.Record(context.Background(), 0, time.Second)
		assert.Zero(t, testing.AllocsPerRun(1000, record(context.Background(), probe)))
		assert.Zero(t, testing.AllocsPerRun(1000, func() { o.Observe(context.Background(), eventCases[4].event) }))
		runtime.KeepAlive(d)
	}
}

func TestAnEventWithoutARecordingSpanAllocatesNothing(t *testing.T) {
	o := otelx.New()
	quiet := otelx.New(otelx.WithEvents(otelx.LogEvents), otelx.WithLoggerProvider(sdklog.NewLoggerProvider()))
	dropped, span := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())).Tracer("test").Start(context.Background(), "caller")
	defer span.End()
	for n, c := range eventCases[:12] {
		assert.Zero(t, testing.AllocsPerRun(1000, func() { o.Observe(context.Background(), c.event) }), "case %d", n)
		assert.Zero(t, testing.AllocsPerRun(1000, func() { o.Observe(dropped, c.event) }), "case %d", n)
		assert.Zero(t, testing.AllocsPerRun(1000, func() { quiet.Observe(dropped, c.event) }), "case %d", n)
	}
}
