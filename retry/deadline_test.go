package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// avast/retry-go#74, #53
func TestCancellationDuringTheWaitKeepsTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		told := &events{}
		b := NewBudget("b", BudgetConfig{})
		fn := newScript(errDown)
		err := New(Config{BackOff: every(time.Minute), Budget: b, Observer: told}).Do(ctx, fn.run)
		assert.Equal(t, time.Second, time.Since(fn.from))
		assert.Equal(t, 1, fn.runs)
		assert.Equal(t, &ExhaustedError{Attempts: 1, Reason: context.Canceled, Last: errDown}, err)
		require.ErrorIs(t, err, errDown)
		require.ErrorIs(t, err, context.Canceled)
		assert.Zero(t, b.Stats().Spent, "the retry never ran")
		gaveUp := told.of(observe.Exhausted)
		require.Len(t, gaveUp, 1)
		assert.Equal(t, "canceled", gaveUp[0].Reason)
	})
}

func TestCancellationDuringAnAttemptEndsTheCall(t *testing.T) {
	tests := []struct {
		name     string
		attempt  int   // the one that is cut
		returns  error // what it returns
		want     error
		wantLast error
	}{
		{"the first returns ctx's error", 1, context.Canceled, context.Canceled, nil},
		{"the first returns an error of its own", 1, io.EOF, nil, io.EOF},
		{"a later one returns ctx's error", 2, fmt.Errorf("read: %w", context.Canceled), nil, errDown},
		{"a later one returns an error of its own", 2, io.EOF, nil, io.EOF},
		{"a later one is refused", 2, refusal(time.Time{}), nil, errDown},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				runs := 0
				err := New(Config{}).Do(ctx, func(ctx context.Context) error {
					runs++
					if policy.Attempt(ctx) < test.attempt {
						return errDown
					}
					cancel()
					return test.returns
				})
				assert.Equal(t, test.attempt, runs)
				require.ErrorIs(t, err, context.Canceled)
				if test.want != nil {
					assert.Equal(t, test.want, err)
					return
				}
				e := exhausted(t, err)
				assert.Equal(t, test.wantLast, e.Last)
				assert.ErrorIs(t, e.Reason, context.Canceled)
			})
		})
	}
}

func TestARetryUnderADoneContextRunsNothing(t *testing.T) {
	m := newMeter(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fn := newScript(nil)
	assert.Equal(t, context.Canceled, New(Config{Observer: m}).Do(ctx, fn.run))
	assert.Zero(t, fn.runs)
	assert.NotContains(t, m.collect(t), "switchgear.retry.attempts original success")
}

// cenkalti/backoff#53, vimeo/go-retry#7, temporal#4403
func TestAWaitThatTheDeadlineWouldCutIsNotBegun(t *testing.T) {
	tests := []struct {
		name     string
		deadline time.Duration
		want     int // attempts
	}{
		{"before it ends", 900 * time.Millisecond, 1},
		{"as it ends", time.Second, 1},
		{"after it ends", time.Second + 1, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
				defer cancel()
				told := &events{}
				b := NewBudget("b", BudgetConfig{})
				fn := newScript(errDown)
				err := New(Config{BackOff: every(time.Second), Budget: b, Observer: told}).Do(ctx, fn.run)
				assert.Equal(t, &ExhaustedError{Attempts: test.want, Reason: ErrDeadline, Last: errDown}, err)
				require.NotErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, fn.at[len(fn.at)-1], time.Since(fn.from), "at once")
				assert.Equal(t, test.want-1, b.Stats().Spent)
				gaveUp := told.of(observe.Exhausted)
				require.Len(t, gaveUp, 1)
				assert.Equal(t, "deadline", gaveUp[0].Reason)
			})
		})
	}
}

// cenkalti/backoff#188: a long first attempt uses MaxElapsed up, and the error says so.
func TestMaxElapsedCountsFromTheStartOfTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		err := New(Config{MaxElapsed: time.Second}).Do(t.Context(), func(context.Context) error {
			runs++
			time.Sleep(2 * time.Second)
			return errDown
		})
		assert.Equal(t, 1, runs)
		assert.Equal(t, &ExhaustedError{Attempts: 1, Reason: ErrElapsed, Last: errDown}, err)
	})
}

// turbopuffer-go#138, go-service#2566, gax-java#561
func TestATimeoutOfTheAttemptIsRetriedButNotTheCallersDeadline(t *testing.T) {
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		p := policy.NewPipeline("p", New(Config{}), policy.Timeout(50*time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		runs := 0
		require.NoError(t, p.Do(ctx, func(ctx context.Context) error {
			if runs++; runs == 1 {
				return hang(ctx)
			}
			return nil
		}))
		assert.Equal(t, 2, runs)
	})
	synctest.Test(t, func(t *testing.T) {
		p := policy.NewPipeline("p", New(Config{BackOff: every(time.Millisecond)}), policy.Timeout(50*time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
		defer cancel()
		start, runs := time.Now(), 0
		err := p.Do(ctx, func(ctx context.Context) error {
			runs++
			return hang(ctx)
		})
		assert.Equal(t, 60*time.Millisecond, time.Since(start))
		assert.Equal(t, 2, runs)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, policy.ErrTimeout, "the first attempt's")
	})
}

// go-retryablehttp#127, llmr#45
func TestARetryInsideATimeoutStopsBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policy.NewPipeline("p", policy.Timeout(200*time.Millisecond), New(Config{Attempts: 10, BackOff: every(50 * time.Millisecond)}))
		fn := newScript(errDown)
		err := p.Do(t.Context(), fn.run)
		assert.Less(t, time.Since(fn.from), 200*time.Millisecond)
		require.ErrorIs(t, err, ErrDeadline)
		require.ErrorIs(t, err, errDown)
		require.NotErrorIs(t, err, policy.ErrTimeout)

		said := errors.New("interrupted")
		start := time.Now()
		err = p.Do(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			return said
		})
		assert.Equal(t, 200*time.Millisecond, time.Since(start))
		require.ErrorIs(t, err, policy.ErrTimeout)
		require.ErrorIs(t, err, said)
	})
}

func TestEachAttemptHasAContextOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policy.NewPipeline("p", New(Config{}), policy.Timeout(time.Second))
		_ = p.Do(t.Context(), func(ctx context.Context) error {
			require.NoError(t, ctx.Err(), "attempt %d", policy.Attempt(ctx))
			at, _ := ctx.Deadline()
			assert.Equal(t, time.Now().Add(time.Second), at, "attempt %d", policy.Attempt(ctx))
			<-ctx.Done()
			return errDown
		})
	})
}
