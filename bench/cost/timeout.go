package main

import (
	"context"

	"github.com/eapache/go-resiliency/deadline"
	fs "github.com/failsafe-go/failsafe-go"
	fstimeout "github.com/failsafe-go/failsafe-go/timeout"

	"github.com/switchgear-go/switchgear/policy"
)

func timeoutJobs() []job {
	return []job{
		timeoutJob("Timeout", "A call that is in time and does not look at its context.", fine),
		timeoutJob("Timeout, and the call watches its context", "The call asks for Done.", watching),
	}
}

func timeoutJob(name, about string, fn policy.Func) job {
	plain := policy.Timeout(limit)
	executor := fs.With[any](fstimeout.New[any](limit))
	run := func(e fs.Execution[any]) error { return fn(e.Context()) }
	eapache := deadline.New(limit)
	return job{name: name, about: about, ways: []way{
		{name: ours, call: func() { _ = plain.Do(background, fn) }},
		{name: byHand, call: func() {
			ctx, cancel := context.WithTimeout(background, limit)
			_ = fn(ctx)
			cancel()
		}},
		{name: failsafe, call: func() { _ = executor.RunWithExecution(run) }},
		{name: "go-resiliency (a goroutine for each call)", call: func() { _ = eapache.Run(func(<-chan struct{}) error { return fn(background) }) }},
	}}
}
