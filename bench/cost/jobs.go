package main

import (
	"context"
	"errors"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// jobs are all that is measured, in the order of the page.
func jobs() (all []job) {
	for _, some := range [][]job{pipelineJobs(), breakerJobs(), retryJobs(), bulkheadJobs(), rateJobs(), timeoutJobs()} {
		all = append(all, some...)
	}
	return all
}

const (
	ours     = "Switchgear"
	withSDK  = "Switchgear, an SDK collecting"
	byHand   = "context.WithTimeout"
	failsafe = "failsafe-go"
)

var (
	background = context.Background()
	errDown    = errors.New("the dependency is down")
)

// fine is what is called.
func fine(context.Context) error { return nil }

// watching asks whether its context has ended, as a call over a network does.
func watching(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	default:
		return nil
	}
}

// collecting returns an observer whose telemetry an SDK reads.
func collecting() observe.Observer {
	return otelx.New(otelx.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))))
}

// must returns v, which is made of constants.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
