package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// shown are the metrics that tell the story of an outage, each with the attributes to tell its series apart by.
// docs/telemetry.md lists all there are.
var shown = []struct {
	metric string
	by     []attribute.Key
}{
	{"switchgear.circuit_breaker.transitions", []attribute.Key{"switchgear.circuit_breaker.previous_state", "switchgear.circuit_breaker.state"}},
	{"switchgear.circuit_breaker.time", []attribute.Key{"switchgear.circuit_breaker.state"}},
	{"switchgear.circuit_breaker.calls", []attribute.Key{"switchgear.circuit_breaker.state", "switchgear.call.outcome"}},
	{"switchgear.circuit_breaker.late_results", nil},
	{"switchgear.retry.calls", []attribute.Key{"switchgear.retry.result"}},
	{"switchgear.timeout.calls", []attribute.Key{"switchgear.policy.name", "switchgear.timeout.result"}},
	{"switchgear.bulkhead.calls", []attribute.Key{"switchgear.acquire.result"}},
	{"switchgear.fallback.calls", []attribute.Key{"switchgear.call.outcome"}},
	{"switchgear.pipeline.duration", []attribute.Key{"switchgear.call.outcome", "error.type"}},
}

// collect reads all metrics, by name.
func collect(ctx context.Context, reader *metric.ManualReader) (map[string]metricdata.Aggregation, error) {
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &collected); err != nil {
		return nil, err
	}
	byName := map[string]metricdata.Aggregation{}
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			byName[m.Name] = m.Data
		}
	}
	return byName, nil
}

// printMetrics prints the metrics shown, without what stayed at 0.
func printMetrics(out io.Writer, paint painter, collected map[string]metricdata.Aggregation) {
	fmt.Fprintf(out, "\n%s  %s\n\n", paint(bold, "What OpenTelemetry collected"),
		paint(dim, "the run with the pipeline; OTEL_EXPORTER_OTLP_ENDPOINT sends it to a backend"))
	for _, s := range shown {
		name := s.metric
		for _, p := range pointsOf(collected[s.metric], s.by) {
			fmt.Fprintf(out, "  %-40s %-36s %12s\n", name, p.series, p.value)
			name = ""
		}
	}
}

// point is the value of one series.
type point struct{ series, value string }

// pointsOf returns the series of a metric that are not 0.
func pointsOf(data metricdata.Aggregation, by []attribute.Key) []point {
	var points []point
	add := func(set attribute.Set, zero bool, format string, value any) {
		if zero {
			return
		}
		var labels []string
		for _, key := range by {
			if v, ok := set.Value(key); ok {
				labels = append(labels, v.String())
			}
		}
		points = append(points, point{strings.Join(labels, " → "), fmt.Sprintf(format, value)})
	}
	switch data := data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, p.Value == 0, "%s", count(int(p.Value)))
		}
	case metricdata.Sum[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, p.Value == 0, "%.3f s", p.Value)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, p.Count == 0, "%s", count(int(p.Count)))
		}
	}
	slices.SortFunc(points, func(a, b point) int { return cmp.Compare(a.series, b.series) })
	return points
}
