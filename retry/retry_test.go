package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// script is a function that returns one error after the other, the last one for ever.
type script struct {
	errs []error
	runs int
	at   []time.Duration // when each run began
	from time.Time
}

func newScript(errs ...error) *script { return &script{errs: errs, from: time.Now()} }

func (s *script) run(context.Context) error {
	s.at = append(s.at, time.Since(s.from))
	s.runs++
	return s.errs[min(s.runs, len(s.errs))-1]
}

// every returns a source of constant waits.
func every(d time.Duration) func() backoff.BackOff {
	return func() backoff.BackOff { return backoff.NewConstantBackOff(d) }
}

func exhausted(t *testing.T, err error) *ExhaustedError {
	t.Helper()
	var e *ExhaustedError
	require.ErrorAs(t, err, &e)
	return e
}

func refusal(retryAt time.Time) error {
	return policy.Rejection("circuit_breaker", "payments", errors.New("circuit open"), retryAt, nil)
}

// The golden table: what an attempt may return, and what becomes of it.
func TestRetryJudgesWhatAnAttemptReturns(t *testing.T) {
	open := refusal(time.Time{})
	inner := &ExhaustedError{Attempts: 3, Reason: ErrAttemptsExhausted, Last: errDown}
	nested := &ExhaustedError{Attempts: 3, Reason: ErrAttemptsExhausted, Last: errDown, nested: true}
	tests := []struct {
		name    string
		err     error
		want    bool  // retried
		return_ error // what Do returns, if that is not the error
	}{
		{"nil", nil, false, nil},
		{"io.EOF", io.EOF, true, nil},
		{"a timeout of the attempt", &policy.TimeoutError{Limit: time.Second, Err: context.DeadlineExceeded}, true, nil},
		{"os.ErrDeadlineExceeded", os.ErrDeadlineExceeded, true, nil},
		{"a cancellation nobody asked for", context.Canceled, true, nil},
		{"a refusal", open, false, nil},
		{"a wrapped refusal", fmt.Errorf("charge: %w", open), false, nil},
		{"a refusal beside a failure", errors.Join(errDown, open), false, nil},
		{"a healthy answer", policy.Healthy(errDown), false, nil},
		{"a wrapped healthy answer", fmt.Errorf("charge: %w", policy.Healthy(errDown)), false, nil},
		{"permanent", backoff.Permanent(errDown), false, errDown},
		{"a wrapped permanent", fmt.Errorf("charge: %w", backoff.Permanent(errDown)), false, nil},
		{"an inner retry that gave up", inner, false, nil},
		{"a wrapped one", fmt.Errorf("charge: %w", inner), false, nil},
		{"one that is Nested", nested, true, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fn := newScript(test.err, nil)
				err := New(Config{}).Do(t.Context(), fn.run)
				if test.want {
					assert.Equal(t, 2, fn.runs)
					require.NoError(t, err)
					assert.True(t, DefaultRetryable(t.Context(), test.err))
					return
				}
				assert.Equal(t, 1, fn.runs)
				want := test.err
				if test.return_ != nil {
					want = test.return_
				}
				assert.Equal(t, want, err)
				assert.False(t, DefaultRetryable(t.Context(), test.err))
			})
		})
	}
}

func TestNothingIsRetryableOnceTheCallerHasLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.False(t, DefaultRetryable(ctx, errDown))
}

func TestRetryMakesExactlyAttempts(t *testing.T) {
	for attempts, want := range map[int]int{0: 3, 1: 1, 2: 2, 8: 8} {
		synctest.Test(t, func(t *testing.T) {
			fn := newScript(errDown)
			err := New(Config{Attempts: attempts}).Do(t.Context(), fn.run)
			assert.Equal(t, want, fn.runs)
			assert.Equal(t, &ExhaustedError{Attempts: want, Reason: ErrAttemptsExhausted, Last: errDown}, err)
			if want == 1 {
				assert.Zero(t, time.Since(fn.from), "never sleeps")
			}
		})
	}
}

func TestRetryWithoutALimitOfAttemptsEndsByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := newScript(errDown)
		err := New(Config{Attempts: -1, MaxElapsed: 10 * time.Second, BackOff: every(time.Second), Budget: Unlimited}).Do(t.Context(), fn.run)
		assert.Equal(t, 11, fn.runs)
		assert.Equal(t, 10*time.Second, time.Since(fn.from))
		assert.Equal(t, ErrElapsed, exhausted(t, err).Reason)
	})
}

func TestRetryCountsAttemptsFromOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var numbers []int
		_ = New(Config{}).Do(t.Context(), func(ctx context.Context) error {
			numbers = append(numbers, policy.Attempt(ctx))
			return errDown
		})
		assert.Equal(t, []int{1, 2, 3}, numbers)
	})
}

// jd/tenacity#45: nothing that fn returns can outvote the limits.
func TestLimitsHoldWhateverRetryableSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		always := func(context.Context, error) bool { return true }
		fn := newScript(errDown)
		err := New(Config{Retryable: always}).Do(t.Context(), fn.run)
		assert.Equal(t, 3, fn.runs)
		require.ErrorIs(t, err, ErrAttemptsExhausted)

		fn = newScript(errDown)
		err = New(Config{Attempts: -1, MaxElapsed: time.Minute, Retryable: always}).Do(t.Context(), fn.run)
		require.ErrorIs(t, err, ErrElapsed)
		require.ErrorIs(t, err, errDown)
		assert.LessOrEqual(t, time.Since(fn.from), time.Minute)

		for _, final := range []error{backoff.Permanent(errDown), policy.Healthy(errDown), &ExhaustedError{}} {
			fn = newScript(final)
			_ = New(Config{Retryable: always}).Do(t.Context(), fn.run)
			assert.Equal(t, 1, fn.runs, "%v", final)
		}
	})
}

// dapr#8060
func TestAnOpenCircuitIsNotAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := refusal(time.Now().Add(time.Minute))
		fn := newScript(open)
		err := New(Config{}).Do(t.Context(), fn.run)
		assert.Same(t, open, err, "as it is")
		assert.Equal(t, 1, fn.runs)
	})
}

func TestARefusalAfterARealFailureIsTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := refusal(time.Time{})
		told := &events{}
		b := NewBudget("b", BudgetConfig{})
		err := New(Config{Attempts: 5, Budget: b, Observer: told}).Do(t.Context(), newScript(io.EOF, errDown, open).run)
		assert.Equal(t, &ExhaustedError{Attempts: 3, Reason: open, Last: errDown}, err)
		assert.Equal(t, policy.Failure, policy.Classify(t.Context(), err))
		assert.Equal(t, 1, b.Stats().Spent, "the refused attempt is given back")
		gaveUp := told.of(observe.Exhausted)
		require.Len(t, gaveUp, 1)
		assert.Equal(t, "not_retryable", gaveUp[0].Reason)
	})
}

func TestARetryThatOptsInWaitsForTheCircuit(t *testing.T) {
	always := func(context.Context, error) bool { return true }
	tests := []struct {
		name    string
		openFor time.Duration
		want    time.Duration // the wait
	}{
		{"the circuit's, if that is longer", 10 * time.Second, 10 * time.Second},
		{"else the backoff's", time.Millisecond, time.Second},
		{"else the backoff's, where nobody knows", 0, time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var retryAt time.Time
				if test.openFor > 0 {
					retryAt = time.Now().Add(test.openFor)
				}
				fn := newScript(refusal(retryAt), nil)
				require.NoError(t, New(Config{Retryable: always, BackOff: every(time.Second)}).Do(t.Context(), fn.run))
				assert.Equal(t, test.want, fn.at[1])
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		open := refusal(time.Time{})
		err := New(Config{Retryable: always}).Do(t.Context(), newScript(open).run)
		assert.Equal(t, &ExhaustedError{Attempts: 3, Reason: ErrAttemptsExhausted, Last: open}, err)
		assert.Equal(t, policy.Ignored, policy.Classify(t.Context(), err), "the dependency was never asked")

		err = New(Config{Retryable: always}).Do(t.Context(), newScript(errDown, open).run)
		assert.Equal(t, errDown, exhausted(t, err).Last, "a refusal does not take a real failure's place")
	})
}

func TestAPanicLeavesTheRetryAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeter(t)
		b := NewBudget("b", BudgetConfig{PerSecond: 1})
		r := New(Config{Budget: b, Observer: m})
		assert.PanicsWithValue(t, "first", func() { _ = r.Do(t.Context(), func(context.Context) error { panic("first") }) })
		assert.PanicsWithValue(t, "second", func() {
			_ = r.Do(t.Context(), func(ctx context.Context) error {
				if policy.Attempt(ctx) == 2 {
					panic("second")
				}
				return errDown
			})
		})
		exited := make(chan struct{})
		go func() {
			defer close(exited)
			_ = r.Do(t.Context(), func(context.Context) error {
				runtime.Goexit()
				return nil
			})
		}()
		<-exited
		got := m.collect(t)
		assert.EqualValues(t, 3, got["switchgear.retry.attempts original failure"])
		assert.EqualValues(t, 1, got["switchgear.retry.attempts retry failure"])
		assert.EqualValues(t, 3, got["switchgear.retry.calls not_retryable"])
		assert.Equal(t, 1, b.Stats().Spent, "the attempt that panicked has run")
	})
}

func TestAPanicOfWhatTheUserGaveLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, cfg := range []Config{
			{Retryable: func(context.Context, error) bool { panic("user") }},
			{BackOff: func() backoff.BackOff { panic("user") }},
			{Observer: observe.Func(func(context.Context, observe.Event) { panic("user") })},
		} {
			m := newMeter(t)
			cfg.Observer = observe.Tee(cfg.Observer, m)
			cfg.Budget = NewBudget("b", BudgetConfig{})
			r := New(cfg)
			assert.PanicsWithValue(t, "user", func() { _ = r.Do(t.Context(), newScript(errDown).run) })
			assert.Zero(t, cfg.Budget.Stats().Spent)
			require.NoError(t, r.Do(t.Context(), newScript(nil).run))
			assert.EqualValues(t, 1, m.collect(t)["switchgear.retry.attempts original failure"])
		}
	})
}
