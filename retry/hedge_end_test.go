package retry

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

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
			assert.ErrorContains(t, last.Err, "TestHedgePanicsOnTheCallersGoroutine", "the stack of the panic")
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
