package main

import (
	"runtime"
	"time"

	resiliency "github.com/eapache/go-resiliency/semaphore"
	fs "github.com/failsafe-go/failsafe-go"
	fsbulkhead "github.com/failsafe-go/failsafe-go/bulkhead"
	fsrate "github.com/failsafe-go/failsafe-go/ratelimiter"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/ratelimit"
)

const (
	underBulkhead = "x/sync/semaphore, TryAcquire"
	underLimiter  = "x/time/rate, Allow"
)

func bulkheadJobs() []job {
	build := func(limit int) (plain, collected *bulkhead.Bulkhead, sem *semaphore.Weighted, peer fsbulkhead.Bulkhead[any]) {
		return bulkhead.New("api", bulkhead.Config{Max: limit}), bulkhead.New("api", bulkhead.Config{Max: limit, Observer: collecting()}),
			semaphore.NewWeighted(int64(limit)), fsbulkhead.New[any](uint(limit))
	}
	plain, collected, sem, peer := build(100)
	executor := fs.With[any](peer)
	eapache := resiliency.New(100, time.Second)
	granted := job{
		name: "Bulkhead, a permit is free", about: "Take a permit, call, give it back.",
		side: []int{1, runtime.GOMAXPROCS(0), 64},
		ways: []way{
			{name: ours, call: func() { _ = plain.Do(background, fine) }},
			{name: withSDK, own: true, call: func() { _ = collected.Do(background, fine) }},
			{name: underBulkhead, call: func() {
				if sem.TryAcquire(1) {
					_ = fine(background)
					sem.Release(1)
				}
			}},
			{name: failsafe, call: func() { _ = executor.Run(none) }},
			{name: "go-resiliency", call: func() {
				if eapache.Acquire() == nil {
					_ = none()
					eapache.Release()
				}
			}},
		},
	}

	fullPlain, fullCollected, fullSem, fullPeer := build(1)
	must(fullPlain.Acquire(background))
	must(fullCollected.Acquire(background))
	fullSem.TryAcquire(1)
	fullPeer.TryAcquirePermit()
	fullExecutor := fs.With[any](fullPeer)
	refused := job{
		name: "Bulkhead, full", about: "A refusal.",
		side: []int{1, runtime.GOMAXPROCS(0), 64},
		ways: []way{
			{name: ours, call: func() { _ = fullPlain.Do(background, fine) }},
			{name: withSDK, own: true, call: func() { _ = fullCollected.Do(background, fine) }},
			{name: underBulkhead, call: func() { fullSem.TryAcquire(1) }},
			{name: failsafe, call: func() { _ = fullExecutor.Run(none) }},
		},
	}
	return []job{granted, refused}
}

func rateJobs() []job {
	const much, none1 = 1e9, 1e-6
	plain := ratelimit.New("api", ratelimit.Config{Rate: much, Burst: much})
	collected := ratelimit.New("api", ratelimit.Config{Rate: much, Burst: much, Observer: collecting()})
	under := rate.NewLimiter(much, much)
	executor := fs.With[any](fsrate.NewSmoothWithMaxRate[any](time.Nanosecond))
	granted := job{name: "Rate limit, a token is there", about: "Take a token and call.", ways: []way{
		{name: ours, call: func() { _ = plain.Do(background, fine) }},
		{name: withSDK, own: true, call: func() { _ = collected.Do(background, fine) }},
		{name: underLimiter, call: func() {
			if under.Allow() {
				_ = fine(background)
			}
		}},
		{name: failsafe, call: func() { _ = executor.Run(none) }},
	}}

	spent := ratelimit.New("api", ratelimit.Config{Rate: none1, Burst: 1})
	spentCollected := ratelimit.New("api", ratelimit.Config{Rate: none1, Burst: 1, Observer: collecting()})
	spentUnder := rate.NewLimiter(none1, 1)
	spentPeer := fs.With[any](fsrate.NewSmoothWithMaxRate[any](longTime))
	for range 2 {
		_ = spent.Do(background, fine) // the burst
		_ = spentCollected.Do(background, fine)
		spentUnder.Allow()
		_ = spentPeer.Run(none)
	}
	refused := job{name: "Rate limit, none left", about: "A refusal. Here it says when to come back.", ways: []way{
		{name: ours, call: func() { _ = spent.Do(background, fine) }},
		{name: withSDK, own: true, call: func() { _ = spentCollected.Do(background, fine) }},
		{name: underLimiter, call: func() { spentUnder.Allow() }},
		{name: failsafe, call: func() { _ = spentPeer.Run(none) }},
	}}
	return []job{granted, refused}
}
