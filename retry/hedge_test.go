package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/internal/instant"
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

type closer struct{ onClose func() }

func (c *closer) Close() error {
	c.onClose()
	return nil
}

func TestHedgeClosesTheValuesOfLosersAlsoLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHedge(HedgeConfig{Delay: time.Second})
		var closed sync.Map
		v, err := policy.Get(t.Context(), h, func(ctx context.Context) (io.Closer, error) {
			n := policy.Attempt(ctx)
			if n == 1 {
				<-ctx.Done()
				time.Sleep(time.Minute) // deaf
			}
			return &closer{func() { closed.Store(n, true) }}, nil
		})
		require.NoError(t, err)
		time.Sleep(time.Hour)
		_, lost := closed.Load(1)
		_, won := closed.Load(2)
		assert.True(t, lost)
		assert.False(t, won)
		require.NoError(t, v.Close())
	})
}

func TestHedgePanicsOnTheCallersGoroutine(t *testing.T) {
	for _, number := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			told := &events{}
			h := NewHedge(HedgeConfig{Delay: time.Second, Observer: told})
			var cause error
			assert.PanicsWithValue(t, http.ErrAbortHandler, func() {
				_ = h.Do(t.Context(), func(ctx context.Context) error {
					if policy.Attempt(ctx) != number {
						<-ctx.Done()
						cause = context.Cause(ctx)
						return nil
					}
					_ = sleep(ctx, 2*time.Second)
					panic(http.ErrAbortHandler)
				})
			})
			synctest.Wait()
			assert.Equal(t, ErrHedgeLost, cause, "the other attempt")
			hedged := told.of(observe.Hedged)
			require.NotEmpty(t, hedged)
			last := hedged[len(hedged)-1]
			assert.Equal(t, "panic", last.Reason)
			assert.Equal(t, number, last.Attempt)
			require.ErrorIs(t, last.Err, http.ErrAbortHandler)
			assert.ErrorContains(t, last.Err, "hedge_test.go", "the stack of the panic")
		})
	}
}

func TestHedgeLeavesByGoexitWithTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHedge(HedgeConfig{Delay: time.Second})
		returned := false
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = h.Do(t.Context(), func(context.Context) error {
				runtime.Goexit()
				return nil
			})
			returned = true
		}()
		<-done
		assert.False(t, returned)
	})
}

func TestHedgeRecoversAPanicAfterTheReturn(t *testing.T) {
	for _, observerPanics := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			told := &events{}
			h := NewHedge(HedgeConfig{Delay: time.Second, Observer: observe.Tee(told, observe.Func(func(_ context.Context, e observe.Event) {
				if observerPanics && e.Reason == "panic" {
					panic("observer")
				}
			}))})
			err := h.Do(t.Context(), func(ctx context.Context) error {
				if policy.Attempt(ctx) == 2 {
					return nil
				}
				<-ctx.Done()
				time.Sleep(time.Minute)
				panic("late")
			})
			require.NoError(t, err)
			time.Sleep(time.Hour)
			hedged := told.of(observe.Hedged)
			require.Len(t, hedged, 2)
			assert.Equal(t, "panic", hedged[1].Reason)
			assert.Equal(t, 1, hedged[1].Attempt)
			assert.ErrorContains(t, hedged[1].Err, "panic: late")
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

func TestHedgeLeavesNothingBehindWhenAnObserverOrRetryablePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("b", BudgetConfig{})
		observer := NewHedge(HedgeConfig{Delay: time.Second, Budget: b, Observer: observe.Func(func(context.Context, observe.Event) { panic("observer") })})
		retryable := NewHedge(HedgeConfig{Delay: time.Second, Budget: b, Retryable: func(context.Context, error) bool { panic("retryable") }})
		var cause error
		assert.PanicsWithValue(t, "observer", func() {
			_ = observer.Do(t.Context(), func(ctx context.Context) error {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return nil
			})
		})
		synctest.Wait()
		assert.Equal(t, ErrHedgeLost, cause)
		assert.Zero(t, b.Stats().Spent, "the hedge never ran")
		assert.PanicsWithValue(t, "retryable", func() {
			_ = retryable.Do(t.Context(), func(context.Context) error { return errDown })
		})
	})
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

func TestHedgeLearnsItsDelayFromTwentySuccesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHedge(HedgeConfig{Percentile: 0.95})
		var runs atomic.Int32
		call := func(takes time.Duration, err error) time.Duration {
			start := time.Now()
			_ = h.Do(t.Context(), func(ctx context.Context) error {
				runs.Add(1)
				if policy.Attempt(ctx) == 2 {
					return nil
				}
				if slept := sleep(ctx, takes); slept != nil {
					return slept
				}
				return err
			})
			return time.Since(start)
		}
		for range 19 {
			call(100*time.Millisecond, nil)
		}
		call(100*time.Millisecond, errDown)
		call(time.Second, nil) // the twentieth
		require.EqualValues(t, 21, runs.Load(), "no hedge before, not even after a failure")

		took := call(time.Hour, nil)
		assert.EqualValues(t, 23, runs.Load())
		assert.InEpsilon(t, 100*time.Millisecond, took, 1./16)

		time.Sleep(30 * time.Second)
		before := runs.Load()
		call(time.Second, nil)
		assert.Equal(t, before+1, runs.Load(), "what is old is forgotten")
	})
}

func TestOnlySuccessesCountForTheTwenty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHedge(HedgeConfig{Percentile: 0.5})
		var hedged atomic.Int32
		overtaken := func(ctx context.Context) error {
			if policy.Attempt(ctx) == 2 {
				hedged.Add(1)
				return nil
			}
			_ = sleep(ctx, time.Hour)
			return ctx.Err()
		}
		for range 20 {
			_ = h.Do(t.Context(), newScript(nil).run)
		}
		time.Sleep(15 * time.Second)
		for range 12 {
			_ = h.Do(t.Context(), overtaken)
		}
		require.EqualValues(t, 12, hedged.Load())
		time.Sleep(16 * time.Second) // the first ones are forgotten
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_ = h.Do(ctx, overtaken)
		assert.EqualValues(t, 12, hedged.Load(), "12 successes, and 12 that were overtaken")
	})
}

// Were only winners remembered, each hedge would make the next one come earlier.
func TestHedgeRemembersTheAgeOfWhatItOvertook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := bindHedge(HedgeConfig{Percentile: 0.5}.withDefaults(), "h", observe.Discard)
		for range 20 {
			_ = h.Do(t.Context(), func(ctx context.Context) error { return sleep(ctx, 100*time.Millisecond) })
		}
		for range 50 {
			_ = h.Do(t.Context(), func(ctx context.Context) error {
				if policy.Attempt(ctx) == 2 {
					return sleep(ctx, time.Millisecond)
				}
				return sleep(ctx, time.Hour)
			})
		}
		delay, known := h.latencies.percentile(instant.Now(), 0.5)
		require.True(t, known)
		assert.GreaterOrEqual(t, delay, 100*time.Millisecond)
		synctest.Wait()
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

func TestWhileItLearnsAHedgeStaysOnTheCallersGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeter(t)
		h := NewHedge(HedgeConfig{Percentile: 0.9, Observer: m})
		var kept context.Context
		require.NoError(t, h.Do(t.Context(), func(ctx context.Context) error {
			kept = ctx
			return nil
		}))
		require.ErrorIs(t, kept.Err(), context.Canceled, "its context is done")
		require.ErrorIs(t, h.Do(t.Context(), func(context.Context) error { return errDown }), errDown)
		assert.PanicsWithValue(t, "as it is", func() {
			_ = h.Do(t.Context(), func(context.Context) error { panic("as it is") })
		})
		got := m.collect(t)
		assert.EqualValues(t, 1, got["switchgear.hedge.attempts original success"])
		assert.EqualValues(t, 2, got["switchgear.hedge.attempts original failure"])
	})
}

// A goroutine may come to run only after the race it was started for.
func TestAnAttemptThatComesTooLateRunsNothing(t *testing.T) {
	ran := false
	r := &race{
		boundHedge: bindHedge(HedgeConfig{Delay: 1}.withDefaults(), "h", observe.Discard),
		ctx:        t.Context(),
		fn:         func(context.Context) error { ran = true; return nil },
	}
	r.close()
	(&attempt{race: r, number: 2}).run(t.Context())
	assert.False(t, ran)
}
