package retry

import (
	"context"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/switchgear-go/switchgear/internal/instant"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// slowBudget is the obvious budget: it remembers everything that ever happened.
type slowBudget struct {
	ratio, reserve float64
	width          time.Duration
	calls, retries []int64 // the tenths of a window that they lie in
}

func (m *slowBudget) sum(now int64, of []int64) (n int) {
	for _, at := range of {
		if at > now-10 {
			n++
		}
	}
	return n
}

func (m *slowBudget) limit(now int64) float64 {
	return m.ratio*float64(m.sum(now, m.calls)) + m.reserve
}

func (m *slowBudget) pay(now int64) bool {
	if float64(m.sum(now, m.retries)+1) > m.limit(now)+1e-9 {
		return false
	}
	m.retries = append(m.retries, now)
	return true
}

func TestBudgetDoesWhatASlowOneDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := BudgetConfig{
			Ratio:     rapid.SampledFrom([]float64{-1, 0, 0.1, 0.29, 1, 2.5}).Draw(t, "ratio"),
			PerSecond: rapid.SampledFrom([]float64{-1, 0, 0.1, 0.25, 3}).Draw(t, "per second"),
			Window:    rapid.SampledFrom([]time.Duration{0, time.Second, 10 * time.Second, time.Minute + 7}).Draw(t, "window"),
		}
		fast := NewBudget("b", cfg)
		slow := &slowBudget{ratio: max(0, cfg.Ratio), reserve: max(0, cfg.PerSecond), width: cfg.Window / 10}
		if cfg.Ratio == 0 {
			slow.ratio = 0.2
		}
		if cfg.PerSecond == 0 {
			slow.reserve = 10
		}
		if cfg.Window == 0 {
			slow.width = time.Second
		}
		slow.reserve *= 10 * float64(slow.width) / 1e9
		now := time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "start"))
		number := func() int64 { return int64(math.Floor(float64(now) / float64(slow.width))) }
		type paid struct {
			p  payment
			at int64
		}
		var open []paid
		t.Repeat(map[string]func(*rapid.T){
			"time passes": func(t *rapid.T) {
				now += time.Duration(rapid.Int64Range(0, 15*int64(slow.width)).Draw(t, "by"))
			},
			"calls": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "calls") {
					fast.deposit(now)
					slow.calls = append(slow.calls, number())
				}
			},
			"a retry is paid for": func(t *rapid.T) {
				p, ok := fast.pay(now)
				if want := slow.pay(number()); ok != want {
					t.Fatalf("paid for: %v, want %v", ok, want)
				}
				if ok {
					open = append(open, paid{p, number()})
				}
			},
			"a retry is given back": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip("none")
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				open[i].p.giveBack()
				open[i].p.giveBack() // once
				for j, at := range slow.retries {
					if at == open[i].at {
						slow.retries = append(slow.retries[:j], slow.retries[j+1:]...)
						break
					}
				}
				open = append(open[:i], open[i+1:]...)
			},
			"": func(t *rapid.T) {
				fast.mu.Lock()
				calls, spent := fast.sumLocked(floorDiv(now, fast.width))
				fast.mu.Unlock()
				if want := slow.sum(number(), slow.calls); int(calls) != want {
					t.Fatalf("%d calls, want %d", calls, want)
				}
				if want := slow.sum(number(), slow.retries); int(spent) != want {
					t.Fatalf("%d spent, want %d", spent, want)
				}
			},
		})
	})
}

func TestBudgetComparesSharesWithoutRounding(t *testing.T) {
	for _, ratio := range []float64{.29, .57, .58, .1, .7, .07} {
		b := NewBudget("b", BudgetConfig{Ratio: ratio, PerSecond: -1})
		for range 100 {
			b.deposit(0)
		}
		paid := 0
		for range 101 {
			if _, ok := b.pay(0); ok {
				paid++
			}
		}
		assert.Equal(t, int(math.Round(ratio*100)), paid, "%v of 100 calls", ratio)
	}
}

func TestBudgetStatsAreOfTheWindowNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("payments", BudgetConfig{})
		assert.Equal(t, BudgetStats{Available: 100, Limit: 100}, b.Stats())
		for range 10 {
			b.deposit(instant.Now())
		}
		for range 103 {
			b.pay(instant.Now())
		}
		assert.Equal(t, BudgetStats{Available: 0, Limit: 102, Calls: 10, Spent: 102, Refused: 1}, b.Stats())
		time.Sleep(10 * time.Second)
		assert.Equal(t, BudgetStats{Available: 100, Limit: 100, Refused: 1}, b.Stats())
		assert.True(t, math.IsInf(Unlimited.Stats().Available, 1))
	})
}

func TestABudgetThatHoldsNothingRefusesEveryRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &events{}
		none := NewBudget("none", BudgetConfig{Ratio: -1, PerSecond: -1})
		fn := newScript(errDown)
		err := New(Config{Budget: none, Observer: told}).Do(t.Context(), fn.run)
		assert.Equal(t, 1, fn.runs)
		assert.Equal(t, &ExhaustedError{Attempts: 1, Reason: ErrBudgetExhausted, Last: errDown}, err)
		gaveUp := told.of(observe.Exhausted)
		require.Len(t, gaveUp, 1)
		assert.Equal(t, "budget_exhausted", gaveUp[0].Reason)
	})
}

func TestRetriesThatWaitAreSpentAlready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("b", BudgetConfig{Ratio: -1, PerSecond: 0.3})
		r := New(Config{Budget: b, BackOff: every(time.Second), Attempts: 2})
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { _ = r.Do(t.Context(), func(context.Context) error { return errDown }) })
		}
		synctest.Wait()
		assert.Equal(t, 3, b.Stats().Spent)
		assert.EqualValues(t, 7, b.Stats().Refused)
		wg.Wait()
	})
}

func TestWhatBecomesOfASpentRetry(t *testing.T) {
	tests := []struct {
		name  string
		after error
		want  int
	}{
		{"a success keeps it spent", nil, 1},
		{"a failure too", errDown, 1},
		{"a refusal gives it back", refusal(time.Time{}), 0},
		{"a permanent error too", backoff.Permanent(errDown), 0},
		{"a healthy answer too", policy.Healthy(errDown), 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := NewBudget("b", BudgetConfig{})
				_ = New(Config{Attempts: 2, Budget: b}).Do(t.Context(), newScript(errDown, test.after).run)
				assert.Equal(t, test.want, b.Stats().Spent)
			})
		})
	}
}

// aws-sdk-go-v2#3550
func TestADrainedBudgetRefillsWithTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("b", BudgetConfig{Ratio: 0.1, PerSecond: -1})
		r := New(Config{Budget: b})
		_ = r.Do(t.Context(), newScript(errDown).run)
		for range 9 {
			_ = r.Do(t.Context(), newScript(nil).run)
		}
		require.InDelta(t, 1, b.Stats().Available, 1e-9)
		require.NoError(t, r.Do(t.Context(), newScript(errDown, nil).run), "it retries again")
		assert.ErrorIs(t, r.Do(t.Context(), newScript(errDown, nil).run), ErrBudgetExhausted)
	})
}

// cockroachdb#151748, aws-sdk-go-v2#1665
func TestADrainedBudgetRefillsWithTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{})
		for range 200 {
			_ = r.Do(t.Context(), newScript(errDown).run)
		}
		require.ErrorIs(t, r.Do(t.Context(), newScript(errDown, nil).run), ErrBudgetExhausted)
		time.Sleep(10 * time.Second)
		assert.NoError(t, r.Do(t.Context(), newScript(errDown, nil).run))
	})
}

// aws-sdk-go-base#915
func TestBudgetsAreSharedOnlyOnPurpose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drain := func(p policy.Policy) {
			for range 300 {
				_ = p.Do(t.Context(), func(context.Context) error { return errDown })
			}
		}
		cfg := Config{}
		one, other := New(cfg), New(cfg)
		drain(one)
		require.NoError(t, other.Do(t.Context(), newScript(errDown, nil).run), "each has its own")

		cfg.Budget = NewBudget("shared", BudgetConfig{})
		one, other = New(cfg), New(cfg)
		drain(one)
		require.ErrorIs(t, other.Do(t.Context(), newScript(errDown, nil).run), ErrBudgetExhausted)

		one = New(Config{})
		p, q := policy.NewPipeline("p", one), policy.NewPipeline("q", one)
		drain(p)
		assert.ErrorIs(t, q.Do(t.Context(), newScript(errDown, nil).run), ErrBudgetExhausted, "one policy, one budget")
	})
}

// smithy aws-sdk-rust#1234
func TestTheDefaultRetryIsLimitedByABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{})
		const calls = 1000
		var wg sync.WaitGroup
		attempts := 0
		var mu sync.Mutex
		for range calls {
			wg.Go(func() {
				_ = r.Do(t.Context(), func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					attempts++
					return errDown
				})
			})
		}
		wg.Wait()
		assert.Equal(t, calls+calls/5+100, attempts)
	})
}

func TestUnlimitedIsNoBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{Budget: Unlimited})
		for range 500 {
			fn := newScript(errDown)
			_ = r.Do(t.Context(), fn.run)
			require.Equal(t, 3, fn.runs)
		}
		assert.Nil(t, bindRetry(Config{Budget: Unlimited}.withDefaults(), "r", nil).SharedBudget())
	})
}

func TestACallIsDepositedOnceInAPipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("b", BudgetConfig{})
		own := NewBudget("own", BudgetConfig{})
		p := policy.NewPipeline("p",
			New(Config{Budget: b}),
			New(Config{Budget: own}),
			NewHedge(HedgeConfig{Budget: b, Delay: time.Second}),
			New(Config{Budget: b}),
		)
		for range 10 {
			require.NoError(t, p.Do(t.Context(), newScript(nil).run))
		}
		assert.Equal(t, 10, b.Stats().Calls)
		assert.Equal(t, 10, own.Stats().Calls)

		hedge := NewBudget("hedge", BudgetConfig{})
		p = policy.NewPipeline("p", NewHedge(HedgeConfig{Budget: hedge, Delay: time.Second}), New(Config{Budget: hedge}))
		require.NoError(t, p.Do(t.Context(), newScript(nil).run))
		assert.Equal(t, 1, hedge.Stats().Calls)
	})
}

func TestABudgetWithoutANameTakesThatOfItsFirstBinding(t *testing.T) {
	b := NewBudget("", BudgetConfig{})
	assert.Empty(t, b.Name())
	r := New(Config{Budget: b})
	policy.NewPipeline("first", r)
	policy.NewPipeline("second", r)
	assert.Equal(t, "first", b.Name())

	b = NewBudget("", BudgetConfig{})
	New(Config{Budget: b, Name: "own"}).Bind("pipeline", observe.Discard)
	assert.Equal(t, "own", b.Name())

	b = NewBudget("", BudgetConfig{})
	_ = New(Config{Budget: b}).Do(t.Context(), newScript(nil).run)
	assert.Equal(t, "retry", b.Name())

	b = NewBudget("given", BudgetConfig{})
	policy.NewPipeline("first", New(Config{Budget: b}))
	assert.Equal(t, "given", b.Name())
}

func TestABudgetReportsOnceToEachObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := newMeter(t), newMeter(t)
		b := NewBudget("b", BudgetConfig{})
		r := New(Config{Budget: b})
		policies := []policy.Policy{
			r.Bind("p", one), r.Bind("q", one),
			r.Bind("q", observe.Tee(one, &events{})),
			r.Bind("s", observe.Tee(observe.Func(func(context.Context, observe.Event) {}), observe.Tee(one, other))),
		}
		for range 4 {
			_ = policies[0].Do(t.Context(), newScript(errDown, nil).run)
		}
		for _, m := range []meter{one, other} {
			got := m.collect(t)
			assert.EqualValues(t, 96, got["switchgear.retry.budget.available"])
			assert.EqualValues(t, 100, got["switchgear.retry.budget.limit"], "rounded down")
		}
		runtime.KeepAlive(policies)
	})
}

func TestConcurrentCallsNeverOverspend(t *testing.T) {
	b := NewBudget("b", BudgetConfig{Window: time.Hour, Ratio: 0.5, PerSecond: -1})
	var wg sync.WaitGroup
	var mu sync.Mutex
	paid := 0
	for range 16 {
		wg.Go(func() {
			for range 1000 {
				b.deposit(0)
				p, ok := b.pay(0)
				if !ok {
					continue
				}
				p.giveBack()
				if _, ok = b.pay(0); ok {
					mu.Lock()
					paid++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, paid, 8000)
	assert.Positive(t, paid)
	b.mu.Lock()
	defer b.mu.Unlock()
	calls, spent := b.sumLocked(0)
	assert.EqualValues(t, 16000, calls)
	assert.EqualValues(t, paid, spent)
}
