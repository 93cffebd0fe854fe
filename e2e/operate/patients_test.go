package operate_test

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/e2e/internal/workload"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/retry"
)

// ward is a process with policies that fare differently. Each has the name of its trouble.
type ward struct {
	observer observe.Observer
	ctx      context.Context // ends the calls
	calls    sync.WaitGroup
	repaired atomic.Bool // the dependency of down
}

// alerts is what every policy of a ward is expected to set off, and by omission what it is not.
var alerts = map[string][]string{
	"calm":      nil,
	"down":      {"CircuitBreakerOpened", "CircuitBreakerOpenTooLong"},
	"brief":     {"CircuitBreakerOpened"},
	"flapping":  {"CircuitBreakerOpened", "CircuitBreakerFlapping"},
	"deaf":      {"CircuitBreakerNeverOpens"},
	"stuck":     {"CircuitBreakerOpened", "CircuitBreakerHalfOpenStuck"},
	"forsaken":  {"CircuitBreakerOpened"},
	"forced":    {"CircuitBreakerForced"},
	"twice":     {"CircuitBreakerDuplicated"},
	"amplified": {"RetryAmplification"},
	"spent":     {"RetryBudgetLow"},
	"full":      {"BulkheadNearlyFull"},
	"half-full": nil,
}

// admit makes all policies and returns what begins their troubles: first they have to be seen without.
func (w *ward) admit() (begin func()) {
	troubles := []func(){
		w.calm(), w.down(), w.brief(), w.flapping(), w.deaf(), w.stuck(), w.forsaken(), w.forced(), w.twice(),
		w.amplified(), w.spent(), w.full("full", 9), w.full("half-full", 5),
	}
	return func() {
		for _, begin := range troubles {
			begin()
		}
	}
}

// each calls f over and over with a pause in between, numbered from 0.
func (w *ward) each(pause time.Duration, f func(n int)) {
	w.calls.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for n := 0; ; n++ {
			f(n)
			select {
			case <-tick.C:
			case <-w.ctx.Done():
				return
			}
		}
	})
}

func (w *ward) breaker(name string, cfg breaker.Config) *breaker.Breaker {
	cfg.Observer, cfg.Growth, cfg.Jitter = w.observer, 1, -1
	return breaker.New(name, cfg)
}

// pipeline returns the usual one.
func (w *ward) pipeline(name string) *policy.Pipeline {
	return policy.NewPipeline(name,
		policy.Timeout(time.Second),
		retry.New(retry.Config{}),
		w.breaker(name, breaker.Config{Consecutive: 5, Cooldown: 500 * time.Millisecond}),
		bulkhead.New(name, bulkhead.Config{Max: 10, Observer: w.observer}),
	).Observed(w.observer)
}

// calm fails once in ten, and the retry mends it.
func (w *ward) calm() func() {
	p := w.pipeline("calm")
	var calls atomic.Int64
	return func() {
		w.each(5*time.Millisecond, func(int) {
			_ = p.Do(w.ctx, func(context.Context) error {
				if calls.Add(1)%10 == 0 {
					return workload.ErrDown
				}
				return nil
			})
		})
	}
}

// down is an outage, until it is repaired.
func (w *ward) down() func() {
	p := w.pipeline("down")
	return func() {
		w.each(5*time.Millisecond, func(int) {
			_ = p.Do(w.ctx, func(context.Context) error {
				if w.repaired.Load() {
					return nil
				}
				return workload.ErrDown
			})
		})
	}
}

// brief opens twice, each time for the thirtieth part of a second: two seconds, were the rules not faster.
func (w *ward) brief() func() {
	b := w.breaker("brief", breaker.Config{Cooldown: time.Second / 30})
	return func() {
		w.each(100*time.Millisecond, func(n int) {
			if n == 0 || n == 100 {
				b.Trip()
			}
			_ = b.Do(w.ctx, workload.Succeed)
		})
	}
}

// flapping opens and closes again each second.
func (w *ward) flapping() func() {
	b := w.breaker("flapping", breaker.Config{Consecutive: 3, Cooldown: 30 * time.Millisecond})
	return func() {
		w.each(100*time.Millisecond, func(n int) {
			fn := workload.Succeed
			if n%10 < 3 {
				fn = workload.Fail
			}
			_ = b.Do(w.ctx, fn)
		})
	}
}

// deaf asks for more failures than there ever are: three of four fail.
func (w *ward) deaf() func() {
	b := w.breaker("deaf", breaker.Config{FailureRatio: .95})
	return func() {
		w.each(5*time.Millisecond, func(n int) {
			fn := workload.Fail
			if n%4 == 0 {
				fn = workload.Succeed
			}
			_ = b.Do(w.ctx, fn)
		})
	}
}

// stuck has callers that leave before its probes have ended, so that none decides.
func (w *ward) stuck() func() {
	b := w.breaker("stuck", breaker.Config{Cooldown: 100 * time.Millisecond})
	return func() {
		b.Trip()
		w.each(5*time.Millisecond, func(int) {
			ctx, leave := context.WithCancel(w.ctx)
			_ = b.Do(ctx, func(ctx context.Context) error {
				leave()
				return ctx.Err()
			})
			leave()
		})
	}
}

// forsaken is half-open and nobody calls it.
func (w *ward) forsaken() func() {
	b := w.breaker("forsaken", breaker.Config{Cooldown: 100 * time.Millisecond})
	return func() {
		b.Trip()
		w.each(time.Minute, func(int) { b.State() }) // keeps it alive
	}
}

func (w *ward) forced() func() {
	b := w.breaker("forced", breaker.Config{})
	return func() {
		b.ForceClosed()
		w.each(20*time.Millisecond, func(int) { _ = b.Do(w.ctx, workload.Succeed) })
	}
}

func (w *ward) twice() func() {
	one, other := w.breaker("twice", breaker.Config{}), w.breaker("twice", breaker.Config{})
	return func() {
		w.each(20*time.Millisecond, func(int) {
			_ = one.Do(w.ctx, workload.Succeed)
			_ = other.Do(w.ctx, workload.Succeed)
		})
	}
}

// amplified repeats whatever fails.
func (w *ward) amplified() func() {
	return w.retries("amplified", retry.Unlimited)
}

// spent may repeat one call a second of fifty.
func (w *ward) spent() func() {
	return w.retries("spent", retry.NewBudget("spent", retry.BudgetConfig{Ratio: -1, PerSecond: 1}))
}

func (w *ward) retries(name string, budget *retry.Budget) func() {
	r := retry.New(retry.Config{
		Name: name, Budget: budget, Observer: w.observer,
		BackOff: func() backoff.BackOff { return backoff.NewConstantBackOff(time.Millisecond) },
	})
	return func() {
		w.each(20*time.Millisecond, func(int) { _ = r.Do(w.ctx, workload.Fail) })
	}
}

// full has calls of ten that do not end.
func (w *ward) full(name string, calls int) func() {
	b := bulkhead.New(name, bulkhead.Config{Max: 10, Observer: w.observer})
	return func() {
		for range calls {
			w.calls.Go(func() {
				_ = b.Do(w.ctx, func(ctx context.Context) error {
					<-ctx.Done()
					return ctx.Err()
				})
			})
		}
	}
}
