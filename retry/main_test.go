package retry

import (
	"context"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy/observe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// events is an Observer that keeps what it is told.
type events struct {
	mu   sync.Mutex
	told []observe.Event
}

func (e *events) Observe(_ context.Context, told observe.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, told)
}

func (e *events) Attach(s observe.Source) observe.Probe { return observe.Discard.Attach(s) }

func (e *events) of(kind observe.Kind) []observe.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []observe.Event
	for _, told := range e.told {
		if told.Kind == kind {
			found = append(found, told)
		}
	}
	return found
}

// meter is an Observer that is the real thing, with a reader of what it reports.
type meter struct {
	observe.Observer
	reader *sdkmetric.ManualReader
}

func newMeter(t testing.TB) meter {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return meter{otelx.New(otelx.WithMeterProvider(provider), otelx.WithEvents(0)), reader}
}

// collect returns the sums that are not zero, by the metric and its attributes, in order, but for the policy's name.
func (m meter) collect(t testing.TB) map[string]int64 {
	t.Helper()
	got := map[string]int64{}
	m.each(t, func(metric metricdata.Metrics) {
		sum, ok := metric.Data.(metricdata.Sum[int64])
		if !ok {
			return
		}
		for _, p := range sum.DataPoints {
			if p.Value != 0 {
				got[label(metric.Name, p.Attributes)] += p.Value
			}
		}
	})
	return got
}

// waits returns how many total waits were recorded, and their sum in seconds.
func (m meter) waits(t testing.TB) (count uint64, sum float64) {
	t.Helper()
	m.each(t, func(metric metricdata.Metrics) {
		if h, ok := metric.Data.(metricdata.Histogram[float64]); ok && metric.Name == "switchgear.retry.delay" {
			for _, p := range h.DataPoints {
				count += p.Count
				sum += p.Sum
			}
		}
	})
	return count, sum
}

func (m meter) each(t testing.TB, visit func(metricdata.Metrics)) {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, m.reader.Collect(context.Background(), &all))
	for _, scope := range all.ScopeMetrics {
		for _, metric := range scope.Metrics {
			visit(metric)
		}
	}
}

func label(name string, attrs attribute.Set) string {
	for _, kv := range attrs.ToSlice() {
		if kv.Key != "switchgear.policy.name" {
			name += " " + kv.Value.AsString()
		}
	}
	return name
}
