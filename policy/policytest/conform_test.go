package policytest_test

import (
	"context"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/policy/policytest"
	"github.com/switchgear-go/switchgear/ratelimit"
	"github.com/switchgear-go/switchgear/retry"
)

func passOn(_ context.Context, err error) error { return err }

func TestOurPoliciesConform(t *testing.T) {
	quick := func() backoff.BackOff { return backoff.NewConstantBackOff(20 * time.Millisecond) }
	for name, build := range map[string]func() policy.Policy{
		"timeout":        func() policy.Policy { return policy.Timeout(time.Hour) },
		"short timeout":  func() policy.Policy { return policy.Timeout(10 * time.Millisecond) },
		"fallback":       func() policy.Policy { return policy.Fallback(passOn) },
		"empty pipeline": func() policy.Policy { return policy.NewPipeline("empty") },
		"breaker": func() policy.Policy {
			return breaker.New("api", breaker.Config{Consecutive: 1, Observer: observe.Discard})
		},
		"breaker with everything on": func() policy.Policy {
			return breaker.New("api", breaker.Config{
				MinCalls: 1, Failures: 3, SlowCall: time.Second, Probes: 2, ProbeSuccesses: 2, RampUp: time.Second, TripOn: policy.RetryAfter,
			})
		},
		"breaker in shadow": func() policy.Policy {
			return breaker.New("api", breaker.Config{Consecutive: 1, Shadow: true})
		},
		"bulkhead":            func() policy.Policy { return bulkhead.New("db", bulkhead.Config{Max: 1}) },
		"bulkhead with queue": func() policy.Policy { return bulkhead.New("db", bulkhead.Config{Max: 1, Queue: 4}) },
		"bulkhead with wait": func() policy.Policy {
			return bulkhead.New("db", bulkhead.Config{Max: 2, Queue: 100, MaxWait: time.Second})
		},
		"limiter":           func() policy.Policy { return ratelimit.New("api", ratelimit.Config{Rate: 1, Burst: 1}) },
		"limiter with wait": func() policy.Policy { return ratelimit.New("api", ratelimit.Config{Rate: 100, Burst: 1, MaxWait: -1}) },
		"retry":             func() policy.Policy { return retry.New(retry.Config{}) },
		"retry, constant": func() policy.Policy {
			return retry.New(retry.Config{Attempts: 5, BackOff: quick, Budget: retry.Unlimited, Nested: true})
		},
		"hedge": policytest.Overlapping(func() policy.Policy {
			return retry.NewHedge(retry.HedgeConfig{Delay: 10 * time.Millisecond, MaxHedges: 2, Budget: retry.Unlimited})
		}),
		"learning hedge": policytest.Overlapping(func() policy.Policy {
			return retry.NewHedge(retry.HedgeConfig{Percentile: .9})
		}),
		"group": func() policy.Policy {
			breakers := policy.NewGroup(policy.GroupConfig{Name: "hosts"}, func(string) *breaker.Breaker {
				return breaker.New("hosts", breaker.Config{Consecutive: 1})
			})
			return breakers.Policy(func(context.Context) string { return "one" })
		},
		"chain": func() policy.Policy {
			return policy.NewPipeline("chain",
				policy.Fallback(passOn),
				policy.Timeout(time.Hour),
				retry.New(retry.Config{BackOff: quick}),
				breaker.New("api", breaker.Config{}),
				bulkhead.New("api", bulkhead.Config{Max: 3, Queue: 3}),
				ratelimit.New("api", ratelimit.Config{Rate: 1000, MaxWait: time.Second}),
				policy.Timeout(time.Second),
			)
		},
	} {
		t.Run(name, func(t *testing.T) { policytest.Conform(t, build) })
	}
}
