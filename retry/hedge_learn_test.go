package retry

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/internal/instant"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

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
