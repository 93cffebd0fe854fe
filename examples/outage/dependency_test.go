package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

func TestTheDependencyAnswersAsItsPhaseSays(t *testing.T) {
	for _, tc := range []struct {
		name     string
		failing  bool
		outcomes []policy.Outcome
		errs     []error
	}{
		{"healthy", false, []policy.Outcome{policy.Success}, []error{nil, errUnknownSymbol}},
		{"failing", true, []policy.Outcome{policy.Failure}, []error{context.DeadlineExceeded, nil}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				arrived := 0
				d, err := startDependency(inMemory, func(failing bool) {
					arrived++
					assert.Equal(t, tc.failing, failing)
				})
				require.NoError(t, err)
				defer func() { assert.NoError(t, d.close()) }()
				d.failing.Store(tc.failing)

				const calls = 300 // enough for what one in twenty gets
				seen := map[error]int{}
				for range calls {
					begin := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					quote, err := d.api.quote(ctx, symbol)
					cancel()
					assert.Contains(t, tc.outcomes, policy.Classify(t.Context(), err), "%v", err)
					took := answerTime
					switch {
					case errors.Is(err, context.DeadlineExceeded):
						seen[context.DeadlineExceeded]++
						took = time.Second
					case errors.Is(err, errUnknownSymbol):
						seen[errUnknownSymbol]++
					case err == nil:
						assert.Equal(t, Quote{Symbol: symbol, Price: 42}, quote)
						seen[nil]++
					default:
						require.EqualError(t, err, "quotes: status 500 Internal Server Error")
						seen[nil]++
					}
					assert.Equal(t, took, time.Since(begin))
				}
				assert.Equal(t, calls, arrived)
				assert.Len(t, seen, 2)
				for _, err := range tc.errs {
					assert.NotZero(t, seen[err], "%v", err)
				}
			})
		})
	}
}

func TestAHealthyAnswerNeedsNoFallback(t *testing.T) {
	ask := withPipeline(newPipeline(1, observe.Discard))
	quote, err := ask(t.Context(), func(context.Context) (Quote, error) { return Quote{}, policy.Healthy(errUnknownSymbol) })
	require.ErrorIs(t, err, errUnknownSymbol)
	assert.False(t, quote.Stale)
}
