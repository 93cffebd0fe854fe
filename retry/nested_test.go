package retry

import (
	"context"
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

// nanobot#2760, CURATOR-559, code_puppy#317
func TestNestedRetriesDoNotMultiply(t *testing.T) {
	failing := func(context.Context) error { return errDown }
	tests := []struct {
		name         string
		outer, inner Config
		want         int
	}{
		{"three and three are three", Config{}, Config{}, 3},
		{"nested they are nine", Config{}, Config{Nested: true}, 9},
		{"the outer one's Nested changes nothing", Config{Nested: true}, Config{}, 3},
		{"an inner one that makes one attempt", Config{}, Config{Attempts: 1}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.outer.Budget, test.inner.Budget = Unlimited, Unlimited
				outer, inner := New(test.outer), New(test.inner)
				pipeline := policy.NewPipeline("p", outer, inner)
				runs := 0
				err := pipeline.Do(t.Context(), func(ctx context.Context) error { runs++; return failing(ctx) })
				assert.Equal(t, test.want, runs, "in a pipeline")
				require.ErrorIs(t, err, errDown)

				runs = 0
				err = outer.Do(t.Context(), func(ctx context.Context) error {
					return inner.Do(ctx, func(ctx context.Context) error { runs++; return failing(ctx) })
				})
				assert.Equal(t, test.want, runs, "by hand")
				require.ErrorIs(t, err, errDown)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		p := policy.NewPipeline("p", New(Config{}), policy.NewPipeline("q", New(Config{})), New(Config{}))
		_ = p.Do(t.Context(), func(context.Context) error { runs++; return errDown })
		assert.Equal(t, 3, runs, "three layers")
	})
}

func TestARetryInsideARepeatedAttemptStandsAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, outerTold := &events{}, &events{}
		inner := New(Config{Name: "inner", Observer: told})
		outer := New(Config{Observer: outerTold, Attempts: 3})
		var numbers []int
		var innerErrs []error
		innerRuns := 0
		err := outer.Do(t.Context(), func(ctx context.Context) error {
			numbers = append(numbers, policy.Attempt(ctx))
			if policy.Attempt(ctx) == 1 {
				return errDown
			}
			err := inner.Do(ctx, func(inside context.Context) error {
				innerRuns++
				assert.Equal(t, policy.Attempt(ctx), policy.Attempt(inside), "it leaves the number alone")
				return backoff.Permanent(errDown)
			})
			innerErrs = append(innerErrs, err)
			return inner.Do(ctx, func(context.Context) error { return errDown })
		})
		assert.Equal(t, []int{1, 2, 3}, numbers)
		assert.Equal(t, 2, innerRuns)
		assert.Equal(t, []error{backoff.Permanent(errDown), backoff.Permanent(errDown)}, innerErrs, "as they are, for the outer one to judge")
		assert.Equal(t, errDown, exhausted(t, err).Last)

		require.Len(t, told.told, 2, "it says so, where it might have retried")
		e := told.told[0]
		assert.Equal(t, observe.Exhausted, e.Kind)
		assert.Equal(t, 1, e.Attempt)
		assert.Equal(t, "exhausted", e.Reason)
		require.ErrorContains(t, e.Err, "left to the retry around this one")
		assert.ErrorIs(t, e.Err, errDown)
	})
}

func TestAnOuterRetryTakesAnInnerOneThatGaveUpForFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &events{}
		inner := New(Config{})
		outer := New(Config{Observer: told, Retryable: func(context.Context, error) bool { return true }})
		var from error
		err := outer.Do(t.Context(), func(ctx context.Context) error {
			from = inner.Do(ctx, func(context.Context) error { return errDown })
			return from
		})
		assert.Same(t, from, err)
		require.Len(t, told.told, 1, "it says so")
		assert.Equal(t, observe.Exhausted, told.told[0].Kind)
		assert.Equal(t, "not_retryable", told.told[0].Reason)
		assert.Same(t, from, told.told[0].Err)
	})
}

func TestANestedRetryCountsItsOwnAttempts(t *testing.T) {
	for _, o := range []observe.Observer{observe.Discard, &spanner{}} {
		synctest.Test(t, func(t *testing.T) {
			var numbers []int
			p := policy.NewPipeline("p", New(Config{Attempts: 2}), New(Config{Attempts: 3, Nested: true})).Observed(o)
			_ = p.Do(t.Context(), func(ctx context.Context) error {
				numbers = append(numbers, policy.Attempt(ctx))
				return errDown
			})
			assert.Equal(t, []int{1, 2, 3, 1, 2, 3}, numbers)
		})
	}
}

// hedgedhttp#18, parapet#223
func TestAHedgeInsideARetryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policy.NewPipeline("p",
			New(Config{Budget: Unlimited}),
			NewHedge(HedgeConfig{Delay: time.Second, MaxHedges: 2, Budget: Unlimited}),
			New(Config{Budget: Unlimited}),
		)
		var runs atomic.Int32
		_ = p.Do(t.Context(), func(ctx context.Context) error {
			runs.Add(1)
			return errDown
		})
		assert.EqualValues(t, 3, runs.Load(), "an inner retry that gave up starts no hedge")

		runs.Store(0)
		p = policy.NewPipeline("p", New(Config{Budget: Unlimited}), NewHedge(HedgeConfig{Delay: time.Second, MaxHedges: 2, Budget: Unlimited}))
		_ = p.Do(t.Context(), func(context.Context) error {
			runs.Add(1)
			return errDown
		})
		assert.EqualValues(t, 9, runs.Load(), "attempts times one plus hedges")
	})
}

func TestARetryInAHedgeOfARepeatedAttemptStandsAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hedge, inner := NewHedge(HedgeConfig{Delay: time.Second}), New(Config{})
		var hedged, runs atomic.Int32
		err := New(Config{Attempts: 2}).Do(t.Context(), func(ctx context.Context) error {
			if policy.Attempt(ctx) == 1 {
				return errDown
			}
			return hedge.Do(ctx, func(ctx context.Context) error {
				if hedged.Add(1) == 1 {
					_ = sleep(ctx, 2*time.Second)
				}
				return inner.Do(ctx, func(context.Context) error {
					runs.Add(1)
					return errDown
				})
			})
		})
		require.Error(t, err)
		assert.EqualValues(t, 2, hedged.Load())
		assert.EqualValues(t, 2, runs.Load(), "one in each attempt of the hedge")
	})
}

// spanner is an Observer that traces.
type spanner struct {
	events
	started, ended []int
	results        []error
	parents        []any
}

type spanKey struct{}

func (s *spanner) Start(ctx context.Context, _ string, attempt int) (context.Context, func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = append(s.started, attempt)
	s.parents = append(s.parents, ctx.Value(spanKey{}))
	return context.WithValue(ctx, spanKey{}, attempt), func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended = append(s.ended, attempt)
		s.results = append(s.results, err)
	}
}

// otelresty#9
func TestEachAttemptHasASpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &spanner{}
		p := policy.NewPipeline("p", New(Config{}), New(Config{})).Observed(s)
		outer := 0
		require.NoError(t, p.Do(t.Context(), func(context.Context) error {
			if outer++; outer < 3 {
				return errDown
			}
			return nil
		}))
		// The pipeline, the outer retry's one attempt, the inner one's three.
		assert.Equal(t, []int{0, 1, 1, 2, 3}, s.started)
		assert.Equal(t, []int{1, 2, 3, 1, 0}, s.ended)
		assert.Equal(t, []error{errDown, errDown, nil, nil, nil}, s.results)
		assert.Equal(t, []any{nil, 0, 1, 1, 1}, s.parents, "attempts are siblings")
	})
	synctest.Test(t, func(t *testing.T) {
		s := &spanner{}
		inner := New(Config{Observer: s})
		_ = New(Config{}).Do(t.Context(), func(ctx context.Context) error {
			if policy.Attempt(ctx) == 1 {
				return errDown
			}
			return inner.Do(ctx, func(context.Context) error { return errDown })
		})
		assert.Empty(t, s.started, "an attempt of a retry that stands aside is the outer one's")
	})
	synctest.Test(t, func(t *testing.T) {
		s := &spanner{}
		assert.Panics(t, func() {
			_ = New(Config{Observer: s}).Do(t.Context(), func(ctx context.Context) error { panic("x") })
		})
		assert.Equal(t, []error{observe.ErrPanicked}, s.results)
	})
	synctest.Test(t, func(t *testing.T) {
		s := &spanner{}
		_ = NewHedge(HedgeConfig{Delay: time.Second, Observer: s}).Do(t.Context(), func(ctx context.Context) error {
			if policy.Attempt(ctx) == 1 {
				return sleep(ctx, time.Hour)
			}
			return nil
		})
		synctest.Wait()
		assert.Equal(t, []int{1, 2}, s.started)
		assert.Equal(t, []error{nil, context.Canceled}, s.results)
	})
}
