package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/retry"
)

var (
	ctx            = context.Background()
	errUnavailable = errors.New("503 service unavailable")
	errDeclined    = errors.New("card declined")
)

func chargeFails(context.Context) error { return errUnavailable }

// chargeFailsOnce succeeds at the second attempt.
func chargeFailsOnce(ctx context.Context) error {
	fmt.Println("attempt", policy.Attempt(ctx))
	if policy.Attempt(ctx) == 1 {
		return errUnavailable
	}
	return nil
}

func Example() {
	charge := policy.NewPipeline("charge",
		policy.Timeout(5*time.Second), // for all attempts
		retry.New(retry.Config{}),     // 3 of them
		policy.Timeout(time.Second),   // for each
	)
	fmt.Println(charge.Do(ctx, chargeFailsOnce))
	// Output:
	// attempt 1
	// attempt 2
	// <nil>
}

func ExampleNew() {
	r := retry.New(retry.Config{
		Attempts:   5,
		MaxElapsed: 10 * time.Second,
		BackOff:    retry.FullJitter(time.Millisecond, time.Second),
	})
	fmt.Println(r.Do(ctx, chargeFails))
	// Output: retry: gave up after 5 attempts (attempts exhausted): 503 service unavailable
}

func ExampleRetry_Do() {
	r := retry.New(retry.Config{BackOff: retry.FullJitter(time.Millisecond, time.Second)})
	err := r.Do(ctx, chargeFailsOnce)
	fmt.Println(err)
	// Output:
	// attempt 1
	// attempt 2
	// <nil>
}

func ExampleConfig_retryable() {
	r := retry.New(retry.Config{
		Retryable: func(ctx context.Context, err error) bool {
			return retry.DefaultRetryable(ctx, err) && !errors.Is(err, errDeclined)
		},
	})
	err := r.Do(ctx, func(context.Context) error { return errDeclined })
	fmt.Println(err)
	// Output: card declined
}

func ExampleConfig_Validate() {
	err := retry.Config{MaxElapsed: -time.Second}.Validate()
	fmt.Println(err)
	// Output: retry: Config.MaxElapsed is -1s, must be 0 (no limit) or more
}

// Any backoff of the library works: one value for each call, since it keeps state.
func ExampleConfig_backOff() {
	r := retry.New(retry.Config{
		Attempts: -1, // WithMaxRetries limits them
		BackOff: func() backoff.BackOff {
			b := backoff.NewExponentialBackOff(
				backoff.WithInitialInterval(time.Millisecond),
				backoff.WithMaxElapsedTime(0), // its default is 15 minutes
			)
			return backoff.WithMaxRetries(b, 2)
		},
	})
	fmt.Println(r.Do(ctx, chargeFails))
	// Output: retry: gave up after 3 attempts (stopped by the backoff): 503 service unavailable
}

func ExampleConfig_permanent() {
	r := retry.New(retry.Config{})
	err := r.Do(ctx, func(context.Context) error {
		return backoff.Permanent(errDeclined)
	})
	fmt.Println(err, errors.As(err, new(*backoff.PermanentError)))
	// Output: card declined false
}

func ExampleDefaultRetryable() {
	timeout := &policy.TimeoutError{Limit: time.Second, Err: context.DeadlineExceeded}
	fmt.Println("a failure:", retry.DefaultRetryable(ctx, errUnavailable))
	fmt.Println("a timeout of the attempt:", retry.DefaultRetryable(ctx, timeout))
	fmt.Println("a healthy answer:", retry.DefaultRetryable(ctx, policy.Healthy(errDeclined)))
	fmt.Println("a refusal:", retry.DefaultRetryable(ctx, policy.ErrRejected))
	// Output:
	// a failure: true
	// a timeout of the attempt: true
	// a healthy answer: false
	// a refusal: false
}

func ExampleExhaustedError() {
	deadline, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r := retry.New(retry.Config{BackOff: func() backoff.BackOff {
		return backoff.NewConstantBackOff(time.Minute)
	}})
	err := r.Do(deadline, chargeFails) // returns at once: nobody would wait for a second attempt

	var gaveUp *retry.ExhaustedError
	if errors.As(err, &gaveUp) {
		fmt.Println(gaveUp.Attempts, "attempt")
	}
	fmt.Println("why:", errors.Is(err, retry.ErrDeadline))
	fmt.Println("what:", errors.Is(err, errUnavailable))
	// Output:
	// 1 attempt
	// why: true
	// what: true
}

func ExampleFullJitter() {
	b := retry.FullJitter(50*time.Millisecond, 5*time.Second)()
	first, second := b.NextBackOff(), b.NextBackOff()
	fmt.Println(0 < first && first <= 50*time.Millisecond)
	fmt.Println(0 < second && second <= 100*time.Millisecond)
	// Output:
	// true
	// true
}

// One budget for all that calls a dependency.
func ExampleNewBudget() {
	budget := retry.NewBudget("payments-api", retry.BudgetConfig{Ratio: 0.1})
	charge := policy.NewPipeline("charge", retry.New(retry.Config{Budget: budget}))
	refund := policy.NewPipeline("refund", retry.New(retry.Config{Budget: budget}))
	for range 100 {
		_ = charge.Do(ctx, func(context.Context) error { return nil })
		_ = refund.Do(ctx, func(context.Context) error { return nil })
	}
	fmt.Printf("%.0f retries for %d calls\n", budget.Stats().Limit, budget.Stats().Calls)
	// Output: 120 retries for 200 calls
}

func ExampleBudget_Stats() {
	budget := retry.NewBudget("payments-api", retry.BudgetConfig{Ratio: -1, PerSecond: 0.1}) // one in 10 seconds
	r := retry.New(retry.Config{Budget: budget, BackOff: retry.FullJitter(time.Millisecond, time.Second)})
	fmt.Println(r.Do(ctx, chargeFails))
	s := budget.Stats()
	fmt.Println("available:", s.Available, "spent:", s.Spent, "refused:", s.Refused)
	// Output:
	// retry: gave up after 2 attempts (budget exhausted): 503 service unavailable
	// available: 0 spent: 1 refused: 1
}

func ExampleBudgetConfig_Validate() {
	err := retry.BudgetConfig{Window: -time.Second}.Validate()
	fmt.Println(err)
	// Output: retry: BudgetConfig.Window is -1s, must be 0 (10s) or at least 1ms
}

func ExampleConfig_nested() {
	attempts := 0
	fails := func(context.Context) error { attempts++; return errUnavailable }
	soon := retry.FullJitter(time.Millisecond, time.Millisecond)

	outer := retry.New(retry.Config{BackOff: soon})
	_ = policy.NewPipeline("charge", outer, retry.New(retry.Config{BackOff: soon})).Do(ctx, fails)
	fmt.Println("two retries of 3:", attempts)

	attempts = 0
	_ = policy.NewPipeline("charge", outer, retry.New(retry.Config{BackOff: soon, Nested: true})).Do(ctx, fails)
	fmt.Println("the inner one nested:", attempts)
	// Output:
	// two retries of 3: 3
	// the inner one nested: 9
}

// lookUp is slow, but only the first time.
func lookUp(ctx context.Context) (string, error) {
	if policy.Attempt(ctx) == 1 {
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	return "found by attempt 2", nil
}

func ExampleNewHedge() {
	search := policy.NewPipeline("search", retry.NewHedge(retry.HedgeConfig{Delay: 10 * time.Millisecond}))
	found, err := policy.Get(ctx, search, lookUp)
	fmt.Println(found, err)
	// Output: found by attempt 2 <nil>
}

// The slowest 5% get a second attempt, however fast the service is today.
func ExampleNewHedge_percentile() {
	search := policy.NewPipeline("search", retry.NewHedge(retry.HedgeConfig{Percentile: 0.95}))
	for range 20 {
		_ = search.Do(ctx, func(context.Context) error { return nil })
	}
	found, err := policy.Get(ctx, search, lookUp)
	fmt.Println(found, err)
	// Output: found by attempt 2 <nil>
}

func ExampleHedge_Do() {
	h := retry.NewHedge(retry.HedgeConfig{
		Delay: 10 * time.Millisecond,
		Observer: observe.Func(func(_ context.Context, e observe.Event) {
			fmt.Println(e.Kind, e.Attempt)
		}),
	})
	err := h.Do(ctx, func(ctx context.Context) error {
		_, err := lookUp(ctx)
		return err
	})
	fmt.Println(err)
	// Output:
	// hedged 2
	// <nil>
}

func ExampleHedgeConfig_Validate() {
	err := retry.HedgeConfig{}.Validate()
	fmt.Println(err)
	// Output: retry: HedgeConfig.Delay is 0s and Percentile 0, one of them must be set
}

func ExampleRetry_String() {
	fmt.Println(retry.New(retry.Config{}), retry.NewHedge(retry.HedgeConfig{Percentile: 0.95}))
	// Output: retry(3) hedge(p95)
}
