package policytest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/policy/policytest"
	"github.com/switchgear-go/switchgear/ratelimit"
	"github.com/switchgear-go/switchgear/retry"
)

// t stands for the argument of your own test function.
var t *testing.T

func TestExamples(tt *testing.T) {
	for _, example := range []func(){
		ExampleRun, ExampleRun_calls, ExampleRun_get, ExampleRun_operator, ExampleConform, ExampleOverlapping, ExampleOpens, ExampleOpens_transport,
	} {
		tt.Run("", func(tt *testing.T) {
			t = tt
			example()
		})
	}
}

func ExampleRun() {
	errDown := errors.New("connection refused")
	charge := func(o observe.Observer) policy.Policy {
		return policy.NewPipeline("charge",
			policy.Timeout(2*time.Second),
			retry.New(retry.Config{Attempts: 3, BackOff: func() backoff.BackOff { return backoff.NewConstantBackOff(100 * time.Millisecond) }}),
			breaker.New("payments-api", breaker.Config{Consecutive: 2, Cooldown: 5 * time.Second, Jitter: -1, Observer: o}),
			policy.Timeout(500*time.Millisecond),
		).Observed(o)
	}

	policytest.Run(t, []policytest.Case{
		{
			Name:   "a call that fails once is tried again",
			Policy: charge,
			Script: policytest.Script{policytest.Fail(errDown), policytest.OK},
			Calls: []policytest.Call{{
				Runs:  policytest.At(0, 100*time.Millisecond),
				Takes: 100 * time.Millisecond,
			}},
			Events: "retry",
			States: "closed",
		},
		{
			Name:   "two attempts that hang open the breaker, and that ends the call",
			Policy: charge,
			Script: policytest.Script{policytest.Hang},
			Calls: []policytest.Call{{
				Runs:  policytest.At(0, 600*time.Millisecond),
				Takes: 1200 * time.Millisecond,
				Is:    []error{breaker.ErrCircuitOpen, policy.ErrTimeout},
			}},
			Events: "timeout → retry → timeout → open → retry → reject(breaker) → exhausted",
			States: "open",
			Counts: map[string]int64{"retry.attempts(original)": 1, "retry.attempts(retry)": 2},
		},
	})
}

func ExampleRun_calls() {
	errDown := errors.New("connection refused")

	policytest.Run(t, []policytest.Case{{
		Name: "of fifty callers who come back after the cooldown one gets through",
		Policy: func(o observe.Observer) policy.Policy {
			return breaker.New("payments-api", breaker.Config{Consecutive: 3, Cooldown: 5 * time.Second, Jitter: -1, Observer: o})
		},
		// It is down for two seconds. Then a call takes 10ms.
		Script: policytest.Script{policytest.After(10*time.Millisecond, policytest.Outage(errDown, 0, 2*time.Second))},
		Calls: []policytest.Call{
			{Times: 3, Takes: 10 * time.Millisecond, Is: []error{errDown}},
			{At: time.Second, Times: 10, Runs: policytest.Never, Is: []error{breaker.ErrCircuitOpen}},
			{At: 6 * time.Second, Takes: 10 * time.Millisecond},
			{At: 6 * time.Second, Times: 49, Runs: policytest.Never, Is: []error{breaker.ErrCircuitOpen}},
			{At: 7 * time.Second, Times: 50, Takes: 10 * time.Millisecond},
		},
		Events: "open@10ms → reject×10 → half_open@6s → reject(half_open)×49 → closed",
	}})
}

func ExampleRun_get() {
	var quote string
	policytest.Run(t, []policytest.Case{{
		Name: "a refused call is answered from the cache",
		Policy: func(o observe.Observer) policy.Policy {
			return policy.NewPipeline("quotes",
				policy.FallbackValue(func(context.Context, error) (string, error) { return "cached", nil }),
				ratelimit.New("quotes-api", ratelimit.Config{Burst: 1, Observer: o}),
			).Observed(o)
		},
		Calls: []policytest.Call{{}, {
			Runs: policytest.Never,
			Do: func(ctx context.Context, p policy.Policy, fn policy.Func) (err error) {
				quote, err = policy.Get(ctx, p, func(ctx context.Context) (string, error) { return "fresh", fn(ctx) })
				return err
			},
		}},
		Events: "reject(limiter) → fallback",
		Check: func(t *testing.T, _ *policytest.Recorder) {
			if quote != "cached" {
				t.Errorf("the quote is %q", quote)
			}
		},
	}})
}

func ExampleRun_operator() {
	var api *breaker.Breaker
	policytest.Run(t, []policytest.Case{{
		Name: "a breaker that is forced open stays open until it is reset",
		Policy: func(o observe.Observer) policy.Policy {
			api = breaker.New("payments-api", breaker.Config{Observer: o})
			return api
		},
		Calls: []policytest.Call{
			{Runs: policytest.Never, Do: func(context.Context, policy.Policy, policy.Func) error { api.ForceOpen(); return nil }},
			{At: 24 * time.Hour, Runs: policytest.Never, Is: []error{breaker.ErrCircuitOpen}},
			{At: 24 * time.Hour, Runs: policytest.Never, Do: func(context.Context, policy.Policy, policy.Func) error { api.Reset(); return nil }},
			{At: 24 * time.Hour},
		},
		Events: "forced_open → reject(forced_open) → closed",
	}})
}

func ExampleConform() {
	audit := func() policy.Policy {
		return policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			err := fn(ctx)
			slog.DebugContext(ctx, "called", "error", err)
			return err
		})
	}
	policytest.Conform(t, audit)

	once := func() policy.Policy { // one call at a time, and nobody waits
		busy := make(chan struct{}, 1)
		return policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			select {
			case busy <- struct{}{}:
				defer func() { <-busy }()
				return fn(ctx)
			default:
				return policy.Rejection("once", "report", errors.New("it is being made"), time.Time{}, nil)
			}
		})
	}
	policytest.Conform(t, once)
}

func ExampleOverlapping() {
	policytest.Conform(t, policytest.Overlapping(func() policy.Policy {
		return retry.NewHedge(retry.HedgeConfig{Delay: 50 * time.Millisecond})
	}))
}

func ExampleOpens() {
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer down.Close()

	charge := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, down.URL, nil)
		if err != nil {
			return err
		}
		response, err := down.Client().Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode >= 500 { // without this, the breaker would see successes, and Opens would fail
			return fmt.Errorf("charge: %s", response.Status)
		}
		return nil
	}
	payments := breaker.New("payments-api", breaker.Config{})
	policytest.Opens(t, payments, charge, 20)
}

// breaking is a client whose breaker is out of reach of the test.
type breaking struct{ policy policy.Policy }

func (c *breaking) charge(ctx context.Context) error {
	return c.policy.Do(ctx, func(context.Context) error { return errors.New("connection refused") })
}

func ExampleOpens_transport() {
	client := &breaking{breaker.New("payments-api", breaker.Config{})}
	policytest.Opens(t, nil, client.charge, 20)
}

func ExampleRecorder() {
	var seen policytest.Recorder
	api := breaker.New("payments-api", breaker.Config{Consecutive: 2, Jitter: -1, Observer: &seen})
	for range 5 {
		_ = api.Do(context.Background(), func(context.Context) error { return errors.New("connection refused") })
	}
	fmt.Println(seen.Match("open(payments-api) → reject(breaker)×3"))
	fmt.Println(seen.Count("circuit_breaker.calls(closed, failure)"), seen.State("payments-api"))
	fmt.Println(seen.Match("open → half_open"))
	// Output:
	// <nil>
	// 2 open
	// policytest: events are open(payments-api, consecutive_failures, 5s) → reject(breaker, payments-api, open, rejected) → reject(breaker, payments-api, open, rejected) → reject(breaker, payments-api, open, rejected), want open → half_open
}
