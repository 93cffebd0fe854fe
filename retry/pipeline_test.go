package retry

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/policy"
)

func TestARetryEndsWhenTheCircuitOpensUnderIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		payments := breaker.New("payments", breaker.Config{Consecutive: 2, Jitter: -1})
		p := policy.NewPipeline("charge", New(Config{Attempts: 10}), payments)
		fn := newScript(errDown)
		err := p.Do(t.Context(), fn.run)
		assert.Equal(t, 2, fn.runs)
		e := exhausted(t, err)
		assert.Equal(t, 3, e.Attempts)
		require.ErrorIs(t, e.Reason, breaker.ErrCircuitOpen)
		assert.Equal(t, errDown, e.Last)
		assert.Equal(t, policy.Failure, policy.Classify(t.Context(), err))

		err = p.Do(t.Context(), fn.run)
		require.ErrorIs(t, err, breaker.ErrCircuitOpen)
		require.NotErrorIs(t, err, errDown)
		assert.Equal(t, 2, fn.runs)
		assert.EqualValues(t, 2, payments.Stats().Rejected, "one pass for each call")
	})
}

func TestARetryThatOptsInSleepsUntilTheCircuitMayClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		payments := breaker.New("payments", breaker.Config{Consecutive: 1, Cooldown: 5 * time.Second, Jitter: -1})
		always := func(context.Context, error) bool { return true }
		p := policy.NewPipeline("charge", New(Config{Attempts: 3, Retryable: always, BackOff: every(time.Millisecond)}), payments)
		fn := newScript(errDown, nil)
		require.NoError(t, p.Do(t.Context(), fn.run))
		assert.Equal(t, []time.Duration{0, 5 * time.Second}, fn.at)
		assert.EqualValues(t, 1, payments.Stats().Rejected)
	})
}

func TestABreakerJudgesTheCallOutsideARetryAndTheAttemptsInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outside, inside := breaker.New("outside", breaker.Config{}), breaker.New("inside", breaker.Config{})
		p := policy.NewPipeline("charge", outside, New(Config{}), inside)
		_ = p.Do(t.Context(), newScript(errDown).run)
		assert.Equal(t, 1, outside.Stats().Failed)
		assert.Equal(t, 3, inside.Stats().Failed)
	})
}

func TestLosersOfAHedgeCountForNothingInABreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inside := breaker.New("inside", breaker.Config{})
		p := policy.NewPipeline("search", NewHedge(HedgeConfig{Delay: time.Second}), inside)
		for range 10 {
			require.NoError(t, p.Do(t.Context(), func(ctx context.Context) error {
				if policy.Attempt(ctx) == 1 {
					return sleep(ctx, time.Hour)
				}
				return nil
			}))
		}
		synctest.Wait()
		s := inside.Stats()
		assert.Zero(t, s.Failed)
		assert.LessOrEqual(t, s.Calls, 10, "the winners")
	})
}
