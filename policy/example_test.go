package policy_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/ratelimit"
	"github.com/switchgear-go/switchgear/retry"
)

// Receipt and Quote are what the examples' dependencies return.
type (
	Receipt struct{ ID string }
	Quote   struct {
		Price int
		Stale bool
	}
)

var errNoFunds = errors.New("insufficient funds")

func chargeCard(context.Context) (Receipt, error) { return Receipt{"r-1"}, nil }
func fetchQuote(context.Context) (Quote, error)   { return Quote{}, errors.New("connection refused") }
func sendMail(context.Context) error              { return errors.New("connection refused") }
func callPrimary(context.Context) error           { return errors.New("connection refused") }
func callReplica(context.Context) error           { return nil }
func withdraw(context.Context, int) error         { return errNoFunds }
func tenantOf(ctx context.Context) string         { return fmt.Sprint(ctx.Value(tenantKey{})) }
func asTenant(ctx context.Context, t string) context.Context {
	return context.WithValue(ctx, tenantKey{}, t)
}

type tenantKey struct{}

// logger writes to what an example's output is compared with, without the time, which differs from run to run.
func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func Example() {
	charge := policy.NewPipeline("charge",
		policy.Timeout(5*time.Second),                          // the whole call, attempts and waits included
		retry.New(retry.Config{Attempts: 3}),                   // jittered backoff, from a budget
		breaker.New("payments-api", breaker.Config{}),          // opens when half of the last 10s' calls failed
		bulkhead.New("payments-api", bulkhead.Config{Max: 50}), // no more than 50 at once
	)
	receipt, err := policy.Get(context.Background(), charge, chargeCard)
	fmt.Println(receipt.ID, err)
	fmt.Println(charge)
	// Output:
	// r-1 <nil>
	// charge: timeout(5s) → retry(3) → breaker(payments-api) → bulkhead(payments-api)
}

func ExamplePipeline_Do() {
	p := policy.NewPipeline("mail", policy.Timeout(time.Second))
	err := p.Do(context.Background(), sendMail)
	fmt.Println(err)
	// Output: connection refused
}

func ExamplePipeline_Observed() {
	p := policy.NewPipeline("mail", policy.Timeout(time.Nanosecond)).
		Observed(observe.Func(func(_ context.Context, e observe.Event) { fmt.Println(e.Name, e.Kind) }))
	_ = p.Do(context.Background(), func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	// Output: mail timed_out
}

func ExampleNewPipeline_slog() {
	api := breaker.New("mail-api", breaker.Config{Consecutive: 2, Jitter: -1, Observer: observe.Slog(logger())})
	for range 3 {
		_ = api.Do(context.Background(), sendMail)
	}
	// Output: level=WARN msg="circuit breaker mail-api: closed → open" policy=circuit_breaker name=mail-api from=closed to=open reason=consecutive_failures ratio=1 calls=2 delay=5s error="connection refused"
}

func ExampleTimeout() {
	err := policy.Timeout(time.Millisecond).Do(context.Background(), func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	fmt.Println(errors.Is(err, policy.ErrTimeout), errors.Is(err, context.DeadlineExceeded))
	// Output: true true
}

func ExampleWrap() {
	send := policy.Wrap(policy.Timeout(time.Second), sendMail)
	fmt.Println(send(context.Background()))
	// Output: connection refused
}

func ExampleGet() {
	p := policy.NewPipeline("charge", policy.Timeout(time.Second))
	receipt, err := policy.Get(context.Background(), p, chargeCard)
	fmt.Println(receipt.ID, err)
	// Output: r-1 <nil>
}

func ExampleHealthy() {
	api := breaker.New("bank", breaker.Config{Consecutive: 1})
	err := api.Do(context.Background(), func(ctx context.Context) error {
		err := withdraw(ctx, 100)
		if errors.Is(err, errNoFunds) {
			return policy.Healthy(err) // the bank is fine
		}
		return err
	})
	fmt.Println(err, api.State())
	// Output: insufficient funds closed
}

// A business error that every caller would have to mark is better judged in one place.
func ExampleClassify() {
	api := breaker.New("bank", breaker.Config{
		Consecutive: 1,
		Classify: func(ctx context.Context, err error) policy.Outcome {
			if errors.Is(err, errNoFunds) {
				return policy.Success
			}
			return policy.Classify(ctx, err)
		},
	})
	err := api.Do(context.Background(), func(ctx context.Context) error { return withdraw(ctx, 100) })
	fmt.Println(err, api.State())
	// Output: insufficient funds closed
}

func ExampleFallbackValue() {
	last := Quote{Price: 41}
	quotes := policy.NewPipeline("quotes",
		policy.FallbackValue(func(_ context.Context, err error) (Quote, error) {
			return Quote{Price: last.Price, Stale: true}, nil
		}),
		breaker.New("quotes-api", breaker.Config{}),
	)
	quote, err := policy.Get(context.Background(), quotes, fetchQuote)
	fmt.Println(quote, err)
	// Output: {41 true} <nil>
}

func ExampleFallback() {
	reads := policy.NewPipeline("reads", policy.Fallback(func(ctx context.Context, _ error) error {
		return callReplica(ctx)
	}))
	fmt.Println(reads.Do(context.Background(), callPrimary))
	// Output: <nil>
}

func ExampleFallback_queue() {
	var later []string
	mail := policy.NewPipeline("mail", policy.Fallback(func(_ context.Context, err error) error {
		if len(later) == 1000 {
			return err // a queue without a bound only moves the outage
		}
		later = append(later, "welcome")
		return nil
	}))
	fmt.Println(mail.Do(context.Background(), sendMail), later)
	// Output: <nil> [welcome]
}

func ExampleFallback_tryAgain() {
	api := breaker.New("mail-api", breaker.Config{Cooldown: time.Minute, Jitter: -1})
	api.Trip()
	mail := policy.NewPipeline("mail", policy.Fallback(func(_ context.Context, err error) error {
		if wait, ok := policy.RetryAfter(err); ok {
			return fmt.Errorf("mail is down, try again in %v: %w", wait.Round(time.Minute), err)
		}
		return err
	}), api)
	fmt.Println(mail.Do(context.Background(), sendMail))
	// Output: mail is down, try again in 1m0s: circuit_breaker mail-api: circuit open (manual)
}

func ExampleRetryAfter() {
	api := breaker.New("api", breaker.Config{Cooldown: time.Minute, Jitter: -1})
	api.Trip()
	wait, ok := policy.RetryAfter(api.Do(context.Background(), sendMail))
	fmt.Println(wait.Round(time.Second), ok)
	// Output: 1m0s true
}

// A policy of your own is a function. This one is told of every call, which the built-in telemetry only counts.
func ExamplePolicyFunc() {
	audit := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		if err := ctx.Err(); err != nil {
			return err // a context that is done runs nothing
		}
		err := fn(ctx)
		fmt.Println("called:", err)
		return err
	})
	_ = policy.NewPipeline("mail", audit).Do(context.Background(), sendMail)
	// Output: called: connection refused
}

// A policy whose runs of fn overlap gives each a fork, and settles it once its fate is known.
func ExampleFork() {
	mirror := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		shadow, drop := policy.Fork(ctx)
		done := make(chan struct{})
		go func() { defer close(done); _ = fn(shadow) }()
		err := fn(ctx)
		drop(false) // its value, if it is an io.Closer, is closed
		<-done
		return err
	})
	receipt, err := policy.Get(context.Background(), mirror, chargeCard)
	fmt.Println(receipt.ID, err)
	// Output: r-1 <nil>
}

func ExampleAttempt() {
	p := policy.NewPipeline("mail", retry.New(retry.Config{Attempts: 2, BackOff: retry.FullJitter(time.Microsecond, time.Microsecond)}))
	_ = p.Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("attempt", policy.Attempt(ctx))
		return sendMail(ctx)
	})
	// Output:
	// attempt 1
	// attempt 2
}

func ExampleNewGroup() {
	breakers := policy.NewGroup(policy.GroupConfig{Name: "tenants"}, func(string) *breaker.Breaker {
		return breaker.New("tenants", breaker.Config{Consecutive: 1})
	})
	p := policy.NewPipeline("store", breakers.Policy(tenantOf))
	_ = p.Do(asTenant(context.Background(), "a"), sendMail)
	err := p.Do(asTenant(context.Background(), "a"), callReplica)
	fmt.Println("a:", errors.Is(err, breaker.ErrCircuitOpen))
	err = p.Do(asTenant(context.Background(), "b"), callReplica)
	fmt.Println("b:", err)
	for tenant, b := range breakers.All() {
		fmt.Println(tenant, b.State())
	}
	// Output:
	// a: true
	// b: <nil>
	// a open
	// b closed
}

func ExampleGroup_Get() {
	breakers := policy.NewGroup(policy.GroupConfig{Name: "hosts", Max: 100}, func(string) *breaker.Breaker {
		return breaker.New("hosts", breaker.Config{})
	})
	fmt.Println(breakers.Get("db-1").State())
	// Output: closed
}

func ExampleRejection() {
	errMaintenance := errors.New("maintenance")
	down := policy.PolicyFunc(func(context.Context, policy.Func) error {
		return policy.Rejection("maintenance", "db", errMaintenance, time.Time{}, nil)
	})
	err := down.Do(context.Background(), sendMail)
	fmt.Println(err, errors.Is(err, policy.ErrRejected), errors.Is(err, errMaintenance))
	// Output: maintenance db: maintenance true true
}

// A group as a policy in a pipeline: each call runs under the limiter of its tenant.
func ExampleGroup_Policy() {
	limits := policy.NewGroup(policy.GroupConfig{Name: "tenants"}, func(string) *ratelimit.Limiter {
		return ratelimit.New("tenants", ratelimit.Config{Rate: .001, Burst: 1})
	})
	p := policy.NewPipeline("store", limits.Policy(tenantOf))
	for _, tenant := range []string{"a", "a", "b"} {
		err := p.Do(asTenant(context.Background(), tenant), callReplica)
		fmt.Println(tenant, errors.Is(err, ratelimit.ErrLimited))
	}
	// Output:
	// a false
	// a true
	// b false
}

// An operator sees which hosts are cut off.
func ExampleGroup_All() {
	breakers := policy.NewGroup(policy.GroupConfig{Name: "hosts"}, func(string) *breaker.Breaker {
		return breaker.New("hosts", breaker.Config{})
	})
	breakers.Get("db-1")
	breakers.Get("db-2").Trip()
	for host, b := range breakers.All() {
		fmt.Println(host, b.State())
	}
	// Output:
	// db-1 closed
	// db-2 open
}

// The log says which host it was, the metrics do not.
func ExampleNewGroup_log() {
	log := logger()
	breakers := policy.NewGroup(policy.GroupConfig{Name: "hosts"}, func(host string) *breaker.Breaker {
		return breaker.New("hosts", breaker.Config{
			Observer: observe.Tee(otelx.Default(), observe.Slog(log.With("host", host))),
		})
	})
	breakers.Get("db-2").ForceOpen()
	// Output: level=WARN msg="circuit breaker hosts: closed → forced_open" host=db-2 policy=circuit_breaker name=hosts from=closed to=forced_open reason=manual
}

func ExampleGroupConfig_Validate() {
	fmt.Println(policy.GroupConfig{Max: -1}.Validate())
	// Output: policy: GroupConfig.Max is -1, must be 0 (for 1,000) or more
}

func ExamplePipeline_InUse() {
	p := policy.NewPipeline("mail", policy.Timeout(time.Second))
	_ = p.Do(context.Background(), func(context.Context) error {
		fmt.Println(p.InUse())
		return nil
	})
	fmt.Println(p.InUse())
	// Output:
	// true
	// false
}

func ExamplePipeline_String() {
	fmt.Println(policy.NewPipeline("mail", policy.Timeout(time.Second), retry.New(retry.Config{})))
	// Output: mail: timeout(1s) → retry(3)
}

// The error of a timeout says which one it was, and what the call had returned.
func ExampleTimeoutError() {
	err := policy.Timeout(time.Millisecond).Do(context.Background(), func(ctx context.Context) error {
		<-ctx.Done()
		return fmt.Errorf("read the answer: %w", ctx.Err())
	})
	var timeout *policy.TimeoutError
	if errors.As(err, &timeout) {
		fmt.Println(timeout.Limit)
		fmt.Println(timeout.Err)
	}
	// Output:
	// 1ms
	// read the answer: context deadline exceeded
}

// The error of a refusal says who refused and why.
func ExampleRejectedError() {
	api := breaker.New("mail-api", breaker.Config{})
	api.Trip()
	err := api.Do(context.Background(), sendMail)
	var refused *policy.RejectedError
	if errors.As(err, &refused) {
		fmt.Println(refused.Policy, refused.Name, refused.Reason, refused.Why)
	}
	// Output: circuit_breaker mail-api circuit open manual
}
