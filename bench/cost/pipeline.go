package main

import (
	"context"
	"time"

	fs "github.com/failsafe-go/failsafe-go"
	fsbulkhead "github.com/failsafe-go/failsafe-go/bulkhead"
	fsbreaker "github.com/failsafe-go/failsafe-go/circuitbreaker"
	fsretry "github.com/failsafe-go/failsafe-go/retrypolicy"
	fstimeout "github.com/failsafe-go/failsafe-go/timeout"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/retry"
)

const limit = 5 * time.Second

// fourLayers is this library's pipeline. With a nil observer it reports as it does by default, and no SDK listens.
func fourLayers(o observe.Observer) *policy.Pipeline {
	return policy.NewPipeline("charge",
		policy.Timeout(limit),
		retry.New(retry.Config{Observer: o}),
		breaker.New("payments-api", breaker.Config{Observer: o}),
		bulkhead.New("payments-api", bulkhead.Config{Max: 100, Observer: o}),
	).Observed(o)
}

// failsafeLayers are the same four of failsafe-go.
func failsafeLayers[R any]() []fs.Policy[R] {
	return []fs.Policy[R]{
		fstimeout.New[R](limit),
		fsretry.NewBuilder[R]().WithBackoff(50*time.Millisecond, 5*time.Second).Build(),
		fsbreaker.NewBuilder[R]().WithFailureRateThreshold(.5, 20, 10*time.Second).Build(),
		fsbulkhead.New[R](100),
	}
}

func pipelineJobs() []job {
	const about = "Timeout, retry, breaker and bulkhead around a call that succeeds."
	return []job{
		pipelineJob("Four layers", about+" The call does not look at its context.", fine),
		pipelineJob("Four layers, and the call watches its context", about+" The call asks for Done, as one over a network does: then a timer is needed after all.", watching),
		valueJob(),
	}
}

func pipelineJob(name, about string, fn policy.Func) job {
	plain, collected := fourLayers(nil), fourLayers(collecting())
	executor := fs.With(failsafeLayers[any]()...)
	run := func(e fs.Execution[any]) error { return fn(e.Context()) }
	return job{name: name, about: about, ways: []way{
		{name: ours, call: func() { _ = plain.Do(background, fn) }},
		{name: withSDK, own: true, call: func() { _ = collected.Do(background, fn) }},
		{name: failsafe, call: func() { _ = executor.WithContext(background).RunWithExecution(run) }},
		{name: byHand, call: func() {
			ctx, cancel := context.WithTimeout(background, limit)
			_ = fn(ctx)
			cancel()
		}},
		{name: "the bare call", call: func() { _ = fn(background) }},
	}}
}

// valueJob is the pipeline around a function with a value.
func valueJob() job {
	type quote struct{ cents int }
	get := func(context.Context) (quote, error) { return quote{100}, nil }
	plain := fourLayers(nil)
	executor := fs.With(failsafeLayers[quote]()...)
	run := func(e fs.Execution[quote]) (quote, error) { return get(e.Context()) }
	return job{name: "Four layers, with a value", about: "The same around a function that returns a value: `policy.Get`.", ways: []way{
		{name: ours, call: func() { _, _ = policy.Get(background, plain, get) }},
		{name: failsafe, call: func() { _, _ = executor.WithContext(background).GetWithExecution(run) }},
	}}
}
