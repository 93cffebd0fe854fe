package retry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

var errDown = errors.New("down")

// sleep waits in a bubble for d or for ctx.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestHedgeTakesTheFirstSuccess(t *testing.T) {
	tests := []struct {
		name      string
		takes     []time.Duration // by attempt
		maxHedges int
		wantWin   int
		wantAfter time.Duration
	}{
		{"a fast first attempt is alone", []time.Duration{50 * time.Millisecond}, 1, 1, 50 * time.Millisecond},
		{"a slow one is overtaken", []time.Duration{time.Hour, 30 * time.Millisecond}, 1, 2, 130 * time.Millisecond},
		{"a slow one may still win", []time.Duration{150 * time.Millisecond, time.Hour}, 1, 1, 150 * time.Millisecond},
		{"hedges follow each other by the delay", []time.Duration{time.Hour, time.Hour, time.Hour, 1}, 3, 4, 300*time.Millisecond + 1},
		{"no more than MaxHedges", []time.Duration{time.Second, time.Hour}, 1, 1, time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := NewHedge(HedgeConfig{Delay: 100 * time.Millisecond, MaxHedges: test.maxHedges})
				start := time.Now()
				var runs atomic.Int32
				win, err := policy.Get(t.Context(), h, func(ctx context.Context) (int, error) {
					n := int(runs.Add(1))
					assert.Equal(t, n, policy.Attempt(ctx))
					return n, sleep(ctx, test.takes[n-1])
				})
				require.NoError(t, err)
				assert.Equal(t, test.wantWin, win)
				assert.Equal(t, test.wantAfter, time.Since(start))
				synctest.Wait()
				assert.Equal(t, len(test.takes), int(runs.Load()), "attempts")
			})
		})
	}
}

func TestHedgeCancelsLosersWithACauseAndEndsEveryContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHedge(HedgeConfig{Delay: time.Second})
		var mu sync.Mutex
		contexts := map[int]context.Context{}
		err := h.Do(t.Context(), func(ctx context.Context) error {
			mu.Lock()
			contexts[policy.Attempt(ctx)] = ctx
			mu.Unlock()
			if policy.Attempt(ctx) == 1 {
				return sleep(ctx, time.Hour)
			}
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, context.Canceled, contexts[1].Err())
		assert.Equal(t, ErrHedgeLost, context.Cause(contexts[1]))
		assert.Equal(t, context.Canceled, contexts[2].Err(), "the winner's too")
		assert.Equal(t, context.Canceled, context.Cause(contexts[2]))
		synctest.Wait()
	})
}

func TestHedgeStartsTheNextAtOnceAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &events{}
		h := NewHedge(HedgeConfig{Delay: time.Hour, MaxHedges: 3, Observer: told})
		var runs atomic.Int32
		start := time.Now()
		err := h.Do(t.Context(), func(context.Context) error {
			if runs.Add(1) < 3 {
				return errDown
			}
			return nil
		})
		require.NoError(t, err)
		assert.EqualValues(t, 3, runs.Load())
		assert.Zero(t, time.Since(start))
		hedged := told.of(observe.Hedged)
		require.Len(t, hedged, 2)
		assert.Equal(t, []int{2, 3}, []int{hedged[0].Attempt, hedged[1].Attempt})
		assert.Equal(t, errDown, hedged[0].Err)
	})
}

func TestHedgeJoinsTheErrorsTheFirstAttemptsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHedge(HedgeConfig{Delay: time.Second})
		closed := map[int]bool{}
		v, err := policy.Get(t.Context(), h, func(ctx context.Context) (*closer, error) {
			n := policy.Attempt(ctx)
			c := &closer{onClose: func() { closed[n] = true }}
			if n == 1 {
				_ = sleep(ctx, time.Minute) // it fails last
			}
			return c, fmt.Errorf("attempt %d", n)
		})
		require.EqualError(t, err, "attempt 1\nattempt 2")
		require.NotNil(t, v)
		assert.Equal(t, map[int]bool{2: true}, closed, "the first attempt's value returns, the other is closed")
	})
}

func TestHedgeReturnsTheErrorOfASingleAttemptAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := policy.Rejection("bulkhead", "b", nil, time.Time{}, nil)
		for _, want := range []error{refused, backoff.Permanent(errDown), policy.Healthy(errDown)} {
			h := NewHedge(HedgeConfig{Delay: time.Second, MaxHedges: 5})
			runs := 0
			err := h.Do(t.Context(), func(context.Context) error {
				runs++
				return want
			})
			assert.Same(t, want, err)
			assert.Equal(t, 1, runs, "%v starts none", want)
		}
	})
}

func TestHedgeTakesAHealthyAnswerForASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notFound := policy.Healthy(errors.New("not found"))
		h := NewHedge(HedgeConfig{Delay: time.Second})
		start := time.Now()
		err := h.Do(t.Context(), func(ctx context.Context) error {
			if policy.Attempt(ctx) == 2 {
				return notFound
			}
			return sleep(ctx, time.Hour)
		})
		assert.Equal(t, notFound, err)
		assert.Equal(t, time.Second, time.Since(start))
	})
}

// A refusal of the hedge must not take the slow first attempt with it.
func TestHedgeWaitsForTheOthersAfterAnErrorThatIsNotRetryable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHedge(HedgeConfig{Delay: time.Second, MaxHedges: 4})
		var runs atomic.Int32
		err := h.Do(t.Context(), func(ctx context.Context) error {
			runs.Add(1)
			if policy.Attempt(ctx) == 2 {
				return policy.Rejection("bulkhead", "b", nil, time.Time{}, nil)
			}
			return sleep(ctx, time.Minute)
		})
		require.NoError(t, err)
		assert.EqualValues(t, 2, runs.Load(), "nothing is started after it")
	})
}

// go-resty#1197
func TestHedgeStartsNothingOnceTheCallerHasCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHedge(HedgeConfig{Delay: 10 * time.Millisecond, MaxHedges: 5})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(15*time.Millisecond, cancel)
		var runs atomic.Int32
		err := h.Do(ctx, func(ctx context.Context) error {
			runs.Add(1)
			return sleep(ctx, time.Hour)
		})
		require.ErrorIs(t, err, context.Canceled)
		time.Sleep(200 * time.Millisecond)
		assert.EqualValues(t, 2, runs.Load())
	})
}

func TestHedgeWaitsForWhatRunsAfterTheCallerCancelled(t *testing.T) {
	for _, late := range []error{nil, errDown} {
		synctest.Test(t, func(t *testing.T) {
			h := NewHedge(HedgeConfig{Delay: 10 * time.Millisecond})
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(15*time.Millisecond, cancel)
			start := time.Now()
			err := h.Do(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Minute) // cleans up at its leisure
				return late
			})
			assert.Equal(t, time.Minute+15*time.Millisecond, time.Since(start))
			if late == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, errDown)
			}
		})
	}
}

func TestHedgeThatTheBudgetSuppressesIsToldAndCancelsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &events{}
		none := NewBudget("none", BudgetConfig{Ratio: -1, PerSecond: -1})
		h := NewHedge(HedgeConfig{Delay: time.Second, MaxHedges: 5, Budget: none, Observer: told})
		runs := 0
		err := h.Do(t.Context(), func(ctx context.Context) error {
			runs++
			_ = sleep(ctx, time.Minute)
			return errDown
		})
		require.ErrorIs(t, err, errDown)
		assert.Equal(t, 1, runs)
		hedged := told.of(observe.Hedged)
		require.Len(t, hedged, 1, "once, also when the attempt fails later")
		assert.Equal(t, "budget_exhausted", hedged[0].Reason)
		assert.EqualValues(t, 1, none.Stats().Refused)
	})
}

func TestHedgeGivesBackWhatBroughtAnAnswerThatIsNotRetryable(t *testing.T) {
	tests := []struct {
		name      string
		answer    error
		wantSpent int
	}{
		{"success", nil, 1},
		{"failure", errDown, 1},
		{"refusal", policy.Rejection("bulkhead", "b", nil, time.Time{}, nil), 0},
		{"healthy", policy.Healthy(errDown), 0},
		{"permanent", backoff.Permanent(errDown), 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := NewBudget("b", BudgetConfig{})
				h := NewHedge(HedgeConfig{Delay: time.Second, Budget: b})
				_ = h.Do(t.Context(), func(ctx context.Context) error {
					if policy.Attempt(ctx) == 2 {
						return test.answer
					}
					return sleep(ctx, 2*time.Second)
				})
				assert.Equal(t, test.wantSpent, b.Stats().Spent)
				synctest.Wait()
			})
		})
	}
}

func TestHedgeCountsEachAttemptOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeter(t)
		h := NewHedge(HedgeConfig{Delay: time.Second, Observer: m})
		hang := func(ctx context.Context) error { return sleep(ctx, time.Hour) }
		script := func(takes ...func(context.Context) error) {
			_ = h.Do(t.Context(), func(ctx context.Context) error { return takes[policy.Attempt(ctx)-1](ctx) })
		}
		ok := func(context.Context) error { return nil }
		fail := func(context.Context) error { return errDown }
		script(ok)
		script(hang, ok)
		script(func(ctx context.Context) error { return sleep(ctx, 2*time.Second) }, hang)
		script(fail, fail)
		assert.Panics(t, func() { script(hang, func(context.Context) error { panic("x") }) })
		synctest.Wait()
		got := m.collect(t)
		delete(got, "switchgear.retry.budget.available")
		delete(got, "switchgear.retry.budget.limit")
		assert.Equal(t, map[string]int64{
			"switchgear.hedge.attempts original success":  2,
			"switchgear.hedge.attempts original failure":  1,
			"switchgear.hedge.attempts original canceled": 2,
			"switchgear.hedge.attempts hedge success":     1,
			"switchgear.hedge.attempts hedge failure":     2,
			"switchgear.hedge.attempts hedge canceled":    1,
		}, got)
	})
}

func TestAHedgeWithANameKeepsItInAPipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &events{}
		p := policy.NewPipeline("search",
			NewHedge(HedgeConfig{Name: "own", Delay: time.Second}),
			NewHedge(HedgeConfig{Delay: 2 * time.Second}),
			NewHedge(HedgeConfig{Delay: 3 * time.Second}),
		).Observed(told)
		require.NoError(t, p.Do(t.Context(), func(ctx context.Context) error { return sleep(ctx, 3500*time.Millisecond) }))
		names := map[string]bool{}
		for _, e := range told.of(observe.Hedged) {
			assert.Equal(t, "hedge", e.Policy)
			assert.Equal(t, "search", e.Pipeline)
			names[e.Name] = true
		}
		assert.Equal(t, map[string]bool{"own": true, "search#2": true, "search#3": true}, names)
		synctest.Wait()
	})
}
