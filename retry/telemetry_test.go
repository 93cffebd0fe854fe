package retry

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// avast/retry-go#103
func TestRetryTellsOfEachRetryAndOnceThatItGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &events{}
		p := policy.NewPipeline("charge", New(Config{BackOff: every(time.Second)})).Observed(told)
		err := p.Do(t.Context(), newScript(errDown).run)
		start := time.Now().Add(-2 * time.Second)
		assert.Equal(t, []observe.Event{
			{Kind: observe.Attempt, Policy: "retry", Name: "charge", Pipeline: "charge", Attempt: 2, Delay: time.Second, Err: errDown, Time: start},
			{Kind: observe.Attempt, Policy: "retry", Name: "charge", Pipeline: "charge", Attempt: 3, Delay: time.Second, Err: errDown, Time: start.Add(time.Second)},
			{Kind: observe.Exhausted, Policy: "retry", Name: "charge", Pipeline: "charge", Attempt: 3, Reason: "exhausted", Err: err, Time: start.Add(2 * time.Second)},
		}, told.told)
	})
}

func TestRetryTellsNobodyOfErrorsThatItLeavesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &events{}
		r := New(Config{Observer: told})
		for _, err := range []error{nil, refusal(time.Time{}), policy.Healthy(errDown), backoff.Permanent(errDown)} {
			_ = r.Do(t.Context(), newScript(err).run)
		}
		assert.Empty(t, told.told)
	})
}

func TestRetryCountsCallsAndAttempts(t *testing.T) {
	always := func(context.Context, error) bool { return true }
	none := NewBudget("none", BudgetConfig{Ratio: -1, PerSecond: -1})
	hint := hinted(time.Hour)
	type counts = map[string]int64
	tests := []struct {
		name      string
		cfg       Config
		timeout   time.Duration
		errs      []error
		want      counts // under switchgear.retry.
		wantWaits uint64
	}{
		{"success", Config{}, 0, []error{nil}, counts{"attempts original success": 1, "calls first_try": 1}, 0},
		{"healthy", Config{}, 0, []error{policy.Healthy(errDown)}, counts{"attempts original success": 1, "calls first_try": 1}, 0},
		{"recovered", Config{}, 0, []error{errDown, nil}, counts{"attempts original failure": 1, "attempts retry success": 1, "calls recovered": 1}, 1},
		{"a healthy recovery", Config{}, 0, []error{errDown, policy.Healthy(errDown)}, counts{"attempts original failure": 1, "attempts retry success": 1, "calls recovered": 1}, 1},
		{"exhausted", Config{}, 0, []error{errDown}, counts{"attempts original failure": 1, "attempts retry failure": 2, "calls exhausted": 1}, 1},
		{"elapsed", Config{MaxElapsed: 1}, 0, []error{errDown}, counts{"attempts original failure": 1, "calls exhausted": 1}, 0},
		{"stopped", Config{BackOff: func() backoff.BackOff { return &backoff.StopBackOff{} }}, 0, []error{errDown}, counts{"attempts original failure": 1, "calls exhausted": 1}, 0},
		{"refused", Config{}, 0, []error{refusal(time.Time{})}, counts{"attempts original failure": 1, "calls not_retryable": 1}, 0},
		{"refused later", Config{}, 0, []error{errDown, refusal(time.Time{})}, counts{"attempts original failure": 1, "attempts retry failure": 1, "calls not_retryable": 1}, 1},
		{"permanent", Config{}, 0, []error{backoff.Permanent(errDown)}, counts{"attempts original failure": 1, "calls not_retryable": 1}, 0},
		{"a long hint", Config{}, 0, []error{hint}, counts{"attempts original failure": 1, "calls not_retryable": 1}, 0},
		{"budget", Config{Budget: none}, 0, []error{errDown}, counts{"attempts original failure": 1, "calls budget_exhausted": 1}, 0},
		{"deadline", Config{BackOff: every(time.Second)}, time.Second / 2, []error{errDown}, counts{"attempts original failure": 1, "calls deadline": 1}, 0},
		{"opted in", Config{Retryable: always}, 0, []error{refusal(time.Time{}), nil}, counts{"attempts original failure": 1, "attempts retry success": 1, "calls recovered": 1}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMeter(t)
				test.cfg.Observer = m
				if test.cfg.Budget == nil {
					test.cfg.Budget = Unlimited
				}
				ctx := t.Context()
				if test.timeout > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.timeout)
					defer cancel()
				}
				_ = New(test.cfg).Do(ctx, newScript(test.errs...).run)
				want := counts{}
				for name, n := range test.want {
					want["switchgear.retry."+name] = n
				}
				got := m.collect(t)
				delete(got, "switchgear.retry.budget.available")
				delete(got, "switchgear.retry.budget.limit")
				assert.Equal(t, want, got)
				waits, _ := m.waits(t)
				assert.Equal(t, test.wantWaits, waits)
			})
		})
	}
}

func TestRetryCountsCancelledAttemptsAndRecordsTheTotalWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeter(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := New(Config{BackOff: every(2 * time.Second), Observer: m}).Do(ctx, func(ctx context.Context) error {
			time.Sleep(time.Minute) // no part of the wait
			if policy.Attempt(ctx) == 3 {
				cancel()
			}
			return errDown
		})
		require.Error(t, err)
		got := m.collect(t)
		assert.EqualValues(t, 1, got["switchgear.retry.attempts retry canceled"])
		assert.EqualValues(t, 1, got["switchgear.retry.calls canceled"])
		count, sum := m.waits(t)
		assert.EqualValues(t, 1, count)
		assert.InDelta(t, 4, sum, 1e-9)
	})
}
