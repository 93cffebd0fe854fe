// Package contract holds real policies against the registry of telemetry: what an SDK collects of them, and what it records,
// is what the tables of internal/semconv say, no more and no less.
package contract

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = errors.New("down")

// lab is an observer that reports to a whole SDK, and everything that arrives there.
type lab struct {
	observe.Observer
	t *testing.T

	cumulative, delta *sdkmetric.ManualReader
	spans             *tracetest.SpanRecorder
	tracer            trace.Tracer // of the callers
	logs              logs

	mu      sync.Mutex
	sources []observe.Source // of the policies
	told    []observe.Event
	kept    []any // policies that must not be collected as garbage
}

// newLab returns a lab. With opts, its observer has these beside its providers.
func newLab(t *testing.T, opts ...otelx.Option) *lab {
	l := &lab{t: t, cumulative: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	l.delta = sdkmetric.NewManualReader(sdkmetric.WithTemporalitySelector(deltaOfTotals))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(l.spans))
	l.tracer = tracers.Tracer("caller")
	l.Observer = otelx.New(append([]otelx.Option{
		otelx.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(l.cumulative), sdkmetric.WithReader(l.delta))),
		otelx.WithTracerProvider(tracers),
		otelx.WithLoggerProvider(sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewSimpleProcessor(&l.logs)))),
	}, opts...)...)
	return l
}

// deltaOfTotals is what exporters to a backend of deltas choose: totals as deltas, current values as they are.
func deltaOfTotals(kind sdkmetric.InstrumentKind) metricdata.Temporality {
	switch kind {
	case sdkmetric.InstrumentKindUpDownCounter, sdkmetric.InstrumentKindObservableUpDownCounter:
		return metricdata.CumulativeTemporality
	}
	return metricdata.DeltaTemporality
}

func (l *lab) Attach(s observe.Source) observe.Probe {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sources = append(l.sources, s)
	return l.Observer.Attach(s)
}

func (l *lab) Observe(ctx context.Context, e observe.Event) {
	l.mu.Lock()
	l.told = append(l.told, e)
	l.mu.Unlock()
	l.Observer.Observe(ctx, e)
}

// pipeline returns a pipeline that reports here.
func (l *lab) pipeline(name string, policies ...policy.Policy) *policy.Pipeline {
	p := policy.NewPipeline(name, policies...).Observed(l)
	l.keep(p)
	return p
}

func (l *lab) keep(p any) { l.kept = append(l.kept, p) }

// run runs fn under p in a span of the caller's.
func (l *lab) run(ctx context.Context, p policy.Policy, fn policy.Func) error {
	ctx, span := l.tracer.Start(ctx, "caller")
	defer span.End()
	return p.Do(ctx, fn)
}

// call is a call whose fn returns err.
func (l *lab) call(p policy.Policy, err error) error {
	return l.run(context.Background(), p, func(context.Context) error { return err })
}

// abandoned is a call whose caller leaves while fn runs, which then returns err.
func (l *lab) abandoned(p policy.Policy, err error) error {
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	return l.run(ctx, p, func(context.Context) error {
		leave()
		return err
	})
}

// collect returns what a reader collects, by the metric's name.
func (l *lab) collect(r sdkmetric.Reader) map[string]metricdata.Metrics {
	l.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(l.t, r.Collect(context.Background(), &all))
	metrics := map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		require.Equal(l.t, otelx.ScopeName, scope.Scope.Name)
		for _, m := range scope.Metrics {
			metrics[m.Name] = m
		}
	}
	return metrics
}

// point is one series at a collection.
type point struct {
	attrs attribute.Set
	value float64 // the number of recordings of a histogram
}

// points returns the series of a metric.
func points(m metricdata.Metrics) (all []point) {
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			all = append(all, point{p.Attributes, float64(p.Value)})
		}
	case metricdata.Sum[float64]:
		for _, p := range data.DataPoints {
			all = append(all, point{p.Attributes, p.Value})
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			all = append(all, point{p.Attributes, float64(p.Count)})
		}
	}
	return all
}

// readings returns the values of all series, by name and attributes.
func (l *lab) readings(r sdkmetric.Reader) map[string]float64 {
	all := map[string]float64{}
	for name, m := range l.collect(r) {
		for _, p := range points(m) {
			all[name+"{"+p.attrs.Encoded(attribute.DefaultEncoder())+"}"] = p.value
		}
	}
	return all
}

// logs keeps log records.
type logs struct {
	mu      sync.Mutex
	records []sdklog.Record
}

func (l *logs) Export(_ context.Context, records []sdklog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range records {
		l.records = append(l.records, r.Clone())
	}
	return nil
}

func (*logs) Shutdown(context.Context) error   { return nil }
func (*logs) ForceFlush(context.Context) error { return nil }

// attrsOf returns the attributes of a log record by key.
func attrsOf(r sdklog.Record) map[string]attribute.Value {
	all := map[string]attribute.Value{}
	r.WalkAttributes(func(kv attribute.KeyValue) bool {
		all[string(kv.Key)] = kv.Value
		return true
	})
	return all
}
