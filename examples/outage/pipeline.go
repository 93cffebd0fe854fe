package main

import (
	"context"
	"time"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/retry"
)

// This file is all that a service would write. The rest of the program is an outage to try it on.

// The limits. One attempt may take long compared with the 10 ms of a healthy answer, but not long for whoever waits.
const (
	attemptLimit = 500 * time.Millisecond
	callLimit    = time.Second // all attempts and the waits between them
	cooldown     = time.Second
	maxCooldown  = 4 * time.Second
)

// newPipeline returns what stands between the clients and the quotes API, outermost first. A service makes it once and
// shares it. growth is by how much each cooldown is longer than the one before; o is told what happens.
func newPipeline(growth float64, o observe.Observer) *policy.Pipeline {
	return policy.NewPipeline("quotes",
		policy.FallbackValue(staleQuote), // answers when everything below could not
		policy.Timeout(callLimit),
		retry.New(retry.Config{}), // 3 attempts with jittered waits; stops when the breaker refuses
		breaker.New("quotes-api", breaker.Config{
			Consecutive: 5, // opens at the fifth failure in a row
			Cooldown:    cooldown,
			MaxCooldown: maxCooldown,
			Growth:      growth,
			Jitter:      -1, // none, so that the picture shows round numbers; a service keeps the default
			Observer:    o,
		}),
		bulkhead.New("quotes-api", bulkhead.Config{Max: clients, Observer: o}), // calls in flight
		policy.Timeout(attemptLimit),
	).Observed(o)
}

// staleQuote is the fallback: the last quote known. It gets the error, so it could tell a refusal from a failure.
func staleQuote(context.Context, error) (Quote, error) {
	return Quote{Symbol: symbol, Price: 41.5, Stale: true}, nil
}

// withPipeline asks for a quote through the pipeline. This is the call site: [policy.Get] returns what fetch returned, or
// what the fallback did.
func withPipeline(pipeline *policy.Pipeline) ask {
	return func(ctx context.Context, fetch fetch) (Quote, error) {
		return policy.Get(ctx, pipeline, fetch)
	}
}

// withoutPipeline asks for a quote as most programs do: with a timeout.
func withoutPipeline(ctx context.Context, fetch fetch) (Quote, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return fetch(ctx)
}
