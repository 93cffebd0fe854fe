package retry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy/observe"
)

// hinted is an error that asks for a wait.
type hinted time.Duration

func (h hinted) Error() string             { return "unavailable" }
func (h hinted) RetryAfter() time.Duration { return time.Duration(h) }

// counting waits a second longer each time.
type counting struct{ n, resets int }

func (c *counting) NextBackOff() time.Duration {
	c.n++
	return time.Duration(c.n) * time.Second
}

func (c *counting) Reset() {
	c.n = 0
	c.resets++
}

func TestAHintTakesThePlaceOfTheBackoff(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want time.Duration
	}{
		{"longer", hinted(5 * time.Second), 5 * time.Second},
		{"shorter", hinted(time.Millisecond), time.Millisecond},
		{"as long as allowed", hinted(30 * time.Second), 30 * time.Second},
		{"wrapped", fmt.Errorf("charge: %w", hinted(5*time.Second)), 5 * time.Second},
		{"the first above 0 counts", errors.Join(errDown, hinted(0), hinted(7*time.Second), hinted(2*time.Second)), 7 * time.Second},
		{"zero is none", hinted(0), time.Second},
		{"negative is none", hinted(-5 * time.Second), time.Second},
		{"the most negative is none", hinted(math.MinInt64), time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fn := newScript(test.err, nil)
				require.NoError(t, New(Config{BackOff: every(time.Second)}).Do(t.Context(), fn.run))
				assert.Equal(t, test.want, fn.at[1])
			})
		})
	}
}

// openai-go#828, cenkalti/backoff#159
func TestAHintAboveMaxRetryAfterStopsAtOnce(t *testing.T) {
	for _, hint := range []hinted{hinted(30*time.Second + 1), hinted(30 * time.Minute), math.MaxInt64} {
		synctest.Test(t, func(t *testing.T) {
			told := &events{}
			b := NewBudget("b", BudgetConfig{})
			fn := newScript(hint)
			err := New(Config{Observer: told, Budget: b}).Do(t.Context(), fn.run)
			assert.Equal(t, &ExhaustedError{Attempts: 1, Reason: ErrRetryAfter, Last: hint}, err)
			assert.Zero(t, time.Since(fn.from))
			gaveUp := told.of(observe.Exhausted)
			require.Len(t, gaveUp, 1)
			assert.Equal(t, "not_retryable", gaveUp[0].Reason)
			assert.Equal(t, time.Duration(hint), gaveUp[0].Delay, "the wait that was asked for")
			assert.Zero(t, b.Stats().Spent)
		})
	}
}

func TestAHintPastTheDeadlineOrMaxElapsedStopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		fn := newScript(hinted(2 * time.Second))
		err := New(Config{}).Do(ctx, fn.run)
		assert.Equal(t, ErrDeadline, exhausted(t, err).Reason)
		err = New(Config{MaxElapsed: time.Second}).Do(t.Context(), fn.run)
		assert.Equal(t, ErrElapsed, exhausted(t, err).Reason)
		assert.Zero(t, time.Since(fn.from))
	})
}

func TestAHintThatOverflowsNeverMakesAShortWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := newScript(hinted(math.MaxInt64))
		err := New(Config{MaxRetryAfter: math.MaxInt64, MaxElapsed: math.MaxInt64}).Do(contextAfter(t, time.Hour), fn.run)
		assert.Equal(t, 1, fn.runs)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, time.Hour, time.Since(fn.from), "it waits until the caller leaves")
	})
}

// contextAfter returns a context that is cancelled after d, without a deadline.
func contextAfter(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(d, cancel)
	return ctx
}

func TestCancellationEndsAHintedWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := newScript(hinted(20 * time.Second))
		err := New(Config{}).Do(contextAfter(t, time.Second), fn.run)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, time.Second, time.Since(fn.from))
	})
}

func TestTheBackoffStartsAgainAfterAHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &counting{}
		fn := newScript(errDown, errDown, hinted(7*time.Second), hinted(8*time.Second), errDown, errDown, nil)
		require.NoError(t, New(Config{Attempts: 9, Budget: Unlimited, BackOff: func() backoff.BackOff { return b }}).Do(t.Context(), fn.run))
		var waits []time.Duration
		for i := 1; i < len(fn.at); i++ {
			waits = append(waits, fn.at[i]-fn.at[i-1])
		}
		assert.Equal(t, []time.Duration{1e9, 2e9, 7e9, 8e9, 1e9, 2e9}, waits)
	})
}

func TestARefusalsWaitDoesNotStartTheBackoffAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := newScript(errDown, refusal(time.Now().Add(time.Second+10*time.Second)), errDown, nil)
		always := func(context.Context, error) bool { return true }
		require.NoError(t, New(Config{Attempts: 4, Retryable: always, BackOff: func() backoff.BackOff { return &counting{} }}).Do(t.Context(), fn.run))
		assert.Equal(t, []time.Duration{0, 1e9, 11e9, 14e9}, fn.at)
	})
}
