package main

import (
	"time"

	resiliency "github.com/eapache/go-resiliency/breaker"
	fs "github.com/failsafe-go/failsafe-go"
	fsbreaker "github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"

	"github.com/switchgear-go/switchgear/breaker"
)

const longTime = 24 * time.Hour // no cooldown ends while it is measured

func breakerJobs() []job { return []job{closedJob(), openJob(), halfOpenJob()} }

func closedJob() job {
	plain, collected := breaker.New("api", breaker.Config{}), breaker.New("api", breaker.Config{Observer: collecting()})
	usual := gobreaker.NewCircuitBreaker[any](gobreaker.Settings{})
	rolling := gobreaker.NewCircuitBreaker[any](gobreaker.Settings{Interval: 10 * time.Second, BucketPeriod: time.Second})
	counting := fs.With[any](fsbreaker.NewWithDefaults[any]())
	sliding := fs.With[any](fsbreaker.NewBuilder[any]().WithFailureRateThreshold(.5, 20, 10*time.Second).Build())
	other := resiliency.New(20, 1, longTime)
	return job{
		name: "Breaker, closed", about: "A call that succeeds. Here a window of 10 seconds is kept; of the others as well where it says so.",
		ways: []way{
			{name: ours, call: func() { _ = plain.Do(background, fine) }},
			{name: withSDK, own: true, call: func() { _ = collected.Do(background, fine) }},
			{name: "gobreaker", call: func() { _, _ = usual.Execute(nothing) }},
			{name: "gobreaker, window of 10 s", call: func() { _, _ = rolling.Execute(nothing) }},
			{name: failsafe, call: func() { _ = counting.Run(none) }},
			{name: "failsafe-go, window of 10 s", call: func() { _ = sliding.Run(none) }},
			{name: "go-resiliency (counts nothing on success)", call: func() { _ = other.Run(none) }},
		},
	}
}

func openJob() job {
	cfg := breaker.Config{Consecutive: 1, Cooldown: longTime}
	plain := breaker.New("api", cfg)
	cfg.Observer = collecting()
	collected := breaker.New("api", cfg)
	plain.Trip()
	collected.Trip()

	gob := gobreaker.NewCircuitBreaker[any](gobreaker.Settings{Timeout: longTime, ReadyToTrip: func(gobreaker.Counts) bool { return true }})
	_, _ = gob.Execute(func() (any, error) { return nil, errDown }) // it trips
	fsb := fsbreaker.NewBuilder[any]().WithDelay(longTime).Build()
	fsb.Open()
	executor := fs.With[any](fsb)
	other := resiliency.New(1, 1, longTime)
	_ = other.Run(func() error { return errDown }) // it trips

	return job{name: "Breaker, open", about: "A refusal. Here it counts, and says when to come back.", ways: []way{
		{name: ours, call: func() { _ = plain.Do(background, fine) }},
		{name: withSDK, own: true, call: func() { _ = collected.Do(background, fine) }},
		{name: "gobreaker", call: func() { _, _ = gob.Execute(nothing) }},
		{name: failsafe, call: func() { _ = executor.Run(none) }},
		{name: "go-resiliency", call: func() { _ = other.Run(none) }},
	}}
}

// halfOpenJob has a probe out that does not return, and everybody else refused. go-resiliency would let all of them through.
func halfOpenJob() job {
	probing := func(cfg breaker.Config) *breaker.Breaker {
		cfg.ProbeTimeout = longTime
		b := breaker.New("api", cfg)
		b.ForceOpen()
		b.Probe()
		must(b.Allow(background))
		return b
	}
	plain, collected := probing(breaker.Config{}), probing(breaker.Config{Observer: collecting()})

	gob := gobreaker.NewCircuitBreaker[any](gobreaker.Settings{Timeout: time.Nanosecond, ReadyToTrip: func(gobreaker.Counts) bool { return true }})
	_, _ = gob.Execute(func() (any, error) { return nil, errDown }) // it trips
	time.Sleep(time.Millisecond)
	running := make(chan struct{})
	go func() {
		_, _ = gob.Execute(func() (any, error) { close(running); select {} }) // until the end of the program
	}()
	<-running
	fsb := fsbreaker.NewBuilder[any]().WithSuccessThreshold(1).Build()
	fsb.HalfOpen()
	fsb.TryAcquirePermit()
	executor := fs.With[any](fsb)

	return job{name: "Breaker, half-open", about: "A refusal while a probe runs: all callers meet at one lock.", ways: []way{
		{name: ours, call: func() { _ = plain.Do(background, fine) }},
		{name: withSDK, own: true, call: func() { _ = collected.Do(background, fine) }},
		{name: "gobreaker", call: func() { _, _ = gob.Execute(nothing) }},
		{name: failsafe, call: func() { _ = executor.Run(none) }},
	}}
}

// What is called, as other libraries want it.
func none() error           { return nil }
func nothing() (any, error) { return nil, nil }
