package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
)

// startTelemetry sets the global providers: that is all it takes for policies to report. The reader is for showing on the
// terminal what was collected; what the environment asks for is exported as well. stop sends the rest.
func startTelemetry(ctx context.Context, stderr io.Writer) (reader *metric.ManualReader, stop func(context.Context) error, err error) {
	reader = metric.NewManualReader()
	readers := []metric.Option{metric.WithReader(reader)}
	if exported("OTEL_METRICS_EXPORTER") {
		exporter, err := newMetricExporter(ctx)
		if err != nil {
			return nil, nil, err
		}
		readers = append(readers, metric.WithReader(exporter))
	}
	meters := metric.NewMeterProvider(readers...)
	otel.SetMeterProvider(meters)

	var spans []trace.TracerProviderOption
	if exported("OTEL_TRACES_EXPORTER") {
		exporter, err := autoexport.NewSpanExporter(ctx)
		if err != nil {
			return nil, nil, errors.Join(err, meters.Shutdown(ctx))
		}
		spans = append(spans, trace.WithBatcher(exporter))
	}
	traces := trace.NewTracerProvider(spans...)
	if spans != nil {
		otel.SetTracerProvider(traces)
	}

	var once sync.Once
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		once.Do(func() { fmt.Fprintln(stderr, "outage: telemetry, and no more of this:", err) })
	}))
	return reader, func(ctx context.Context) error {
		return errors.Join(traces.Shutdown(ctx), meters.Shutdown(ctx))
	}, nil
}

// exported reports whether a signal is wanted elsewhere: its own variable is set, or the one for all of them.
func exported(signal string) bool {
	return os.Getenv(signal) != "" || os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != ""
}

// newMetricExporter returns what the environment asks for. By default it sends each second: this program is over before
// the minute is that the SDK would wait.
func newMetricExporter(ctx context.Context) (metric.Reader, error) {
	const interval = "OTEL_METRIC_EXPORT_INTERVAL"
	if os.Getenv(interval) == "" {
		if err := os.Setenv(interval, "1000"); err != nil {
			return nil, err
		}
	}
	return autoexport.NewMetricReader(ctx)
}
