package otelx_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// breakerRows are 20 rows over five metrics, as a breaker has them.
func breakerRows() []observe.Row {
	states := []string{"closed", "open", "half_open"}
	var rows []observe.Row
	for _, state := range states {
		attr := observe.Attr{Key: "switchgear.circuit_breaker.state", Value: state}
		for _, outcome := range []string{"success", "failure", "ignored"} {
			rows = append(rows, observe.Row{Metric: "switchgear.circuit_breaker.calls", Attrs: []observe.Attr{attr, {Key: "switchgear.call.outcome", Value: outcome}}})
		}
		rows = append(rows,
			observe.Row{Metric: "switchgear.circuit_breaker.transitions", Attrs: []observe.Attr{attr}})
	}
	rows = append(rows, observe.Row{Metric: "switchgear.circuit_breaker.late_results"}, observe.Row{Metric: "switchgear.circuit_breaker.slow_calls"})
	for _, state := range states {
		attrs := []observe.Attr{{Key: "switchgear.circuit_breaker.state", Value: state}}
		rows = append(rows, observe.Row{Metric: "switchgear.circuit_breaker.status", Attrs: attrs}, observe.Row{Metric: "switchgear.circuit_breaker.time", Attrs: attrs})
	}
	return rows
}

// BenchmarkCollect collects 1,000 policies of 20 rows each; the rest of ns/series is the SDK's.
func BenchmarkCollect(b *testing.B) {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithCardinalityLimit(0))
	o := otelx.New(otelx.WithMeterProvider(provider))
	rows := breakerRows()
	const policies = 1000
	for n := range policies {
		o.Attach(observe.Source{
			Policy: "circuit_breaker", Name: fmt.Sprint("b", n), Rows: rows, Counts: make([]atomic.Int64, len(rows)-6),
			Live: func(v []int64) bool { clear(v); return true },
		})
	}
	var all metricdata.ResourceMetrics
	b.ReportAllocs()
	for b.Loop() {
		if err := reader.Collect(context.Background(), &all); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*policies*len(rows)), "ns/series")
}

func BenchmarkRecord(b *testing.B) {
	sampled, span := sdktrace.NewTracerProvider().Tracer("test").Start(context.Background(), "caller")
	defer span.End()
	sdk, _ := observed()
	for _, c := range []struct {
		name string
		o    observe.Observer
		ctx  context.Context
	}{{"NoSDK", otelx.Default(), context.Background()}, {"SDK", sdk, context.Background()}, {"Sampled", sdk, sampled}} {
		_, probe := attachDevice(c.o, "db")
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if probe.Enabled(c.ctx) {
					probe.Record(c.ctx, 0, time.Millisecond)
				}
			}
		})
	}
}

func BenchmarkObserve(b *testing.B) {
	o := otelx.New()
	ctx, span := sdktrace.NewTracerProvider().Tracer("test").Start(context.Background(), "caller")
	defer span.End()
	for _, c := range []struct {
		name string
		ctx  context.Context
	}{{"NoSpan", context.Background()}, {"Recording", ctx}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				o.Observe(c.ctx, eventCases[0].event)
			}
		})
	}
}

func BenchmarkAttach(b *testing.B) {
	o := otelx.New()
	rows := breakerRows()
	counts := make([]atomic.Int64, len(rows))
	b.ReportAllocs()
	for b.Loop() {
		o.Attach(observe.Source{Policy: "circuit_breaker", Name: "b", Rows: rows, Counts: counts}).Detach()
	}
}
