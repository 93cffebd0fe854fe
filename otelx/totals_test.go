package otelx_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy/observe"
)

func delta(sdkmetric.InstrumentKind) metricdata.Temporality { return metricdata.DeltaTemporality }

func TestCountsAndCurrentValuesAreReadAtCollection(t *testing.T) {
	o, reader := observed()
	d := newDevice(o, "db")
	d.counts[acquired].Add(10)
	d.running.Store(3)
	d.openTime.Store(int64(1500 * time.Millisecond))
	assert.Equal(t, map[string]float64{
		callsOf("db", "acquired"): 10,
		callsOf("db", "rejected"): 0, // a closed set starts at zero
		usageOf("db"):             3,
		timeOf("db"):              1.5,
	}, readings(t, reader))
	runtime.KeepAlive(d)
}

func TestPoliciesNamedAlikeAreSummed(t *testing.T) {
	o, reader := observed()
	a, dropA := manual(o, "db")
	b, _ := manual(o, "db")
	a.counts[acquired].Add(3)
	b.counts[acquired].Add(4)
	a.running.Store(1)
	b.running.Store(1)
	got := readings(t, reader)
	equal(t, 7, got[callsOf("db", "acquired")])
	equal(t, 2, got[usageOf("db")])

	a.counts[acquired].Add(1)
	dropA()
	got = readings(t, reader)
	equal(t, 8, got[callsOf("db", "acquired")], "the total stays")
	equal(t, 1, got[usageOf("db")], "the current value has left")
}

func TestPoliciesOfOneNameMayDifferInTheirRows(t *testing.T) {
	o, reader := observed()
	d, _ := manual(o, "db")
	d.counts[acquired].Add(1)
	o.Attach(observe.Source{
		Policy: "bulkhead", Name: "db", Rows: []observe.Row{{Metric: "switchgear.bulkhead.would_reject"}, deviceRows[acquired]},
		Live: func(v []int64) bool { v[0], v[1] = 5, 6; return true },
	})
	got := readings(t, reader)
	equal(t, 7, got[callsOf("db", "acquired")])
	equal(t, 5, got["bulkhead.would_reject{policy.name=db}"])
	assert.Len(t, got, 5)
}

func TestTotalsOfALastPolicyAreReportedOnceMoreAndForgotten(t *testing.T) {
	o, reader := observed()
	d, drop := manual(o, "db")
	other, _ := manual(o, "other")
	other.counts[acquired].Add(1)
	d.counts[acquired].Add(2)
	d.openTime.Store(int64(time.Second))
	readings(t, reader)
	d.counts[acquired].Add(1) // after the last collection
	drop()

	got := readings(t, reader)
	equal(t, 3, got[callsOf("db", "acquired")])
	equal(t, 1, got[timeOf("db")], "what the clock decides stays as it was last read")
	assert.NotContains(t, got, usageOf("db"))
	got = readings(t, reader)
	for key := range got {
		assert.Contains(t, key, "policy.name=other")
	}
	assert.Len(t, got, 4)
}

func TestTotalsContinueInAPolicyThatIsMadeAgain(t *testing.T) {
	for _, between := range []int{0, 1} { // collections without a policy of the name
		cumulative, reader := observed()
		deltas, deltaReader := observed(sdkmetric.WithTemporalitySelector(delta))
		for _, c := range []struct {
			observe.Observer
			sdkmetric.Reader
			again, want float64
		}{{cumulative, reader, 5, 6}, {deltas, deltaReader, 0, 1}} {
			d, drop := manual(c, "db")
			d.counts[acquired].Add(5)
			equal(t, 5, readings(t, c)[callsOf("db", "acquired")])
			drop()
			for range between {
				equal(t, c.again, readings(t, c)[callsOf("db", "acquired")])
			}
			d, drop = manual(c, "db")
			d.counts[acquired].Add(1)
			equal(t, c.want, readings(t, c)[callsOf("db", "acquired")], "%d collections between", between)
			drop()
			assert.Contains(t, readings(t, c), callsOf("db", "acquired"), "once more for this one too")
			assert.Empty(t, readings(t, c))
		}
	}
}

func TestACurrentValueThatIsCountedLeavesWithItsPolicy(t *testing.T) {
	o, reader := observed()
	counts := make([]atomic.Int64, 1)
	s := observe.Source{Policy: "pipeline", Name: "p", Rows: []observe.Row{{Metric: "switchgear.pipeline.active"}}, Counts: counts}
	probe := o.Attach(s)
	counts[0].Add(1) // a call that panicked on its way, say
	assert.Equal(t, map[string]float64{"pipeline.active{pipeline.name=p}": 1}, readings(t, reader))
	probe.Detach()
	assert.Empty(t, readings(t, reader))
	s.Counts = make([]atomic.Int64, 1)
	o.Attach(s)
	assert.Equal(t, map[string]float64{"pipeline.active{pipeline.name=p}": 0}, readings(t, reader))
}

func TestAPolicyThatNoCollectionSawLeavesAtOnce(t *testing.T) {
	o, reader := observed()
	d, drop := manual(o, "db")
	d.counts[acquired].Add(5)
	drop()
	assert.Empty(t, readings(t, reader))
}

func TestATotalOfTwoPoliciesSurvivesOneEvenIfNoCollectionSawIt(t *testing.T) {
	o, reader := observed()
	d, drop := manual(o, "db")
	manual(o, "db")
	d.counts[acquired].Add(5)
	drop()
	equal(t, 5, readings(t, reader)[callsOf("db", "acquired")])
}

func TestATotalNeverFalls(t *testing.T) {
	o, reader := observed()
	d, drop := manual(o, "db")
	d.openTime.Store(int64(10 * time.Second))
	equal(t, 10, readings(t, reader)[timeOf("db")])
	d.openTime.Store(int64(4 * time.Second)) // a clock that is moved back
	equal(t, 10, readings(t, reader)[timeOf("db")])
	d.openTime.Store(observe.None)
	equal(t, 10, readings(t, reader)[timeOf("db")])
	drop()
	equal(t, 10, readings(t, reader)[timeOf("db")])
	d, _ = manual(o, "db")
	d.openTime.Store(int64(time.Second))
	equal(t, 11, readings(t, reader)[timeOf("db")])
}

func TestARowThatIsNoneIsNotReported(t *testing.T) {
	o, reader := observed()
	d, _ := manual(o, "db")
	d.running.Store(observe.None)
	d.openTime.Store(observe.None)
	got := readings(t, reader)
	assert.NotContains(t, got, usageOf("db"))
	assert.NotContains(t, got, timeOf("db"))
	d.running.Store(0)
	assert.Contains(t, readings(t, reader), usageOf("db"))
}

func TestAPolicyThatPanicsKeepsItsTotalsAndHurtsNoOther(t *testing.T) {
	reports := handled(t)
	o, reader := observed(sdkmetric.WithTemporalitySelector(delta))
	d, _ := manual(o, "bad")
	good, _ := manual(o, "good")
	d.counts[acquired].Add(5)
	d.openTime.Store(int64(time.Second))
	good.counts[acquired].Add(5)
	readings(t, reader)

	d.broken.Store(true)
	d.counts[acquired].Add(1)
	good.counts[acquired].Add(2)
	got := readings(t, reader)
	equal(t, 2, got[callsOf("good", "acquired")])
	equal(t, 1, got[callsOf("bad", "acquired")])
	equal(t, 0, got[timeOf("bad")])
	assert.NotContains(t, got, usageOf("bad"))
	require.Len(t, reports(), 1)
	assert.Contains(t, reports()[0], `bulkhead "bad": panic: device broken`)

	d.broken.Store(false)
	got = readings(t, reader)
	equal(t, 0, got[callsOf("bad", "acquired")], "nothing is counted twice")
	equal(t, 0, got[timeOf("bad")])
}

func TestAPanicOfTheSDKHurtsNoOther(t *testing.T) {
	reports := handled(t)
	reader := sdkmetric.NewManualReader()
	o := otelx.New(otelx.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithView(
		sdkmetric.NewView(sdkmetric.Instrument{Name: "*"}, sdkmetric.Stream{AttributeFilter: func(kv attribute.KeyValue) bool {
			if kv.Value.AsString() == "bad" {
				panic("bad view")
			}
			return true
		}}),
	))))
	manual(o, "bad")
	manual(o, "good")
	assert.Len(t, readings(t, reader), 4)
	assert.Equal(t, []string{`otelx: metrics of bulkhead "bad": panic: bad view`}, reports())
}

// gone collects garbage until what a test has dropped is no longer reported.
func gone(t *testing.T, reader sdkmetric.Reader, key string) {
	t.Helper()
	for range 100 {
		runtime.GC()
		if _, ok := readings(t, reader)[key]; !ok {
			return
		}
	}
	t.Fatalf("%s is still reported", key)
}

func TestADroppedPolicyLeavesTheCallback(t *testing.T) {
	o, reader := observed()
	kept := newDevice(o, "kept")
	newDevice(o, "dropped").counts[acquired].Add(1)
	require.Contains(t, readings(t, reader), callsOf("dropped", "acquired"))
	gone(t, reader, callsOf("dropped", "acquired"))
	assert.Len(t, readings(t, reader), 4)
	runtime.KeepAlive(kept)
}

func TestACollectionThatFindsAPolicyGoneTakesLeaveOfIt(t *testing.T) {
	o, reader := observed()
	alive := true
	counts := make([]atomic.Int64, 2)
	probe := o.Attach(observe.Source{
		Policy: "bulkhead", Name: "db", Rows: deviceRows, Counts: counts,
		Live: func(v []int64) bool { v[0], v[1] = 1, 1; return alive },
	})
	counts[acquired].Add(1)
	readings(t, reader)
	alive = false
	counts[acquired].Add(1)
	assert.Equal(t, map[string]float64{
		callsOf("db", "acquired"): 2, callsOf("db", "rejected"): 0, timeOf("db"): 1e-9,
	}, readings(t, reader))
	probe.Detach() // comes when the cleanup runs
	assert.Empty(t, readings(t, reader))
	probe.Detach()
	assert.Empty(t, readings(t, reader))
}

func TestTwoReadersCountTheSame(t *testing.T) {
	cumulative := sdkmetric.NewManualReader()
	deltas := sdkmetric.NewManualReader(sdkmetric.WithTemporalitySelector(delta))
	o := otelx.New(otelx.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(cumulative), sdkmetric.WithReader(deltas))))
	d, _ := manual(o, "db")
	for step, want := range []struct{ sum, delta float64 }{{3, 3}, {6, 3}, {9, 3}} {
		d.counts[acquired].Add(3)
		d.openTime.Add(int64(time.Second))
		c, del := readings(t, cumulative), readings(t, deltas)
		equal(t, want.sum, c[callsOf("db", "acquired")], "step %d", step)
		equal(t, want.delta, del[callsOf("db", "acquired")], "step %d", step)
		equal(t, 1., del[timeOf("db")], "step %d", step)
	}
}

func TestPoliciesComeAndGoWhileMetricsAreCollected(t *testing.T) {
	a, b := sdkmetric.NewManualReader(), sdkmetric.NewManualReader(sdkmetric.WithTemporalitySelector(delta))
	o := otelx.New(otelx.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(a), sdkmetric.WithReader(b))))
	kept, _ := manual(o, "kept")
	const makers, rounds = 4, 50
	done := make(chan struct{}, makers)
	for range makers {
		go func() {
			defer func() { done <- struct{}{} }()
			for n := range rounds {
				name := []string{"kept", "x", "y"}[n%3]
				d, probe := attachDevice(o, name)
				d.counts[acquired].Add(1)
				probe.Record(context.Background(), 0, time.Millisecond)
				if n%2 == 0 {
					probe.Detach() // what runtime.AddCleanup calls again changes nothing
				}
				kept.counts[acquired].Add(1)
				runtime.KeepAlive(d)
			}
		}()
	}
	last, lastDelta := 0., 0.
	check := func() {
		now := readings(t, a)[callsOf("kept", "acquired")]
		assert.GreaterOrEqual(t, now, last)
		last = now
		d := readings(t, b)[callsOf("kept", "acquired")]
		assert.GreaterOrEqual(t, d, 0.)
		lastDelta += d
	}
	for running := makers; running > 0; {
		select {
		case <-done:
			running--
		default:
			check()
			runtime.Gosched()
		}
	}
	check()
	equal(t, makers*rounds+makers*17, last)
	equal(t, last, lastDelta)
}
