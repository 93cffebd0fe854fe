package main

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
)

// overhead is what protection adds to a call that succeeds, its telemetry collected by an SDK.
type overhead struct {
	breaker  time.Duration // a breaker alone
	pipeline time.Duration // all of newPipeline
}

// measureOverhead calls a function that does nothing. The policies report to a provider of their own, so that these calls
// do not show among the real ones.
func measureOverhead(ctx context.Context) overhead {
	meters := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
	defer func() { _ = meters.Shutdown(context.WithoutCancel(ctx)) }() // it has nothing to send
	o := otelx.New(otelx.WithMeterProvider(meters))

	alone := breaker.New("overhead", breaker.Config{Observer: o})
	nothing := func(context.Context) error { return nil }
	pipeline := newPipeline(1, o)
	quote := func(context.Context) (Quote, error) { return Quote{}, nil }
	return overhead{
		breaker:  perCall(ctx, func() { _ = alone.Do(ctx, nothing) }),
		pipeline: perCall(ctx, func() { _, _ = policy.Get(ctx, pipeline, quote) }),
	}
}

// perCall returns what a call takes: the median of some batches, which a busy machine disturbs least.
func perCall(ctx context.Context, call func()) time.Duration {
	const batches, size = 21, 5_000
	var took []time.Duration
	for range batches {
		if ctx.Err() != nil {
			return 0
		}
		begin := time.Now()
		for range size {
			call()
		}
		took = append(took, time.Since(begin)/size)
	}
	slices.Sort(took)
	return percentile(took, 50)
}
