package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/switchgear-go/switchgear/policy/observe"
)

// Config configures a [Retry]. The zero value is what a careful operator would sign: 3 attempts, jittered waits, hints
// heeded, and retries limited to a share of the traffic.
type Config struct {
	// Name is what the retry reports under. If empty, its pipeline's name; retry, if it is used alone.
	Name string

	// Attempts is how often fn runs at most, the first time included. If zero, 3. If negative, there is no limit.
	Attempts int

	// MaxElapsed ends the retrying: no wait begins that would end later than this after the call's start, which includes
	// the time that the attempts take. An attempt is not cut short. If zero, there is no limit.
	MaxElapsed time.Duration

	// BackOff makes the source of one call's waits, on the call's first failure. It must return a new value each time:
	// backoffs keep state and are not safe to share. A negative wait, such as [backoff.Stop], ends the retrying. After
	// waits that errors asked for the backoff is Reset, and [backoff.WithMaxRetries] counts from the start again: Attempts is
	// the limit that always holds. If nil, FullJitter(50ms, 5s).
	//
	// A [backoff.ExponentialBackOff] stops by itself after 15 minutes, unless its MaxElapsedTime is set to 0.
	BackOff func() backoff.BackOff

	// MaxRetryAfter is the longest wait that an error may ask for with a method RetryAfter() time.Duration. One that asks
	// for more ends the retrying. If zero, 30s.
	MaxRetryAfter time.Duration

	// Retryable reports whether an attempt that failed with err may be repeated; ctx is the call's. It is not asked about
	// an answer marked policy.Healthy, about a [backoff.Permanent] error, or about an inner retry that gave up: those end
	// the retrying. A refusal by a policy is repeated only if Retryable says so. If nil, [DefaultRetryable].
	Retryable func(ctx context.Context, err error) bool

	// Budget limits retries to a share of the calls; one that is shared limits all that share it. If nil, the retry has
	// one of its own, with the defaults of [BudgetConfig]. [Unlimited] is none.
	Budget *Budget

	// Nested makes the retry work inside another one too, where their attempts multiply. By default it makes one attempt
	// there.
	Nested bool

	// Observer is told what the retry does. If nil, its pipeline's; OpenTelemetry (otelx.Default), if it is used alone.
	Observer observe.Observer
}

const (
	defaultAttempts      = 3
	defaultMaxRetryAfter = 30 * time.Second
	defaultBase          = 50 * time.Millisecond
	defaultLimit         = 5 * time.Second
)

// Validate returns an error that names each field with a value that is not allowed.
func (c Config) Validate() error {
	var faults []error
	if c.MaxElapsed < 0 {
		faults = append(faults, fmt.Errorf("retry: MaxElapsed is %v, must be 0 (no limit) or more", c.MaxElapsed))
	}
	if c.MaxRetryAfter < 0 {
		faults = append(faults, fmt.Errorf("retry: MaxRetryAfter is %v, must be 0 (%v) or more", c.MaxRetryAfter, defaultMaxRetryAfter))
	}
	faults = append(faults, c.Budget.validate())
	return errors.Join(faults...)
}

// withDefaults returns c with its zero fields filled in; the budget is the caller's to make.
func (c Config) withDefaults() Config {
	if c.Attempts == 0 {
		c.Attempts = defaultAttempts
	}
	if c.MaxRetryAfter == 0 {
		c.MaxRetryAfter = defaultMaxRetryAfter
	}
	if c.BackOff == nil {
		c.BackOff = FullJitter(defaultBase, defaultLimit)
	}
	if c.Retryable == nil {
		c.Retryable = DefaultRetryable
	}
	if c.Budget == nil {
		c.Budget = NewBudget("", BudgetConfig{})
	}
	return c
}
