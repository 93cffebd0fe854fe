package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
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

func TestExhaustedErrorTellsItsStory(t *testing.T) {
	tests := []struct {
		err  *ExhaustedError
		want string
	}{
		{&ExhaustedError{3, ErrAttemptsExhausted, errDown, false}, "retry: gave up after 3 attempts (attempts exhausted): down"},
		{&ExhaustedError{1, ErrDeadline, errDown, false}, "retry: gave up after 1 attempt (the wait would exceed the context's deadline): down"},
		{&ExhaustedError{2, context.Canceled, errDown, false}, "retry: gave up after 2 attempts (context canceled): down"},
		{&ExhaustedError{}, "retry: gave up after 0 attempts"},
	}
	for _, test := range tests {
		require.EqualError(t, test.err, test.want)
		assert.Equal(t, "exhausted", test.err.ErrorType())
	}
	var timeout interface{ Timeout() bool } = &ExhaustedError{Last: fmt.Errorf("read: %w", os.ErrDeadlineExceeded)}
	assert.True(t, timeout.Timeout())
	timeout = &ExhaustedError{Reason: context.DeadlineExceeded, Last: errDown}
	assert.False(t, timeout.Timeout())
	assert.False(t, (&ExhaustedError{}).Timeout())
	assert.Empty(t, (&ExhaustedError{}).Unwrap())
}

func TestReasonsAreDistinctAndNamed(t *testing.T) {
	seen := map[string]bool{}
	for _, reason := range []error{ErrAttemptsExhausted, ErrElapsed, ErrDeadline, ErrBudgetExhausted, ErrRetryAfter, ErrStopped, ErrHedgeLost} {
		assert.Regexp(t, "^retry: ", reason.Error())
		assert.False(t, seen[reason.Error()], "%v", reason)
		seen[reason.Error()] = true
		require.NotErrorIs(t, reason, context.DeadlineExceeded)
		assert.NotErrorIs(t, reason, policy.ErrRejected)
	}
}

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
