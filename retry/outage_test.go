package retry

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/switchgear-go/switchgear/policy"
)

// dependency fails every call while it is down. Each takes 10 ms.
type dependency struct {
	down     atomic.Bool
	attempts atomic.Int64
}

func (d *dependency) call(context.Context) error {
	d.attempts.Add(1)
	time.Sleep(10 * time.Millisecond)
	if d.down.Load() {
		return errDown
	}
	return nil
}

// traffic calls p at a steady rate for a time, and returns how many calls that were once all are through.
func traffic(t *testing.T, perSecond int, lasts time.Duration, p policy.Policy, fn policy.Func) (calls int) {
	var wg sync.WaitGroup
	interval := time.Second / time.Duration(perSecond)
	for start := time.Now(); time.Since(start) < lasts; time.Sleep(interval) {
		calls++
		wg.Go(func() { _ = p.Do(t.Context(), fn) })
	}
	wg.Wait()
	return calls
}

func TestAnOutageIsNotAmplified(t *testing.T) {
	const lasts = 60 * time.Second
	for _, perSecond := range []int{10, 100, 1000} {
		t.Run(fmt.Sprint(perSecond, " calls per second"), func(t *testing.T) {
			run := func(layers ...policy.Policy) (calls int, ratio float64) {
				synctest.Test(t, func(t *testing.T) {
					d := &dependency{}
					d.down.Store(true)
					calls = traffic(t, perSecond, lasts, policy.NewPipeline("p", layers...), d.call)
					ratio = float64(d.attempts.Load()) / float64(calls)
				})
				return calls, ratio
			}
			calls, ratio := run(New(Config{}))
			slack := 10 * 10. // one window of what the budget holds for all traffic
			assert.LessOrEqual(t, ratio*float64(calls), 1.2*float64(calls)+10*lasts.Seconds()+slack)
			assert.Greater(t, ratio, 1.2, "the budget is used")

			_, nested := run(New(Config{}), New(Config{}))
			assert.InDelta(t, ratio, nested, 0.02, "a second layer adds nothing")

			_, unlimited := run(New(Config{Budget: Unlimited}))
			assert.InDelta(t, 3, unlimited, 1e-9)
			_, multiplied := run(New(Config{Budget: Unlimited}), New(Config{Budget: Unlimited, Nested: true}))
			assert.InDelta(t, 9, multiplied, 1e-9)
			t.Logf("attempts per call: %.2f with a budget, %.2f without, %.2f nested without", ratio, unlimited, multiplied)
		})
	}
}

func TestRetriesWorkAgainAfterAnOutage(t *testing.T) {
	for _, perSecond := range []int{10, 100, 1000} {
		t.Run(fmt.Sprint(perSecond, " calls per second"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := New(Config{})
				d := &dependency{}
				d.down.Store(true)
				traffic(t, perSecond, time.Minute, r, d.call)
				d.down.Store(false)
				recovered := time.Now()
				var unlucky, late atomic.Int64
				var n atomic.Int64
				traffic(t, perSecond, 20*time.Second, policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
					err := r.Do(ctx, fn)
					if err != nil && time.Since(recovered) > 10*time.Second {
						late.Add(1)
					}
					return err
				}), func(ctx context.Context) error {
					if policy.Attempt(ctx) == 1 && n.Add(1)%10 == 0 { // every tenth call fails at first
						unlucky.Add(1)
						return errDown
					}
					return d.call(ctx)
				})
				assert.Positive(t, unlucky.Load())
				assert.Zero(t, late.Load(), "calls that were not retried 10s after the recovery")
			})
		})
	}
}

// A dependency that slows down for everybody must not get every call twice.
func TestASlowdownIsNotAmplifiedByHedges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("b", BudgetConfig{Ratio: 0.1, PerSecond: 1})
		h := NewHedge(HedgeConfig{Delay: time.Millisecond, MaxHedges: 3, Budget: b})
		var attempts atomic.Int64
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				_ = h.Do(t.Context(), func(ctx context.Context) error {
					attempts.Add(1)
					return sleep(ctx, time.Second)
				})
			})
		}
		wg.Wait()
		assert.EqualValues(t, 1000+100+10, attempts.Load())
	})
}
