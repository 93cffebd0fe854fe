package policytest_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/policy/policytest"
	"github.com/switchgear-go/switchgear/ratelimit"
	"github.com/switchgear-go/switchgear/retry"
)

const ms = time.Millisecond

var (
	errDown = errors.New("down")
	errFull = bulkhead.ErrFull
	errOpen = breaker.ErrCircuitOpen
)

// builder builds the policy of a case.
type builder = func(o observe.Observer) policy.Policy

// pipeline is a builder of a pipeline whose layers get the case's observer.
func pipeline(layers ...builder) builder {
	return func(o observe.Observer) policy.Policy {
		policies := make([]policy.Policy, len(layers))
		for i, build := range layers {
			policies[i] = build(o)
		}
		return policy.NewPipeline("charge", policies...).Observed(o)
	}
}

func timeout(d time.Duration) builder {
	return func(observe.Observer) policy.Policy { return policy.Timeout(d) }
}

// attempts is a retry that waits for so long before each further attempt.
func attempts(n int, wait time.Duration) builder {
	return func(observe.Observer) policy.Policy {
		return retry.New(retry.Config{
			Attempts: n,
			BackOff:  func() backoff.BackOff { return backoff.NewConstantBackOff(wait) },
			Budget:   retry.Unlimited,
		})
	}
}

func hedge(delay time.Duration) builder {
	return func(observe.Observer) policy.Policy {
		return retry.NewHedge(retry.HedgeConfig{Delay: delay, Budget: retry.Unlimited})
	}
}

// opensAfter is a breaker that opens after so many failures in a row, for a second.
func opensAfter(failures int) builder {
	return breakerOf("api", breaker.Config{Consecutive: failures})
}

func breakerOf(name string, cfg breaker.Config) builder {
	return func(o observe.Observer) policy.Policy {
		cfg.Cooldown, cfg.Growth, cfg.Jitter, cfg.Observer = time.Second, 1, -1, o
		return breaker.New(name, cfg)
	}
}

func permits(limit, queue int) builder {
	return func(o observe.Observer) policy.Policy {
		return bulkhead.New("db", bulkhead.Config{Max: limit, Queue: queue, Observer: o})
	}
}

// tokens is a limiter with so many tokens, to which another comes each second.
func tokens(burst int) builder {
	return func(o observe.Observer) policy.Policy {
		return ratelimit.New("quota", ratelimit.Config{Rate: 1, Burst: burst, Observer: o})
	}
}

func answer(observe.Observer) policy.Policy {
	return policy.Fallback(func(context.Context, error) error { return nil })
}

func is(errs ...error) []error { return errs }

// TestOrdering is docs/ordering.md as a table.
func TestOrdering(t *testing.T) {
	fail, slowFail := policytest.Fail(errDown), policytest.After(10*ms, policytest.Fail(errDown))
	slow := policytest.After(100*ms, policytest.OK)

	cases := []policytest.Case{
		// The timeout of the whole call.
		{
			Name:   "a retry stops before a sleep past the total timeout",
			Policy: pipeline(timeout(200*ms), attempts(10, 80*ms)),
			Script: policytest.Script{fail},
			Calls: []policytest.Call{{
				Runs: policytest.At(0, 80*ms, 160*ms), Takes: 160 * ms,
				Is: is(retry.ErrDeadline, errDown), Not: is(policy.ErrTimeout, context.DeadlineExceeded),
			}},
			Events: "retry(2, 80ms) → retry(3, 80ms) → exhausted(deadline, 3)",
		},
		{
			Name:   "an attempt that hangs ends with the total timeout",
			Policy: pipeline(timeout(200*ms), attempts(10, 80*ms)),
			Script: policytest.Script{fail, policytest.Hang},
			Calls: []policytest.Call{{
				Runs: policytest.At(0, 80*ms), Takes: 200 * ms,
				Is: is(policy.ErrTimeout, errDown),
			}},
			Events: "retry → exhausted(canceled) → timeout(200ms)",
		},
		{
			Name:   "a timeout inside the retry only does not limit the whole",
			Policy: pipeline(attempts(3, 80*ms), timeout(200*ms)),
			Script: policytest.Script{policytest.Hang},
			Calls: []policytest.Call{{
				Runs: policytest.At(0, 280*ms, 560*ms), Takes: 760 * ms,
				Is: is(retry.ErrAttemptsExhausted, policy.ErrTimeout),
			}},
			Events: "timeout → retry → timeout → retry → timeout → exhausted",
		},
		{
			Name:   "a success that comes after the timeout stays one",
			Policy: pipeline(timeout(50*ms), opensAfter(1)),
			Script: policytest.Script{policytest.Late(10*ms, policytest.OK)},
			Calls:  []policytest.Call{{Takes: 60 * ms}},
			States: "closed",
			Counts: map[string]int64{"timeout.calls(late)": 1, "circuit_breaker.calls(closed, success)": 1},
		},
		{
			Name:   "a wait for a permit counts towards the total timeout",
			Policy: pipeline(timeout(50*ms), permits(1, 1)),
			Script: policytest.Script{policytest.Deaf(100*ms, policytest.OK)},
			Calls: []policytest.Call{
				{Takes: 100 * ms},
				{At: 10 * ms, Runs: policytest.Never, Takes: 50 * ms, Is: is(policy.ErrTimeout)},
			},
			Counts: map[string]int64{"bulkhead.calls(canceled)": 1, "bulkhead.usage": 0, "bulkhead.queue.usage": 0},
		},

		// The timeout of an attempt.
		{
			Name:   "the timeout of an attempt is retried",
			Policy: pipeline(attempts(3, 10*ms), timeout(50*ms)),
			Script: policytest.Script{policytest.Hang, policytest.OK},
			Calls:  []policytest.Call{{Runs: policytest.At(0, 60*ms), Takes: 60 * ms}},
			Events: "timeout(50ms) → retry(2, 10ms)",
		},
		{
			Name:   "the caller's own deadline is not retried",
			Policy: pipeline(attempts(3, 10*ms), timeout(50*ms)),
			Script: policytest.Script{policytest.Hang},
			Calls: []policytest.Call{{
				Timeout: 30 * ms, Takes: 30 * ms,
				Is: is(context.DeadlineExceeded), Not: is(policy.ErrTimeout),
			}},
			Events: "none",
		},
		{
			Name:   "timeouts of attempts open the breaker outside them",
			Policy: pipeline(attempts(3, 10*ms), opensAfter(2), timeout(50*ms)),
			Script: policytest.Script{policytest.Hang},
			Calls: []policytest.Call{{
				Runs: policytest.At(0, 60*ms), Takes: 120 * ms,
				Is: is(errOpen, policy.ErrTimeout),
			}},
			Events: "timeout → retry → timeout → open → retry → reject(breaker) → exhausted",
			States: "open",
		},
		{
			Name:   "a breaker inside the timeout of an attempt sees what fn makes of it",
			Policy: pipeline(timeout(50*ms), opensAfter(1)),
			Script: policytest.Script{policytest.Late(0, fail)},
			Calls:  []policytest.Call{{Takes: 50 * ms, Is: is(policy.ErrTimeout, errDown)}},
			Events: "open(api) → timeout",
		},
		{
			Name:   "a wait for a permit is no part of the timeout of an attempt further in",
			Policy: pipeline(permits(1, 1), timeout(120*ms)),
			Script: policytest.Script{slow},
			Calls: []policytest.Call{
				{Takes: 100 * ms},
				{At: 10 * ms, Runs: policytest.At(90 * ms), Takes: 190 * ms},
			},
			Events: "none",
		},

		// Retry and breaker.
		{
			Name:   "an open breaker ends the retry loop",
			Policy: pipeline(attempts(10, 10*ms), opensAfter(2)),
			Script: policytest.Script{fail},
			Calls:  []policytest.Call{{Runs: policytest.At(0, 10*ms), Takes: 20 * ms, Is: is(errOpen, errDown)}},
			Events: "retry → open → retry → reject(breaker) → exhausted(not_retryable)",
			States: "open",
		},
		{
			Name:   "a refusal of the first attempt comes back as it is",
			Policy: pipeline(attempts(10, 10*ms), opensAfter(1)),
			Script: policytest.Script{fail},
			Calls: []policytest.Call{
				{Is: is(errOpen, errDown), Takes: 10 * ms},
				{At: 100 * ms, Runs: policytest.Never, Is: is(errOpen), Not: is(errDown, retry.ErrAttemptsExhausted)},
			},
			Events: "open → retry → reject → exhausted → reject",
		},
		{
			Name:   "a breaker inside a retry judges each attempt",
			Policy: pipeline(attempts(3, 10*ms), opensAfter(3)),
			Script: policytest.Script{fail},
			Calls:  []policytest.Call{{Runs: policytest.At(0, 10*ms, 20*ms), Takes: 20 * ms, Is: is(errDown)}},
			States: "open",
			Counts: map[string]int64{"circuit_breaker.calls(closed, failure)": 3},
		},
		{
			Name:   "a breaker outside a retry judges what comes of it",
			Policy: pipeline(opensAfter(3), attempts(3, 10*ms)),
			Script: policytest.Script{fail},
			Calls:  []policytest.Call{{Runs: policytest.At(0, 10*ms, 20*ms), Takes: 20 * ms, Is: is(errDown)}},
			States: "closed",
			Counts: map[string]int64{"circuit_breaker.calls(closed, failure)": 1},
		},
		{
			Name:   "an inner retry that recovers is one success outside",
			Policy: pipeline(opensAfter(1), attempts(3, 10*ms)),
			Script: policytest.Script{fail, fail, policytest.OK},
			Calls:  []policytest.Call{{Runs: policytest.At(0, 10*ms, 20*ms), Takes: 20 * ms}},
			Events: "retry(2) → retry(3)",
			States: "closed",
			Counts: map[string]int64{"circuit_breaker.calls(closed, success)": 1, "circuit_breaker.calls(closed, failure)": 0},
		},
		{
			Name:   "the attempts of a retry inside another one do not multiply",
			Policy: pipeline(attempts(3, 10*ms), attempts(3, 10*ms)),
			Script: policytest.Script{fail},
			Calls:  []policytest.Call{{Runs: policytest.At(0, 10*ms, 20*ms), Takes: 20 * ms, Is: is(errDown)}},
		},
		{
			Name:   "a refusal by an inner breaker tells an outer one nothing",
			Policy: pipeline(breakerOf("service", breaker.Config{Consecutive: 2}), breakerOf("shard", breaker.Config{Consecutive: 1})),
			Script: policytest.Script{fail},
			Calls: []policytest.Call{
				{Is: is(errDown)},
				{Times: 10, Runs: policytest.Never, Is: is(errOpen)},
			},
			Events: "open(shard) → reject(shard)×10",
			States: "service=closed, shard=open",
		},

		// Probes.
		{
			Name:   "of callers who reach a half-open breaker together one probes",
			Policy: opensAfter(1),
			Script: policytest.Script{fail, slow},
			Calls: []policytest.Call{
				{Is: is(errDown)},
				{At: time.Second, Takes: 100 * ms},
				{At: time.Second, Times: 49, Runs: policytest.Never, Is: is(errOpen)},
				{At: 2 * time.Second, Takes: 100 * ms},
			},
			Events: "open@0s → half_open@1s → reject(half_open)×49 → closed@1.1s",
		},
		{
			Name:   "a probe that is cancelled gives its slot back",
			Policy: opensAfter(1),
			Script: policytest.Script{fail, policytest.Hang, policytest.OK},
			Calls: []policytest.Call{
				{Is: is(errDown)},
				{At: time.Second, Cancel: 50 * ms, Takes: 50 * ms, Is: is(context.Canceled)},
				{At: 1050 * ms},
			},
			Events: "open → half_open → closed",
			Counts: map[string]int64{"circuit_breaker.calls(half_open, ignored)": 1, "circuit_breaker.calls(half_open, success)": 1},
		},
		{
			Name:   "a probe that times out opens the breaker again",
			Policy: pipeline(opensAfter(1), timeout(50*ms)),
			Script: policytest.Script{policytest.Hang},
			Calls: []policytest.Call{
				{Takes: 50 * ms, Is: is(policy.ErrTimeout)},
				{At: 1050 * ms, Takes: 50 * ms, Is: is(policy.ErrTimeout)},
				{At: 1100 * ms, Runs: policytest.Never, Is: is(errOpen)},
			},
			Events: "timeout → open → half_open → timeout → open(probe_failed) → reject",
			States: "open",
		},
		{
			Name:   "a bulkhead bounds a burst of probes",
			Policy: pipeline(breakerOf("api", breaker.Config{Consecutive: 1, Probes: 5, ProbeSuccesses: 2}), permits(2, 0)),
			Script: policytest.Script{fail, slow},
			Calls: []policytest.Call{
				{Is: is(errDown)},
				{At: time.Second, Times: 2, Takes: 100 * ms},
				{At: time.Second, Times: 3, Runs: policytest.Never, Is: is(errFull), Not: is(errOpen)},
			},
			Events: "open → half_open → reject(bulkhead)×3 → closed",
			Counts: map[string]int64{"circuit_breaker.calls(half_open, ignored)": 3},
		},
		{
			Name:   "a result of an earlier era decides nothing",
			Policy: opensAfter(1),
			Script: policytest.Script{policytest.After(1500*ms, policytest.OK), fail, slow},
			Calls: []policytest.Call{
				{Takes: 1500 * ms},
				{At: 450 * ms, Is: is(errDown)},
				{At: 1450 * ms, Takes: 100 * ms},
				{At: 1520 * ms, Runs: policytest.Never, Is: is(errOpen)},
			},
			Events: "open → half_open → reject(half_open) → closed@1.55s",
			Counts: map[string]int64{"circuit_breaker.late_results": 1},
		},

		// Limits.
		{
			Name:   "a call that the breaker refuses takes no permit",
			Policy: pipeline(opensAfter(1), permits(1, 0)),
			Script: policytest.Script{slowFail},
			Calls: []policytest.Call{
				{Takes: 10 * ms, Is: is(errDown)},
				{At: 20 * ms, Times: 10, Runs: policytest.Never, Is: is(errOpen), Not: is(errFull)},
			},
			Counts: map[string]int64{"bulkhead.calls(acquired)": 1, "bulkhead.calls(rejected)": 0},
		},
		{
			Name:   "a call that the breaker refuses takes no token",
			Policy: pipeline(opensAfter(1), tokens(5)),
			Script: policytest.Script{fail},
			Calls: []policytest.Call{
				{Is: is(errDown)},
				{Times: 10, Runs: policytest.Never, Is: is(errOpen)},
			},
			Counts: map[string]int64{"rate_limiter.available": 4, "rate_limiter.calls(acquired)": 1},
		},
		{
			Name:   "a full bulkhead is not a failure",
			Policy: pipeline(opensAfter(1), permits(1, 0)),
			Script: policytest.Script{slow},
			Calls: []policytest.Call{
				{Takes: 100 * ms},
				{At: 10 * ms, Times: 20, Runs: policytest.Never, Is: is(errFull)},
			},
			Events: "reject(bulkhead)×20",
			States: "closed",
			Counts: map[string]int64{"circuit_breaker.calls(closed, ignored)": 20},
		},
		{
			Name:   "a rate limit is not a failure",
			Policy: pipeline(opensAfter(1), tokens(1)),
			Calls: []policytest.Call{
				{},
				{Times: 20, Runs: policytest.Never, Is: is(ratelimit.ErrLimited)},
				{At: time.Second},
			},
			Events: "reject(limiter)×20",
			States: "closed",
		},
		{
			Name:   "a call that backs off holds no permit",
			Policy: pipeline(attempts(2, 100*ms), permits(1, 0)),
			Script: policytest.Script{fail, policytest.After(20*ms, policytest.OK), policytest.OK},
			Calls: []policytest.Call{
				{Runs: policytest.At(0, 100*ms), Takes: 100 * ms},
				{At: 50 * ms, Takes: 20 * ms},
			},
			Counts: map[string]int64{"bulkhead.calls(acquired)": 3, "bulkhead.calls(rejected)": 0},
		},
		{
			Name:   "a bulkhead outside the retry is held during the backoff",
			Policy: pipeline(permits(1, 0), attempts(2, 100*ms)),
			Script: policytest.Script{fail, policytest.OK},
			Calls: []policytest.Call{
				{Runs: policytest.At(0, 100*ms), Takes: 100 * ms},
				{At: 50 * ms, Runs: policytest.Never, Is: is(errFull)},
			},
		},
		{
			Name:   "a limiter inside the retry takes a token for each attempt, and its refusal ends the loop",
			Policy: pipeline(attempts(5, 10*ms), tokens(2)),
			Script: policytest.Script{fail},
			Calls:  []policytest.Call{{Runs: policytest.At(0, 10*ms), Takes: 20 * ms, Is: is(errDown, ratelimit.ErrLimited)}},
			Events: "retry → retry → reject(limiter) → exhausted",
		},
		{
			Name:   "a limiter outside the retry takes one token for the call",
			Policy: pipeline(tokens(2), attempts(5, 10*ms)),
			Script: policytest.Script{fail},
			Calls: []policytest.Call{{
				Runs: policytest.At(0, 10*ms, 20*ms, 30*ms, 40*ms), Takes: 40 * ms, Is: is(errDown, retry.ErrAttemptsExhausted),
			}},
			Counts: map[string]int64{"rate_limiter.calls(acquired)": 1},
		},
		{
			Name:   "a permit is held until fn returns, whatever the timeout says",
			Policy: pipeline(timeout(50*ms), permits(1, 0)),
			Script: policytest.Script{policytest.Deaf(100*ms, fail), policytest.OK},
			Calls: []policytest.Call{
				{Takes: 100 * ms, Is: is(policy.ErrTimeout, errDown)},
				{At: 70 * ms, Runs: policytest.Never, Is: is(errFull)},
				{At: 100 * ms},
			},
		},

		// Hedges.
		{
			Name:   "the loser of a hedge is not a failure",
			Policy: pipeline(hedge(50*ms), opensAfter(1)),
			Script: policytest.Script{policytest.Hang, policytest.OK},
			Calls:  []policytest.Call{{Runs: policytest.At(0, 50*ms), Takes: 50 * ms}},
			Events: "hedge(2, 50ms)",
			States: "closed",
			Counts: map[string]int64{"circuit_breaker.calls(closed, success)": 1, "circuit_breaker.calls(closed, ignored)": 1},
		},
		{
			Name:   "a breaker inside a hedge judges each attempt",
			Policy: pipeline(hedge(50*ms), opensAfter(2)),
			Script: policytest.Script{fail},
			Calls:  []policytest.Call{{Runs: policytest.At(0, 0), Is: is(errDown)}},
			Events: "hedge → open",
		},
		{
			Name:   "attempts of a hedge hold a permit each",
			Policy: pipeline(hedge(50*ms), permits(1, 0)),
			Script: policytest.Script{slow},
			Calls:  []policytest.Call{{Takes: 100 * ms}},
			Events: "hedge → reject(bulkhead)",
		},
		{
			Name:   "a retry outside a hedge repeats it when all its attempts have failed",
			Policy: pipeline(attempts(2, 10*ms), hedge(50*ms)),
			Script: policytest.Script{fail, fail, policytest.OK},
			Calls:  []policytest.Call{{Runs: policytest.At(0, 0, 10*ms), Takes: 10 * ms}},
			Events: "hedge(2) → retry(2)",
		},

		// Fallbacks.
		{
			Name:   "a fallback answers for a refusal and for a failure",
			Policy: pipeline(answer, opensAfter(1)),
			Script: policytest.Script{fail},
			Calls:  []policytest.Call{{}, {At: 10 * ms, Runs: policytest.Never}},
			Events: "open → fallback → reject(breaker) → fallback",
		},
		{
			Name:   "a fallback outermost answers for the timeout of the whole call",
			Policy: pipeline(answer, timeout(50*ms), attempts(3, 10*ms)),
			Script: policytest.Script{policytest.Hang},
			Calls:  []policytest.Call{{Takes: 50 * ms}},
			Events: "timeout → fallback",
		},
		{
			Name:   "a fallback inside the retry leaves it nothing to retry",
			Policy: pipeline(attempts(3, 10*ms), answer),
			Script: policytest.Script{fail},
			Events: "fallback",
		},
		{
			Name:   "a fallback inside the breaker hides the failure from it",
			Policy: pipeline(opensAfter(1), answer),
			Script: policytest.Script{fail},
			Calls:  []policytest.Call{{Times: 5}},
			States: "closed",
		},
		{
			Name:   "a fallback does not answer a caller who has left",
			Policy: pipeline(answer, opensAfter(1)),
			Script: policytest.Script{policytest.Hang},
			Calls:  []policytest.Call{{Cancel: 20 * ms, Takes: 20 * ms, Is: is(context.Canceled)}},
			Events: "none",
			States: "closed",
		},

		// What every order has in common.
		{
			Name:   "a healthy error passes all layers and counts as a success",
			Policy: pipeline(answer, attempts(3, 10*ms), opensAfter(1), timeout(time.Second)),
			Script: policytest.Script{policytest.Fail(policy.Healthy(errDown))},
			Calls:  []policytest.Call{{Is: is(errDown)}},
			Events: "none",
			Counts: map[string]int64{"circuit_breaker.calls(closed, success)": 1, "retry.calls(first_try)": 1},
		},
		{
			Name:   "a done context runs nothing and counts nowhere",
			Policy: pipeline(answer, timeout(time.Second), attempts(3, 10*ms), opensAfter(1), permits(1, 0), tokens(1)),
			Calls: []policytest.Call{
				{Cancel: -1, Runs: policytest.Never, Is: is(context.Canceled)},
				{Timeout: -1, Runs: policytest.Never, Is: is(context.DeadlineExceeded)},
			},
			Events: "none",
			Counts: map[string]int64{
				"timeout.calls": 0, "retry.calls": 0, "circuit_breaker.calls": 0, "bulkhead.calls": 0, "rate_limiter.calls": 0, "fallback.calls": 0,
			},
		},
		{
			Name:   "a panic passes all layers and leaves no permit held",
			Policy: pipeline(answer, timeout(time.Second), attempts(3, 10*ms), opensAfter(1), permits(1, 0)),
			Script: policytest.Script{policytest.Panic("boom")},
			Calls:  []policytest.Call{{Panics: "boom"}},
			Events: "open",
			Counts: map[string]int64{"bulkhead.usage": 0, "circuit_breaker.calls(closed, failure)": 1},
		},
		{
			Name:   "Goexit passes all layers and frees the probe's slot",
			Policy: pipeline(timeout(time.Second), attempts(3, 10*ms), opensAfter(1), permits(1, 0)),
			Script: policytest.Script{policytest.Goexit, policytest.Goexit, policytest.OK},
			Calls: []policytest.Call{
				{Exits: true},
				{At: time.Second, Exits: true},
				{At: 2 * time.Second},
			},
			Events: "open → half_open → open → half_open → closed",
			Counts: map[string]int64{"bulkhead.usage": 0},
		},
		{
			Name:   "a hundred cancellations leave the breaker closed",
			Policy: pipeline(attempts(3, 10*ms), opensAfter(1), permits(100, 0)),
			Script: policytest.Script{policytest.Hang},
			Calls:  []policytest.Call{{Times: 100, Cancel: 50 * ms, Takes: 50 * ms, Is: is(context.Canceled)}},
			States: "closed",
			Counts: map[string]int64{"circuit_breaker.calls(closed, ignored)": 100, "bulkhead.usage": 0},
		},
		{
			Name: "a breaker shared by pipelines is open for each",
			Policy: func(o observe.Observer) policy.Policy {
				shared := opensAfter(1)(o)
				reads := policy.NewPipeline("reads", attempts(3, 10*ms)(o), shared).Observed(o)
				writes := policy.NewPipeline("writes", shared).Observed(o)
				return policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
					if err := writes.Do(ctx, fn); err != nil {
						return reads.Do(ctx, fn)
					}
					return nil
				})
			},
			Script: policytest.Script{fail},
			Calls:  []policytest.Call{{Is: is(errOpen), Not: is(errDown)}},
			Events: "open(api) → reject(breaker, api)",
		},
	}
	policytest.Run(t, cases)
	inDocs(t, cases)
}

// inDocs checks that the page about ordering lists the cases, and no others.
func inDocs(t *testing.T, cases []policytest.Case) {
	page, err := os.ReadFile("../../docs/ordering.md")
	require.NoError(t, err)
	_, rules, found := strings.Cut(string(page), "\n## The rules\n")
	require.True(t, found)
	var listed, played []string
	for line := range strings.Lines(rules) {
		if rule, ok := strings.CutPrefix(line, "- "); ok {
			listed = append(listed, strings.TrimSpace(rule))
		}
	}
	for _, c := range cases {
		played = append(played, c.Name)
	}
	assert.Equal(t, played, listed)
}
