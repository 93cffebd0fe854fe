package otelx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy/observe"
)

func TestEveryMetricOfTheTableIsMadeAsItSays(t *testing.T) {
	o, reader := observed()
	var rows, hists []observe.Row
	for _, m := range semconv.Metrics {
		row := observe.Row{Metric: m.Name, Attrs: []observe.Attr{{Key: "k", Value: "v"}}}
		if m.Instrument == semconv.Histogram {
			hists = append(hists, row)
		} else {
			rows = append(rows, row)
		}
	}
	probe := o.Attach(observe.Source{Policy: "all", Name: "n", Rows: rows, Durations: hists, Live: func(v []int64) bool {
		for i := range v {
			v[i] = int64(1500 * time.Millisecond)
		}
		return true
	}})
	for row := range hists {
		require.True(t, probe.Enabled(context.Background()))
		probe.Record(context.Background(), row, 30*time.Millisecond)
		probe.Record(context.Background(), row, 300*time.Millisecond)
	}
	got := collect(t, reader)
	require.Len(t, got, len(semconv.Metrics))
	for _, want := range semconv.Metrics {
		m := got[want.Name]
		assert.Equal(t, want.Unit, m.Unit, want.Name)
		assert.Equal(t, want.Description, m.Description, want.Name)
		wantKeys := map[string]string{want.NameKey: "n", "k": "v"} // and none of its own accord
		keys := map[string]string{}
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			assert.False(t, want.Seconds, want.Name)
			assert.Equal(t, want.Instrument == semconv.ObservableCounter, data.IsMonotonic, want.Name)
			assert.EqualValues(t, 1500*time.Millisecond, data.DataPoints[0].Value, want.Name)
			for _, kv := range data.DataPoints[0].Attributes.ToSlice() {
				keys[string(kv.Key)] = kv.Value.AsString()
			}
		case metricdata.Sum[float64]:
			assert.True(t, want.Seconds, want.Name)
			assert.Equal(t, want.Instrument == semconv.ObservableCounter, data.IsMonotonic, want.Name)
			assert.InDelta(t, 1.5, data.DataPoints[0].Value, 0, want.Name)
			for _, kv := range data.DataPoints[0].Attributes.ToSlice() {
				keys[string(kv.Key)] = kv.Value.AsString()
			}
		case metricdata.Histogram[float64]:
			assert.Equal(t, semconv.Histogram, want.Instrument, want.Name)
			point := data.DataPoints[0]
			assert.Equal(t, []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}, point.Bounds, want.Name)
			assert.EqualValues(t, 1, point.BucketCounts[3], "%s: 30 ms", want.Name)
			assert.EqualValues(t, 1, point.BucketCounts[7], "%s: 300 ms", want.Name)
			assert.InDelta(t, .33, point.Sum, 1e-9, want.Name)
			for _, kv := range point.Attributes.ToSlice() {
				keys[string(kv.Key)] = kv.Value.AsString()
			}
		}
		assert.Equal(t, wantKeys, keys, want.Name)
	}
}

func TestPoliciesMadeBeforeTheProviderReportToItToo(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	o := otelx.Default()
	require.Same(t, o, otelx.Default())
	d, probe := attachDevice(o, "db")
	d.running.Store(1)
	require.False(t, probe.Enabled(context.Background()))
	probe.Record(context.Background(), 0, time.Second) // not lost on anybody who would have asked
	const calls = 10
	var wg sync.WaitGroup
	for range calls { // while the provider is set
		wg.Go(func() {
			d.counts[acquired].Add(1)
			if probe.Enabled(context.Background()) {
				probe.Record(context.Background(), 0, time.Second)
			}
			late := newDevice(o, "late")
			late.counts[acquired].Add(1)
			runtime.KeepAlive(late)
		})
	}
	reader := sdkmetric.NewManualReader()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	wg.Wait()
	got := readings(t, reader)
	equal(t, calls, got[callsOf("db", "acquired")])
	equal(t, 1, got[usageOf("db")])

	require.True(t, probe.Enabled(context.Background()))
	probe.Record(context.Background(), 1, time.Second)
	equal(t, 1, readings(t, reader)["bulkhead.wait.duration{acquire.result=timeout,policy.name=db}"])
	runtime.KeepAlive(d)
}

func TestObserversAreMadeWhileTheProviderIsSet(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	reports := handled(t)
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			if n == 4 {
				otel.SetMeterProvider(provider)
				return
			}
			manual(otelx.New(), fmt.Sprint("db", n))
		})
	}
	wg.Wait()
	assert.Empty(t, reports())
	assert.Len(t, readings(t, reader), 7*len(deviceRows))
}

func TestWithoutAnSDKNothingGrows(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	reports := handled(t)
	o := otelx.Default()
	makeAndDrop(t, o, func() {})
	for n := range 3000 {
		o.Attach(observe.Source{Policy: "bulkhead", Name: fmt.Sprint(n), Durations: deviceDurations}).Record(context.Background(), 0, time.Second)
	}
	assert.Empty(t, reports())
}

func TestRoomForManyPoliciesIsGivenBack(t *testing.T) {
	for _, name := range []func(n int) string{
		func(n int) string { return fmt.Sprint("p", n) },
		func(int) string { return "all the same" },
	} {
		reader := sdkmetric.NewManualReader()
		o := otelx.New(otelx.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithView(
			func(i sdkmetric.Instrument) (sdkmetric.Stream, bool) { // the SDK's own memory stays out of it
				return sdkmetric.Stream{Name: i.Name, Aggregation: sdkmetric.AggregationDrop{}}, i.Name != "switchgear.retry.calls"
			},
		))))
		heap := func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		manual(o, "kept")
		manual(o, name(0))
		readings(t, reader)
		before := heap()
		func() {
			var drops []func()
			for n := range 50_000 {
				_, drop := manual(o, name(n))
				drops = append(drops, drop)
			}
			readings(t, reader)
			for _, drop := range drops {
				drop()
			}
		}()
		for range 3 {
			readings(t, reader)
		}
		after := heap()
		assert.LessOrEqual(t, after, before+1<<18, "before %d", before)
		runtime.KeepAlive(o)
	}
}

func TestPoliciesMadeAndDroppedLeaveNoMemoryAndNoSeries(t *testing.T) {
	o, reader := observed()
	makeAndDrop(t, o, func() { readings(t, reader) })
	for n := 0; len(readings(t, reader)) > 1; n++ { // the histogram's one series stays
		require.Less(t, n, 100)
		runtime.GC()
	}
	assert.Len(t, readings(t, reader), 1)
}

// makeAndDrop makes and drops 100,000 policies of different names, and fails if the heap has grown by that.
func makeAndDrop(t *testing.T, o observe.Observer, collect func()) {
	round := func(from, to int) {
		for n := from; n < to; n++ {
			d, probe := attachDevice(o, fmt.Sprint("p", n))
			d.counts[acquired].Add(1)
			if n == 0 && probe.Enabled(context.Background()) {
				probe.Record(context.Background(), 0, time.Second)
			}
			if n%10_000 == 0 {
				collect()
			}
		}
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		collect()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	round(0, 1000)
	before := heap()
	round(1000, 101_000)
	const allowed = 1 << 20
	after := heap()
	for n := 0; n < 100 && after > before+allowed; n++ { // cleanups run beside it
		runtime.Gosched()
		after = heap()
	}
	assert.LessOrEqual(t, after, before+allowed)
}

func TestAMetricThatCannotBeMadeIsLeftOutAndReportedOnce(t *testing.T) {
	reports := handled(t)
	reader := sdkmetric.NewManualReader()
	sdk := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	o := otelx.New(otelx.WithMeterProvider(flawedProvider{MeterProvider: sdk, fails: func(name string) bool {
		return name == "switchgear.bulkhead.calls" || name == "switchgear.bulkhead.wait.duration"
	}}))
	d, probe := attachDevice(o, "db")
	d.running.Store(2)
	assert.False(t, probe.Enabled(context.Background()))
	probe.Record(context.Background(), 0, time.Second)
	assert.Equal(t, map[string]float64{usageOf("db"): 2, timeOf("db"): 0}, readings(t, reader))
	require.Len(t, reports(), 1)
	assert.Contains(t, reports()[0], "switchgear.bulkhead.calls: cannot make that")
	assert.Contains(t, reports()[0], "switchgear.bulkhead.wait.duration: cannot make that")
	runtime.KeepAlive(d)
}

func TestAProviderThatMakesNothingIsReportedOnce(t *testing.T) {
	reports := handled(t)
	sdk := sdkmetric.NewMeterProvider()
	all := flawedProvider{MeterProvider: sdk, fails: func(string) bool { return true }}
	d, probe := attachDevice(otelx.New(otelx.WithMeterProvider(all)), "db")
	probe.Record(context.Background(), 0, time.Second)
	runtime.KeepAlive(d)
	assert.Len(t, reports(), 1)

	callback := flawedProvider{MeterProvider: sdk, fails: func(name string) bool { return name == "callback" }}
	d, probe = attachDevice(otelx.New(otelx.WithMeterProvider(callback)), "db")
	probe.Record(context.Background(), 0, time.Second)
	runtime.KeepAlive(d)
	assert.Len(t, reports(), 2)
}

func TestANoopProviderIsSilent(t *testing.T) {
	reports := handled(t)
	d, probe := attachDevice(otelx.New(otelx.WithMeterProvider(noop.NewMeterProvider())), "db")
	assert.False(t, probe.Enabled(context.Background()))
	probe.Record(context.Background(), 0, time.Second)
	runtime.KeepAlive(d)
	assert.Empty(t, reports())
}

func TestAViewMayDropAMetricOrAnAttribute(t *testing.T) {
	reports := handled(t)
	reader := sdkmetric.NewManualReader()
	o := otelx.New(otelx.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithView(
		sdkmetric.NewView(sdkmetric.Instrument{Name: "switchgear.bulkhead.usage"}, sdkmetric.Stream{Aggregation: sdkmetric.AggregationDrop{}}),
		sdkmetric.NewView(sdkmetric.Instrument{Name: "switchgear.bulkhead.wait.duration"}, sdkmetric.Stream{Aggregation: sdkmetric.AggregationDrop{}}),
		sdkmetric.NewView(sdkmetric.Instrument{Name: "switchgear.bulkhead.calls"},
			sdkmetric.Stream{AttributeFilter: func(kv attribute.KeyValue) bool { return kv.Key == "switchgear.policy.name" }}),
	))))
	d, probe := attachDevice(o, "db")
	d.counts[acquired].Add(3)
	d.counts[rejected].Add(4)
	assert.False(t, probe.Enabled(context.Background()))
	assert.Equal(t, map[string]float64{"bulkhead.calls{policy.name=db}": 7, timeOf("db"): 0}, readings(t, reader))
	assert.Empty(t, reports())
	runtime.KeepAlive(d)
}

func TestAMetricThatNobodyKnowsIsReportedOnce(t *testing.T) {
	reports := handled(t)
	o, reader := observed()
	for range 2 {
		probe := o.Attach(observe.Source{
			Policy: "mine", Name: "x", Counts: make([]atomic.Int64, 2),
			Rows:      []observe.Row{{Metric: "my.own"}, {Metric: "switchgear.fallback.calls"}, {Metric: "switchgear.bulkhead.wait.duration"}},
			Durations: []observe.Row{{Metric: "switchgear.fallback.calls"}},
		})
		assert.False(t, probe.Enabled(context.Background()))
		probe.Record(context.Background(), 0, time.Second)
		probe.Record(context.Background(), 7, time.Second)
		probe.Record(context.Background(), -1, time.Second)
		assert.Equal(t, map[string]float64{"fallback.calls{policy.name=x}": 0}, readings(t, reader))
	}
	require.Len(t, reports(), 1)
	assert.Contains(t, reports()[0], "mine")
}

func TestPoliciesMadeFirstWinAtTheSDKsLimitAndItIsReportedOnce(t *testing.T) {
	reports := handled(t)
	o, reader := observed()
	for n := range 899 {
		manual(o, fmt.Sprint("p", n))
	}
	readings(t, reader)
	require.Empty(t, reports(), "1,798 series")
	for n := 899; n < 1500; n++ {
		manual(o, fmt.Sprint("p", n))
	}
	for range 2 {
		got := readings(t, reader)
		require.Contains(t, got, callsOf("p0", "acquired"))
		require.Contains(t, got, callsOf("p998", "acquired"))
		require.NotContains(t, got, callsOf("p1000", "acquired"))
		require.Contains(t, got, usageOf("p1499"))
		require.Contains(t, got, "bulkhead.calls{otel.metric.overflow=true}")
	}
	require.Len(t, reports(), 1)
	assert.Contains(t, reports()[0], "switchgear.bulkhead.calls")
	assert.Contains(t, reports()[0], "WithCardinalityLimit")
}

func TestRowsInAnotherOrderAreTheSameRows(t *testing.T) {
	reports := handled(t)
	o, reader := observed()
	for range 1000 {
		for _, rows := range [][]observe.Row{deviceRows[:2], {deviceRows[rejected], deviceRows[acquired]}} {
			counts := make([]atomic.Int64, 2)
			counts[1].Add(1)
			o.Attach(observe.Source{Policy: "bulkhead", Name: "db", Rows: rows, Counts: counts})
		}
	}
	assert.Equal(t, map[string]float64{callsOf("db", "acquired"): 1000, callsOf("db", "rejected"): 1000}, readings(t, reader))
	assert.Empty(t, reports(), "two series")
}

func TestAHistogramNearTheSDKsLimitIsReportedOnce(t *testing.T) {
	reports := handled(t)
	o, _ := observed()
	for range 3 { // the same series each time
		for n := range 1000 {
			probe := o.Attach(observe.Source{Policy: "bulkhead", Name: fmt.Sprint(n), Durations: deviceDurations})
			probe.Record(context.Background(), 0, time.Second)
			probe.Detach()
		}
	}
	assert.Empty(t, reports())
	for n := range 1000 {
		o.Attach(observe.Source{Policy: "bulkhead", Name: fmt.Sprint(n), Durations: deviceDurations}).Record(context.Background(), 1, time.Second)
	}
	require.Len(t, reports(), 1)
	assert.Contains(t, reports()[0], "switchgear.bulkhead.wait.duration")
}

func TestAnErrorHandlerMayMakePolicies(t *testing.T) {
	before := otel.GetErrorHandler()
	defer otel.SetErrorHandler(before)
	o, reader := observed()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) { manual(o, "made in a handler") }))
	o.Attach(observe.Source{Policy: "mine", Name: "x", Durations: []observe.Row{{Metric: "my.own"}}})
	broken, _ := manual(o, "broken")
	broken.broken.Store(true)
	readings(t, reader)
	assert.Contains(t, readings(t, reader), usageOf("made in a handler"))
}

// flawedProvider cannot make some instruments.
type flawedProvider struct {
	metric.MeterProvider
	fails func(name string) bool
}

func (p flawedProvider) Meter(name string, opts ...metric.MeterOption) metric.Meter {
	return flawedMeter{p.MeterProvider.Meter(name, opts...), p.fails}
}

type flawedMeter struct {
	metric.Meter
	fails func(name string) bool
}

var errFlawed = errors.New("cannot make that")

func (m flawedMeter) Int64ObservableCounter(name string, opts ...metric.Int64ObservableCounterOption) (metric.Int64ObservableCounter, error) {
	if m.fails(name) {
		return nil, errFlawed
	}
	return m.Meter.Int64ObservableCounter(name, opts...)
}

func (m flawedMeter) Int64ObservableUpDownCounter(name string, opts ...metric.Int64ObservableUpDownCounterOption) (metric.Int64ObservableUpDownCounter, error) {
	if m.fails(name) {
		return nil, errFlawed
	}
	return m.Meter.Int64ObservableUpDownCounter(name, opts...)
}

func (m flawedMeter) Float64ObservableCounter(name string, opts ...metric.Float64ObservableCounterOption) (metric.Float64ObservableCounter, error) {
	if m.fails(name) {
		return nil, errFlawed
	}
	return m.Meter.Float64ObservableCounter(name, opts...)
}

func (m flawedMeter) Float64Histogram(name string, opts ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	if m.fails(name) {
		return nil, errFlawed
	}
	return m.Meter.Float64Histogram(name, opts...)
}

func (m flawedMeter) RegisterCallback(f metric.Callback, instruments ...metric.Observable) (metric.Registration, error) {
	if m.fails("callback") {
		return nil, errFlawed
	}
	return m.Meter.RegisterCallback(f, instruments...)
}
