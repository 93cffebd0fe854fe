package otelx_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// A pipeline that is there before the provider, as a package-level one would be, reports to it all the same.
func Example_exporting() {
	ctx := context.Background()
	charge := policy.NewPipeline("charge", policy.Timeout(5*time.Second))

	reader := sdkmetric.NewManualReader() // a program has a PeriodicReader with its exporter here
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	defer func() { _ = provider.Shutdown(ctx) }()
	otel.SetMeterProvider(provider)

	_ = charge.Do(ctx, func(context.Context) error { return nil })
	_ = charge.Do(ctx, func(context.Context) error { return errors.New("card declined") })

	print(reader, "charge")
	// Output:
	// switchgear.pipeline.active [switchgear.pipeline.name=charge] 0
	// switchgear.pipeline.duration [error.type=_OTHER switchgear.call.outcome=failure switchgear.pipeline.name=charge] 1 call
	// switchgear.pipeline.duration [switchgear.call.outcome=success switchgear.pipeline.name=charge] 1 call
	// switchgear.timeout.calls [switchgear.policy.name=charge switchgear.timeout.result=canceled] 0
	// switchgear.timeout.calls [switchgear.policy.name=charge switchgear.timeout.result=completed] 2
	// switchgear.timeout.calls [switchgear.policy.name=charge switchgear.timeout.result=late] 0
	// switchgear.timeout.calls [switchgear.policy.name=charge switchgear.timeout.result=timed_out] 0
}

// Telemetry as usual, and state changes in the log as well.
func ExampleDefault() {
	log := observe.Slog(logger())
	changes := observe.Func(func(ctx context.Context, e observe.Event) {
		if e.Kind == observe.StateChange {
			log.Observe(ctx, e)
		}
	})
	api := breaker.New("mail-api", breaker.Config{Observer: observe.Tee(otelx.Default(), changes)})
	api.ForceOpen()
	// Output: level=WARN msg="circuit breaker mail-api: closed → forced_open" policy=circuit_breaker name=mail-api from=closed to=forced_open reason=manual
}

// logger writes to what an example's output is compared with, without the time, which differs from run to run.
func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// An observer of its own for each provider: here for one that is not the global one.
func ExampleNew() {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	observer := otelx.New(otelx.WithMeterProvider(provider), otelx.WithEvents(0)) // metrics only
	_ = policy.NewPipeline("refund").Observed(observer).Do(context.Background(), func(context.Context) error { return nil })

	print(reader, "refund")
	// Output:
	// switchgear.pipeline.active [switchgear.pipeline.name=refund] 0
	// switchgear.pipeline.duration [switchgear.call.outcome=success switchgear.pipeline.name=refund] 1 call
}

func ExampleWithMeterProvider() {
	reader := sdkmetric.NewManualReader()
	observer := otelx.New(otelx.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	refund := policy.NewPipeline("refund").Observed(observer)

	_ = refund.Do(context.Background(), func(context.Context) error { return nil })

	print(reader, "refund")
	// Output:
	// switchgear.pipeline.active [switchgear.pipeline.name=refund] 0
	// switchgear.pipeline.duration [switchgear.call.outcome=success switchgear.pipeline.name=refund] 1 call
}

// A fallback becomes an event on the span of the call.
func ExampleWithEvents() {
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("shop")
	observer := otelx.New(otelx.WithEvents(otelx.SpanEvents))
	price := policy.NewPipeline("price", policy.Fallback(usual)).Observed(observer)

	ctx, span := tracer.Start(context.Background(), "GET /price")
	_ = price.Do(ctx, func(context.Context) error { return errors.New("connection refused") })
	span.End()

	for _, e := range spans.Ended()[0].Events() {
		fmt.Println(e.Name, e.Attributes[0].Value.AsString())
	}
	// Output: switchgear.fallback.used price
}

// The same as a log record, with the severity, the time and the trace of the call.
func ExampleWithLoggerProvider() {
	logs := &logRecorder{} // a program has its exporter here
	provider := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewSimpleProcessor(logs)))
	observer := otelx.New(otelx.WithEvents(otelx.SpanEvents|otelx.LogEvents), otelx.WithLoggerProvider(provider))
	price := policy.NewPipeline("price", policy.Fallback(usual)).Observed(observer)

	_ = price.Do(context.Background(), func(context.Context) error { return errors.New("connection refused") })

	for _, r := range logs.records {
		fmt.Println(r.Severity(), r.EventName())
	}
	// Output: INFO switchgear.fallback.used
}

func ExampleWithTracerProvider() {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	observer := otelx.New(otelx.WithTracerProvider(provider), otelx.WithSpans())
	_ = policy.NewPipeline("refund").Observed(observer).Do(context.Background(), func(context.Context) error { return nil })

	fmt.Println(spans.Ended()[0].Name())
	// Output: pipeline refund
}

func ExampleWithSpans() {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	observer := otelx.New(otelx.WithSpans(), otelx.WithTracerProvider(provider))
	charge := policy.NewPipeline("charge").Observed(observer)

	_ = charge.Do(context.Background(), func(context.Context) error { return errors.New("card declined") })

	for _, s := range spans.Ended() {
		fmt.Println(s.Name(), s.Status().Code, s.Status().Description)
	}
	// Output: pipeline charge Error card declined
}

// An operator opens a breaker: nobody's request, so there is no span but its own.
func ExampleWithTransitionSpans() {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	observer := otelx.New(otelx.WithTransitionSpans(), otelx.WithTracerProvider(provider))

	observer.Observe(context.Background(), observe.Event{ // what Breaker.Trip tells
		Kind: observe.StateChange, Policy: "circuit_breaker", Name: "payments-api", From: "closed", To: "open", Reason: "manual",
	})

	fmt.Println(spans.Ended()[0].Name())
	// Output: switchgear.circuit_breaker.state_change
}

func usual(context.Context, error) error { return nil }

// print prints each series of the policies of a name that reader collects, sorted.
func print(reader sdkmetric.Reader, of string) {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		fmt.Println(err)
	}
	var lines []string
	add := func(name string, set attribute.Set, value any) {
		var attrs []string
		for _, kv := range set.ToSlice() {
			if strings.HasSuffix(string(kv.Key), ".name") && kv.Value.AsString() != of {
				return // the global provider may have others
			}
			attrs = append(attrs, string(kv.Key)+"="+kv.Value.AsString())
		}
		lines = append(lines, fmt.Sprint(name, " ", attrs, " ", value))
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				add(m.Name, p.Attributes, p.Value)
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				add(m.Name, p.Attributes, fmt.Sprint(p.Count, " call"))
			}
		}
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Println(line)
	}
}
