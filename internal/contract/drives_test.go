package contract

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/internal/errtree"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/ratelimit"
	"github.com/switchgear-go/switchgear/retry"
)

// drives take the policies through every row and every event that they have, inside a bubble of testing/synctest.
var drives = []struct {
	name  string
	drive func(l *lab)
}{
	{"pipeline", drivePipeline},
	{"breaker by its rules", driveBreakerByRules},
	{"breaker through recovery", driveBreakerRecovery},
	{"breaker by an operator", driveBreakerByOperator},
	{"breaker in shadow mode", driveBreakerInShadow},
	{"retry", driveRetry},
	{"hedge", driveHedge},
	{"bulkhead", driveBulkhead},
	{"limiter", driveLimiter},
	{"timeout", driveTimeout},
	{"fallback", driveFallback},
}

// typed is an error of a type, which may be a refusal or a deadline.
type typed struct {
	kind string
	is   error
}

func (e typed) Error() string        { return e.kind }
func (e typed) ErrorType() string    { return e.kind }
func (e typed) Is(target error) bool { return e.is != nil && target == e.is }

func drivePipeline(l *lab) {
	p := l.pipeline("calls")
	_ = l.call(p, nil)
	for _, kind := range errtree.Types {
		_ = l.call(p, typed{kind: kind})
		_ = l.call(p, typed{kind, policy.ErrRejected})
		_ = l.call(p, typed{kind, context.DeadlineExceeded})
		_ = l.abandoned(p, typed{kind: kind})
	}
}

// newBreaker returns a breaker whose waits are not jittered, and a pipeline around it.
func (l *lab) newBreaker(name string, cfg breaker.Config) (*breaker.Breaker, *policy.Pipeline) {
	cfg.Jitter, cfg.Observer = -1, l
	b := breaker.New(name, cfg)
	return b, l.pipeline(name, b)
}

func driveBreakerByRules(l *lab) {
	_, ratio := l.newBreaker("ratio", breaker.Config{MinCalls: 2})
	_ = l.call(ratio, nil)
	_ = l.call(ratio, errDown)

	_, count := l.newBreaker("count", breaker.Config{Failures: 1})
	_ = l.call(count, errDown)

	_, consecutive := l.newBreaker("consecutive", breaker.Config{Consecutive: 1})
	_ = l.call(consecutive, errDown)

	_, slow := l.newBreaker("slow", breaker.Config{SlowCall: time.Second, MinCalls: 1})
	_ = l.run(context.Background(), slow, func(context.Context) error {
		time.Sleep(2 * time.Second)
		return nil
	})

	_, hint := l.newBreaker("hint", breaker.Config{TripOn: func(error) (time.Duration, bool) { return 3 * time.Second, true }})
	_ = l.call(hint, errDown)
}

func driveBreakerRecovery(l *lab) {
	b, p := l.newBreaker("recovery", breaker.Config{Consecutive: 1, ProbeTimeout: 10 * time.Second, RampUp: time.Minute})
	late, _ := b.Allow(context.Background())
	_ = l.call(p, nil)
	_ = l.abandoned(p, errDown)
	_ = l.call(p, errDown)
	late.Done(nil)
	_ = l.call(p, nil) // refused: open

	time.Sleep(time.Minute)
	_ = l.abandoned(p, errDown) // a probe that tells nothing
	silent, _ := b.Allow(context.Background())
	_ = l.call(p, nil) // refused: half-open, and the probe is out
	time.Sleep(15 * time.Second)
	_ = l.call(p, nil) // refused: the probe's lease has ended
	silent.Done(nil)

	time.Sleep(time.Minute)
	_ = l.call(p, errDown) // the probe fails
	time.Sleep(time.Minute)
	_ = l.call(p, nil) // the probe succeeds
	for range 3 {
		_ = l.call(p, nil) // closed, but ramping up: some are refused
	}
}

func driveBreakerByOperator(l *lab) {
	b, p := l.newBreaker("operated", breaker.Config{})
	calls := func() {
		_ = l.call(p, nil)
		_ = l.call(p, errDown)
		_ = l.abandoned(p, errDown)
	}
	for _, act := range []func(){
		b.ForceOpen, calls, b.Reset, b.ForceClosed, calls, b.Reset,
		b.Trip, b.Reset, b.Trip, b.ForceOpen, b.Probe, b.ForceOpen, b.ForceClosed, b.ForceOpen, b.Reset,
		b.Trip, b.ForceClosed, b.Reset, b.Trip, b.Probe, b.ForceClosed, b.Reset,
		b.Trip, b.Probe, b.Reset,
	} {
		act()
	}
}

func driveBreakerInShadow(l *lab) {
	b, p := l.newBreaker("shadow", breaker.Config{Shadow: true, Consecutive: 1})
	calls := func() {
		_ = l.call(p, nil)
		_ = l.abandoned(p, errDown)
		_ = l.call(p, errDown)
	}
	calls()
	calls()
	b.ForceOpen()
	calls()
}

func everySecond() backoff.BackOff { return backoff.NewConstantBackOff(time.Second) }

// hinted is an error that asks for a wait.
type hinted time.Duration

func (hinted) Error() string               { return "busy" }
func (h hinted) RetryAfter() time.Duration { return time.Duration(h) }

func driveRetry(l *lab) {
	p := l.pipeline("retried", retry.New(retry.Config{BackOff: everySecond}))
	bg := context.Background()
	// succeedIn returns an fn that fails until the attempt of that number.
	succeedIn := func(attempt int) policy.Func {
		return func(ctx context.Context) error {
			if policy.Attempt(ctx) < attempt {
				return errDown
			}
			return nil
		}
	}
	_ = l.run(bg, p, succeedIn(1))
	_ = l.run(bg, p, succeedIn(2))
	_ = l.run(bg, p, succeedIn(9))
	_ = l.call(p, hinted(time.Hour))
	_ = l.abandoned(p, errDown)

	hurried, cancel := context.WithTimeout(bg, time.Second/2)
	defer cancel()
	_ = l.run(hurried, p, succeedIn(2))

	leaving, leave := context.WithCancel(bg)
	defer leave()
	_ = l.run(leaving, p, func(ctx context.Context) error { // the caller leaves in the second attempt
		if policy.Attempt(ctx) > 1 {
			leave()
		}
		return errDown
	})

	broke := retry.NewBudget("broke", retry.BudgetConfig{Ratio: -1, PerSecond: -1})
	_ = l.call(l.pipeline("broke", retry.New(retry.Config{Budget: broke})), errDown)
	l.keep(broke)
}

func driveHedge(l *lab) {
	p := l.pipeline("hedged", retry.NewHedge(retry.HedgeConfig{Delay: time.Second}))
	// attempts runs a call whose first and second attempt take so long and end so, unless they are cancelled.
	attempts := func(first, second time.Duration, err error) {
		_ = l.run(context.Background(), p, func(ctx context.Context) error {
			takes := first
			if policy.Attempt(ctx) > 1 {
				takes = second
			}
			select {
			case <-time.After(takes):
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}
	attempts(0, 0, nil)
	attempts(time.Minute, time.Second, nil)
	attempts(2*time.Second, time.Minute, nil)
	attempts(2*time.Second, 2*time.Second, errDown)
	time.Sleep(time.Hour)  // for the losers to return
	_ = l.call(p, errDown) // fails before the delay: the next attempt follows at once

	broke := retry.NewBudget("broke", retry.BudgetConfig{Ratio: -1, PerSecond: -1})
	_ = l.call(l.pipeline("not hedged", retry.NewHedge(retry.HedgeConfig{Delay: time.Second, Budget: broke})), errDown)
}

func driveBulkhead(l *lab) {
	b := bulkhead.New("seats", bulkhead.Config{Max: 1, Queue: 1, MaxWait: time.Second, Observer: l})
	p := l.pipeline("seats", b)
	_ = l.call(p, nil)

	release, _ := b.Acquire(context.Background())
	var waiting sync.WaitGroup
	waiting.Go(func() { _ = l.call(p, nil) }) // times out
	time.Sleep(time.Millisecond)
	_ = l.call(p, nil) // refused: the queue is full
	waiting.Wait()

	leaving, leave := context.WithTimeout(context.Background(), time.Millisecond)
	defer leave()
	_ = l.run(leaving, p, func(context.Context) error { return nil })

	waiting.Go(func() { _ = l.call(p, nil) })
	time.Sleep(time.Millisecond)
	release()
	waiting.Wait()

	shadow := bulkhead.New("shadow", bulkhead.Config{Max: 1, Shadow: true, Observer: l})
	release, _ = shadow.Acquire(context.Background())
	_ = l.call(l.pipeline("shadow", shadow), nil)
	release()
}

func driveLimiter(l *lab) {
	limiter := ratelimit.New("pace", ratelimit.Config{Rate: 1, Burst: 1, MaxWait: time.Minute, Observer: l})
	p := l.pipeline("pace", limiter)
	_ = l.call(p, nil)
	_ = l.call(p, nil) // waits

	leaving, leave := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	waiting.Go(func() { _ = l.run(leaving, p, func(context.Context) error { return nil }) })
	time.Sleep(time.Millisecond)
	leave()
	waiting.Wait()

	waiting.Go(func() { _ = l.call(p, nil) })
	time.Sleep(time.Millisecond)
	limiter.SetRate(0) // refuses who waits
	waiting.Wait()

	shadow := ratelimit.New("shadow", ratelimit.Config{Rate: 1, Burst: 1, Shadow: true, Observer: l})
	q := l.pipeline("shadow", shadow)
	_ = l.call(q, nil)
	_ = l.call(q, nil)
}

func driveTimeout(l *lab) {
	p := l.pipeline("timed", policy.Timeout(time.Second))
	takes := func(d time.Duration, err error) {
		_ = l.run(context.Background(), p, func(context.Context) error {
			time.Sleep(d)
			return err
		})
	}
	takes(0, nil)
	takes(2*time.Second, nil)
	takes(2*time.Second, errDown)
	_ = l.abandoned(p, context.Canceled)
}

func driveFallback(l *lab) {
	good := l.pipeline("plan b", policy.Fallback(func(context.Context, error) error { return nil }))
	bad := l.pipeline("no plan", policy.Fallback(func(context.Context, error) error { return errors.New("no plan") }))
	_ = l.call(good, errDown)
	_ = l.call(bad, errDown)
	for _, kind := range errtree.Types {
		_ = l.call(good, typed{kind: kind})
	}
}
