package retry

import (
	"math"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy"
)

func TestNewPanicsWithEveryFault(t *testing.T) {
	bad := Config{MaxElapsed: -1, MaxRetryAfter: -2, Budget: &Budget{}}
	err := bad.Validate()
	for _, want := range []string{"MaxElapsed is -1ns, must be", "MaxRetryAfter is -2ns, must be", "Budget is empty, must be"} {
		require.ErrorContains(t, err, want)
	}
	assert.PanicsWithError(t, err.Error(), func() { New(bad) })
	require.NoError(t, Config{Attempts: -1, Budget: Unlimited}.Validate())

	hedge := HedgeConfig{Delay: -1, Percentile: 1, MaxHedges: -3, Budget: &Budget{}}
	err = hedge.Validate()
	for _, want := range []string{"Delay is -1ns, must be", "Percentile is 1, must be", "MaxHedges is -3, must be", "Budget is empty, must be"} {
		require.ErrorContains(t, err, want)
	}
	assert.PanicsWithError(t, err.Error(), func() { NewHedge(hedge) })
	require.ErrorContains(t, HedgeConfig{}.Validate(), "one of them must be set")
	require.ErrorContains(t, HedgeConfig{Delay: 1, Percentile: 0.5}.Validate(), "one of them must be set")
	require.ErrorContains(t, HedgeConfig{Percentile: math.NaN()}.Validate(), "Percentile is NaN")

	budget := BudgetConfig{Ratio: math.NaN(), PerSecond: math.Inf(1), Window: -time.Second}
	err = budget.Validate()
	for _, want := range []string{"Ratio is NaN, must be", "PerSecond is +Inf, must be", "Window is -1s, must be"} {
		require.ErrorContains(t, err, want)
	}
	assert.PanicsWithError(t, err.Error(), func() { NewBudget("b", budget) })
}

func TestMisuseOfDoPanicsWithAClearText(t *testing.T) {
	for _, p := range []policy.Policy{New(Config{}), NewHedge(HedgeConfig{Delay: 1})} {
		assert.Panics(t, func() { _ = p.Do(t.Context(), nil) })
		assert.Panics(t, func() { _ = p.Do(nil, newScript(nil).run) }) //nolint:staticcheck // the misuse
	}
	assert.PanicsWithValue(t, "retry: retry: BackOff returned nil", func() {
		_ = New(Config{BackOff: func() backoff.BackOff { return nil }}).Do(t.Context(), newScript(errDown).run)
	})
}

func TestPoliciesDescribeThemselves(t *testing.T) {
	p := policy.NewPipeline("p", New(Config{}), New(Config{Attempts: -1}), NewHedge(HedgeConfig{Delay: time.Second}), NewHedge(HedgeConfig{Percentile: .29}))
	assert.Equal(t, "p: retry(3) → retry(unlimited) → hedge(1s) → hedge(p29)", p.String())
	assert.Empty(t, New(Config{}).Name())
	assert.Equal(t, "n", New(Config{Name: "n"}).Name())
	assert.Equal(t, "n", NewHedge(HedgeConfig{Name: "n", Delay: 1}).Name())
}
