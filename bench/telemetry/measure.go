package main

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/retry"
)

// way is one way to make a call.
type way struct {
	name  string
	than  string // the way that it is compared with
	limit float64
	call  func()
}

const (
	silent     = "silence (observe.Discard)"
	noSDK      = "default, no SDK"
	bare       = "silence + two clock reads + Histogram.Record"
	withSDK    = "SDK"
	bareSpan   = "the same in a sampled span"
	sampled    = "SDK, in a sampled span"
	perRound   = 4000 // calls
	breakers   = 1000
	seriesGoal = 1500 // ns
)

var fine = func(context.Context) error { return nil }

// chain returns the pipeline that is measured. With a nil observer it reports by default.
func chain(o observe.Observer) *policy.Pipeline {
	p := policy.NewPipeline("charge",
		policy.Timeout(5*time.Second),
		retry.New(retry.Config{}),
		breaker.New("payments-api", breaker.Config{Observer: o}),
		bulkhead.New("payments-api", bulkhead.Config{Max: 100, Observer: o}))
	if o == nil {
		return p
	}
	return p.Observed(o)
}

func ways() []way {
	bg := context.Background()
	inSpan, _ := sdktrace.NewTracerProvider().Tracer("bench").Start(bg, "caller")
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	histogram, err := provider.Meter("bench").Float64Histogram("duration",
		metric.WithExplicitBucketBoundaries(.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10))
	if err != nil {
		fail(err)
	}
	attrs := []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(
		attribute.String("switchgear.pipeline.name", "charge"), attribute.String("switchgear.call.outcome", "success")))}
	observer := otelx.New(otelx.WithMeterProvider(provider))

	plain := func(ctx context.Context, p *policy.Pipeline) func() {
		return func() { _ = p.Do(ctx, fine) }
	}
	byHand := func(ctx context.Context, p *policy.Pipeline) func() {
		return func() {
			start := time.Now()
			_ = p.Do(ctx, fine)
			histogram.Record(ctx, time.Since(start).Seconds(), attrs...)
		}
	}
	return []way{
		{silent, "", 0, plain(bg, chain(observe.Discard))},
		{noSDK, silent, 1.15, plain(bg, chain(nil))},
		{bare, silent, 0, byHand(bg, chain(observe.Discard))},
		{withSDK, bare, 1.15, plain(bg, chain(observer))},
		{bareSpan, silent, 0, byHand(inSpan, chain(observe.Discard))},
		{sampled, bareSpan, 1.15, plain(inSpan, chain(observer))},
	}
}

// figure is what was measured of one way.
type figure struct {
	Nanoseconds, Ratio, Allocations float64
}

type result struct {
	Ways      []figure // in the order of ways
	PerSeries float64  // ns of a collection
	SDKAlone  float64  // of which the SDK takes to be told as much by a callback that does nothing else
	Series    int
}

// measure measures all ways in turns.
func measure(rounds int) result {
	all := ways()
	index := map[string]int{}
	for i, w := range all {
		index[w.name] = i
	}
	times, ratios := make([][]float64, len(all)), make([][]float64, len(all))
	for round := range rounds + 1 {
		took := make([]float64, len(all))
		for n := range all {
			i := (n + round) % len(all) // nobody is always first
			start := time.Now()
			for range perRound {
				all[i].call()
			}
			took[i] = float64(time.Since(start).Nanoseconds()) / perRound
		}
		if round == 0 {
			continue // warms up
		}
		for i, w := range all {
			times[i] = append(times[i], took[i])
			ratios[i] = append(ratios[i], took[i]/took[index[w.than]]) // against the first where there is none
		}
	}
	var r result
	for i, w := range all {
		r.Ways = append(r.Ways, figure{median(times[i]), median(ratios[i]), testing.AllocsPerRun(1000, w.call)})
	}
	r.PerSeries, r.SDKAlone, r.Series = collections()
	return r
}

// collections measures collections of many breakers, and of as many series from a bare callback in turns with them.
func collections() (perSeries, alone float64, series int) {
	reader, provider := unlimited()
	observer := otelx.New(otelx.WithMeterProvider(provider))
	kept := make([]*breaker.Breaker, breakers)
	for i := range kept {
		kept[i] = breaker.New(fmt.Sprint("dependency ", i), breaker.Config{Observer: observer})
	}
	_, series = collect(reader)
	bareReader := bareSeries(series)
	var ours, bare []float64
	for range 20 {
		took, _ := collect(reader)
		ours = append(ours, took/float64(series))
		took, _ = collect(bareReader)
		bare = append(bare, took/float64(series))
	}
	runtime.KeepAlive(kept)
	return median(ours), median(bare), series
}

func unlimited() (*sdkmetric.ManualReader, *sdkmetric.MeterProvider) {
	reader := sdkmetric.NewManualReader()
	return reader, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithCardinalityLimit(0))
}

// bareSeries returns a reader of so many series of one counter.
func bareSeries(n int) *sdkmetric.ManualReader {
	reader, provider := unlimited()
	meter := provider.Meter("bench")
	counter, err := meter.Int64ObservableCounter("calls")
	if err != nil {
		fail(err)
	}
	opts := make([][]metric.ObserveOption, n)
	for i := range opts {
		opts[i] = []metric.ObserveOption{metric.WithAttributeSet(attribute.NewSet(
			attribute.String("switchgear.policy.name", fmt.Sprint("dependency ", i)),
			attribute.String("switchgear.circuit_breaker.state", "closed"),
			attribute.String("switchgear.call.outcome", "success")))}
	}
	if _, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for i := range opts {
			o.ObserveInt64(counter, int64(i), opts[i]...)
		}
		return nil
	}, counter); err != nil {
		fail(err)
	}
	return reader
}

// collect returns how long a collection takes, in ns, and how many series it brings.
func collect(reader *sdkmetric.ManualReader) (took float64, series int) {
	var all metricdata.ResourceMetrics
	start := time.Now()
	if err := reader.Collect(context.Background(), &all); err != nil {
		fail(err)
	}
	took = float64(time.Since(start).Nanoseconds())
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				series += len(data.DataPoints)
			case metricdata.Sum[float64]:
				series += len(data.DataPoints)
			}
		}
	}
	return took, series
}
