package main

import (
	"github.com/avast/retry-go/v5"
	backoff4 "github.com/cenkalti/backoff/v4"
	backoff5 "github.com/cenkalti/backoff/v5"
	"github.com/eapache/go-resiliency/retrier"
	fs "github.com/failsafe-go/failsafe-go"
	fsretry "github.com/failsafe-go/failsafe-go/retrypolicy"

	sgretry "github.com/switchgear-go/switchgear/retry"
)

func retryJobs() []job {
	plain, collected := sgretry.New(sgretry.Config{}), sgretry.New(sgretry.Config{Observer: collecting()})
	executor := fs.With[any](fsretry.NewWithDefaults[any]())
	avast := retry.New()
	eapache := retrier.New(retrier.ExponentialBackoff(3, 50), nil)
	return []job{{
		name: "Retry, success at once", about: "The first attempt succeeds. Here it also deposits in a budget; of the others none does so by default.",
		ways: []way{
			{name: ours, call: func() { _ = plain.Do(background, fine) }},
			{name: withSDK, own: true, call: func() { _ = collected.Do(background, fine) }},
			{name: failsafe, call: func() { _ = executor.Run(none) }},
			{name: "backoff v4", call: func() { _ = backoff4.Retry(none, backoff4.NewExponentialBackOff()) }},
			{name: "backoff v5", call: func() { _, _ = backoff5.Retry(background, nothing) }},
			{name: "retry-go", call: func() { _ = avast.Do(none) }},
			{name: "go-resiliency", call: func() { _ = eapache.Run(none) }},
		},
	}}
}
