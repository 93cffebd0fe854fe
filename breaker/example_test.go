package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

var (
	ctx            = context.Background()
	errUnavailable = errors.New("503 service unavailable")
)

func charge(context.Context) error      { return nil }
func chargeFails(context.Context) error { return errUnavailable }

// handClock is a clock that only an example moves.
type handClock struct{ now time.Time }

func (c *handClock) Now() time.Time { return c.now }

func Example() {
	payments := breaker.New("payments-api", breaker.Config{Consecutive: 3}) // once, at start
	for range 4 {
		err := payments.Do(ctx, chargeFails)
		fmt.Println(err)
	}
	// Output:
	// 503 service unavailable
	// 503 service unavailable
	// 503 service unavailable
	// circuit_breaker payments-api: circuit open (consecutive_failures: 503 service unavailable)
}

func ExampleBreaker_Do() {
	payments := breaker.New("payments-api", breaker.Config{})
	err := payments.Do(ctx, charge)
	fmt.Println(err)
	// Output: <nil>
}

// With a value, through [policy.Get].
func ExampleBreaker_Do_value() {
	payments := breaker.New("payments-api", breaker.Config{})
	balance, err := policy.Get(ctx, payments, func(context.Context) (int, error) { return 42, nil })
	fmt.Println(balance, err)
	// Output: 42 <nil>
}

// A refusal says when to come back.
func ExampleErrCircuitOpen() {
	payments := breaker.New("payments-api", breaker.Config{Cooldown: 30 * time.Second, Jitter: -1})
	payments.Trip()
	err := payments.Do(ctx, charge)
	if errors.Is(err, breaker.ErrCircuitOpen) {
		wait, _ := policy.RetryAfter(err)
		fmt.Println("try again in", wait.Round(time.Second))
	}
	// Output: try again in 30s
}

func ExampleNew() {
	payments := breaker.New("payments-api", breaker.Config{
		Window:       time.Minute,     // of the calls of a minute
		MinCalls:     50,              // if they are at least 50,
		FailureRatio: 0.25,            // a quarter fails: open
		SlowCall:     2 * time.Second, // or half take two seconds
	})
	fmt.Println(payments, payments.State())
	// Output: breaker(payments-api) closed
}

func ExampleConfig_Validate() {
	cfg := breaker.Config{FailureRatio: 50, Cooldown: -time.Second}
	fmt.Println(cfg.Validate())
	// Output:
	// breaker: Config.FailureRatio is 50, must be above 0 and at most 1, 0 for the default, or negative for none
	// breaker: Config.Cooldown is -1s, must be above 0, or 0 for 5s
}

// A stream is no function: ask first, and say at its end how it went.
func ExampleBreaker_Allow() {
	feed := breaker.New("price-feed", breaker.Config{Consecutive: 1})
	read := func(next func() error) error {
		permit, err := feed.Allow(ctx)
		if err != nil {
			return err
		}
		for {
			err := next()
			if err == nil {
				continue
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			permit.Done(err)
			return err
		}
	}
	fmt.Println(read(func() error { return io.EOF }))
	fmt.Println(read(func() error { return io.ErrUnexpectedEOF }))
	fmt.Println(read(func() error { return nil }))
	// Output:
	// <nil>
	// unexpected EOF
	// circuit_breaker price-feed: circuit open (consecutive_failures: unexpected EOF)
}

// Only the first Done counts, so a deferred one covers every way out.
func ExamplePermit_Done() {
	feed := breaker.New("price-feed", breaker.Config{})
	func() {
		permit, err := feed.Allow(ctx)
		if err != nil {
			return
		}
		defer permit.Done(errors.New("left early"))
		permit.Done(nil) // all went well
	}()
	fmt.Println(feed.Stats().Calls, "call,", feed.Stats().Failed, "failed")
	// Output: 1 call, 0 failed
}

// An operator knows of a failure before the calls do. The breaker recovers by itself.
func ExampleBreaker_Trip() {
	clock := &handClock{time.Unix(0, 0)}
	payments := breaker.New("payments-api", breaker.Config{Clock: clock.Now, Jitter: -1})
	payments.Trip()
	fmt.Println(payments.State())
	clock.now = clock.now.Add(5 * time.Second)
	fmt.Println(payments.State())
	// Output:
	// open
	// half_open
}

// An operator who knows that the dependency is back need not wait for the cooldown.
func ExampleBreaker_Probe() {
	payments := breaker.New("payments-api", breaker.Config{})
	payments.Trip()
	payments.Probe()
	fmt.Println(payments.Do(ctx, charge), payments.State())
	// Output: <nil> closed
}

// During maintenance nothing is to reach the dependency, however long it takes.
func ExampleBreaker_ForceOpen() {
	payments := breaker.New("payments-api", breaker.Config{})
	payments.ForceOpen()
	fmt.Println(payments.Do(ctx, charge))
	payments.Reset()
	fmt.Println(payments.Do(ctx, charge))
	// Output:
	// circuit_breaker payments-api: circuit open (manual)
	// <nil>
}

// When the breaker itself is in the way, switch it off.
func ExampleBreaker_ForceClosed() {
	payments := breaker.New("payments-api", breaker.Config{Consecutive: 1})
	payments.ForceClosed()
	_ = payments.Do(ctx, chargeFails)
	fmt.Println(payments.State(), payments.Do(ctx, charge))
	// Output: forced_closed <nil>
}

func ExampleBreaker_Reset() {
	payments := breaker.New("payments-api", breaker.Config{Consecutive: 1})
	_ = payments.Do(ctx, chargeFails)
	fmt.Println(payments.State())
	payments.Reset()
	fmt.Println(payments.State(), payments.Stats().Failed)
	// Output:
	// open
	// closed 0
}

func ExampleBreaker_State() {
	payments := breaker.New("payments-api", breaker.Config{})
	fmt.Println(payments.State(), payments.State() == breaker.Closed)
	// Output: closed true
}

func ExampleBreaker_Stats() {
	clock := &handClock{time.Unix(0, 0)}
	payments := breaker.New("payments-api", breaker.Config{Clock: clock.Now, Jitter: -1, MinCalls: 4})
	for range 2 {
		_ = payments.Do(ctx, charge)
		_ = payments.Do(ctx, chargeFails)
	}
	clock.now = clock.now.Add(2 * time.Second)
	s := payments.Stats()
	fmt.Printf("%v for another %v: %d of %d calls failed, last with %q\n", s.State, s.Until.Sub(clock.now), s.Failed, s.Calls, s.LastFailure)
	// Output: open for another 3s: 2 of 4 calls failed, last with "503 service unavailable"
}

// InUse is for those who keep many breakers and want to know which they may drop; see [policy.Group].
func ExampleBreaker_InUse() {
	payments := breaker.New("payments-api", breaker.Config{})
	fmt.Println(payments.InUse())
	payments.Trip()
	fmt.Println(payments.InUse())
	// Output:
	// false
	// true
}

// throttled is an answer that says when to come back.
type throttled struct{ after time.Duration }

func (t throttled) Error() string             { return "429 too many requests" }
func (t throttled) RetryAfter() time.Duration { return t.after }

// A dependency that says when to come back is taken at its word, after a single failure.
func ExampleConfig_tripOn() {
	payments := breaker.New("payments-api", breaker.Config{TripOn: policy.RetryAfter})
	_ = payments.Do(ctx, func(context.Context) error { return throttled{20 * time.Second} })
	fmt.Println(payments.State(), payments.Stats().Cooldown)
	// Output: open 20s
}

// What is an error to a program may be a healthy answer. Mark it where the dependency is called, or judge it here.
func ExampleConfig_classify() {
	errNotFound := errors.New("no such account")
	accounts := breaker.New("accounts", breaker.Config{
		Consecutive: 1,
		Classify: func(ctx context.Context, err error) policy.Outcome {
			if errors.Is(err, errNotFound) {
				return policy.Success
			}
			return policy.Classify(ctx, err)
		},
	})
	err := accounts.Do(ctx, func(context.Context) error { return errNotFound })
	fmt.Println(err, accounts.State())
	// Output: no such account closed
}

// Different thresholds for different kinds of error: two breakers, each judging its own kind. The inner one opens at 3
// transport errors in a row, the outer one at 10 timeouts. When the inner one refuses, that says nothing to the outer one: a
// probe of the outer one that ends in such a refusal just gives its slot back.
func ExampleConfig_thresholds() {
	only := func(counts func(error) bool) func(context.Context, error) policy.Outcome {
		return func(ctx context.Context, err error) policy.Outcome {
			outcome := policy.Classify(ctx, err)
			if outcome == policy.Failure && !counts(err) {
				return policy.Ignored // the other one's
			}
			return outcome
		}
	}
	timeouts := breaker.New("payments-api timeouts", breaker.Config{
		Consecutive: 10,
		Classify:    only(func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }),
	})
	transport := breaker.New("payments-api transport", breaker.Config{
		Consecutive: 3,
		Classify:    only(func(err error) bool { var op *net.OpError; return errors.As(err, &op) }),
	})
	p := policy.NewPipeline("charge", timeouts, transport)
	fail := func(times int, err error) {
		for range times {
			_ = p.Do(ctx, func(context.Context) error { return err })
		}
	}

	fail(9, &policy.TimeoutError{Limit: time.Second})
	fail(3, &net.OpError{Op: "dial", Err: errors.New("connection refused")})
	fmt.Println("timeouts:", timeouts.State(), "- transport:", transport.State())

	timeouts.Trip()
	timeouts.Probe()
	err := p.Do(ctx, charge)
	fmt.Println(err)
	fmt.Println("timeouts:", timeouts.State(), "with", timeouts.Stats().Probing, "probes running")

	transport.Reset()
	timeouts.Reset()
	fail(10, &policy.TimeoutError{Limit: time.Second})
	fmt.Println("timeouts:", timeouts.State(), "- transport:", transport.State())
	// Output:
	// timeouts: closed - transport: open
	// circuit_breaker payments-api transport: circuit open (consecutive_failures: dial: connection refused)
	// timeouts: half_open with 0 probes running
	// timeouts: open - transport: closed
}

// Shadow shows what a breaker would do before it may do it.
func ExampleConfig_shadow() {
	payments := breaker.New("payments-api", breaker.Config{Consecutive: 1, Shadow: true})
	_ = payments.Do(ctx, chargeFails)
	fmt.Println(payments.State(), payments.Do(ctx, charge))
	// Output: open <nil>
}

// Every change of state can be told to a function; [observe.Slog] writes them to a log.
func ExampleConfig_observer() {
	payments := breaker.New("payments-api", breaker.Config{
		Consecutive: 1, Jitter: -1,
		Observer: observe.Func(func(_ context.Context, e observe.Event) {
			if e.Kind == observe.StateChange {
				fmt.Printf("%s: %s → %s: %s, for %v\n", e.Name, e.From, e.To, e.Reason, e.Delay)
			}
		}),
	})
	_ = payments.Do(ctx, chargeFails)
	// Output: payments-api: closed → open: consecutive_failures, for 5s
}
