package ratelimit

import (
	"context"
	"io"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

const forEver = -1 // as MaxWait

// come lets n calls come at once, in order, and waits until all wait or are through.
func come(ctx context.Context, l *Limiter, n int) <-chan error {
	results := make(chan error, n)
	for range n {
		go func() { results <- l.Allow(ctx) }()
		synctest.Wait()
	}
	return results
}

func TestThoseWhoWaitAreServedInOrderAtTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := quiet(Config{Rate: 10, Burst: 2, MaxWait: forEver})
		start := time.Now()
		var mu sync.Mutex
		var at []time.Duration
		var order []int
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				assert.NoError(t, l.Do(t.Context(), func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					at, order = append(at, time.Since(start)), append(order, i)
					return nil
				}))
			})
			synctest.Wait()
		}
		assert.Equal(t, Stats{Rate: 10, Burst: 2, Waiting: 10, Acquired: 2}, l.Stats())
		assert.True(t, l.InUse())
		wg.Wait()
		assert.True(t, slices.IsSorted(order), order)
		for i, at := range at {
			assert.Equal(t, time.Duration(max(0, i-1))*100*time.Millisecond, at, i)
		}
		assert.Equal(t, Stats{Rate: 10, Burst: 2, Acquired: 12}, l.Stats())
	})
}

// Tokens of canceled reservations were lost, so whoever asked several limiters starved (golang/go#56924).
func TestOneWhoLeavesCostsNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := quiet(Config{Rate: 10, Burst: 1, MaxWait: forEver})
		require.NoError(t, l.Allow(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		waits := make(chan error, 1000)
		for range 1000 {
			go func() { waits <- l.Allow(ctx) }()
		}
		synctest.Wait()
		assert.Equal(t, 1000, l.Stats().Waiting)
		time.Sleep(50 * time.Millisecond)
		cancel()
		for range 1000 {
			assert.Equal(t, context.Canceled, <-waits)
		}
		start := time.Now()
		require.NoError(t, l.Allow(t.Context()))
		assert.Equal(t, 50*time.Millisecond, time.Since(start))
		assert.Equal(t, Stats{Rate: 10, Burst: 1, Acquired: 2, Canceled: 1000}, l.Stats())
	})
}

func TestTheNextMovesUpWhereOneLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := quiet(Config{Rate: 1, Burst: 1, MaxWait: forEver})
		require.NoError(t, l.Allow(t.Context()))
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		first := come(ctx, l, 1)
		middle := come(ctx, l, 1)
		last := come(t.Context(), l, 1)
		cancel()
		assert.Equal(t, context.Canceled, <-first)
		assert.Equal(t, context.Canceled, <-middle)
		require.NoError(t, <-last)
		assert.Equal(t, time.Second, time.Since(start))
	})
}

// A wait that its deadline would cut short ended in an unclear error (0xProject/0x-mesh#585).
func TestAWaitThatIsTooLongIsRefusedAtOnceAndTakesNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := quiet(Config{Rate: 1, Burst: 1, MaxWait: 2 * time.Second})
		require.NoError(t, l.Allow(t.Context()))
		start := time.Now()
		for _, within := range []time.Duration{10 * time.Millisecond, time.Second} { // at the deadline it could not run
			ctx, cancel := context.WithTimeout(t.Context(), within)
			err := l.Allow(ctx)
			cancel()
			assert.Equal(t, start.Add(time.Second), refusalOf(t, err).RetryAt)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, policy.Ignored, policy.Classify(t.Context(), err))
		}
		waits := come(t.Context(), l, 2) // two seconds are not too long
		assert.Equal(t, start.Add(3*time.Second), refusalOf(t, l.Allow(t.Context())).RetryAt, "after those who wait")
		assert.Zero(t, time.Since(start))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, l.Allow(ctx), ErrLimited)
		assert.NoError(t, <-waits)
		assert.NoError(t, <-waits)
		assert.Equal(t, 2*time.Second, time.Since(start))
		time.Sleep(time.Second)
		require.NoError(t, l.Allow(ctx), "RetryAt was true")
		assert.Equal(t, Stats{Rate: 1, Burst: 1, Acquired: 4, Rejected: 4}, l.Stats())
	})
}

func TestACallWhoseContextEndsLeavesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newHands() // stands still, so the wait is longer than it looked
		l := quiet(Config{Rate: 1, Burst: 1, MaxWait: forEver, Clock: clock.read})
		require.NoError(t, l.Allow(t.Context()))
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		assert.Equal(t, context.DeadlineExceeded, l.Allow(ctx))
		assert.Equal(t, 1500*time.Millisecond, time.Since(start))
		assert.Equal(t, Stats{Rate: 1, Burst: 1, Acquired: 1, Canceled: 1}, l.Stats())
	})
}

// A rate of 0 blocked for ever, or always allowed (golang/go#39984).
func TestWithoutARateNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := quiet(Config{Burst: 2, MaxWait: forEver})
		start := time.Now()
		require.NoError(t, l.Allow(t.Context()))
		require.NoError(t, l.Allow(t.Context()))
		assert.Zero(t, refusalOf(t, l.Allow(t.Context())).RetryAt)
		assert.Zero(t, time.Since(start))
	})
}

func TestSetRateReachesThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := quiet(Config{Rate: 1, MaxWait: 10 * time.Second})
		require.NoError(t, l.Allow(t.Context()))
		start := time.Now()
		first, second, third := come(t.Context(), l, 1), come(t.Context(), l, 1), come(t.Context(), l, 1)
		time.Sleep(500 * time.Millisecond) // half a token
		l.SetRate(5)
		require.NoError(t, <-first)
		assert.Equal(t, 600*time.Millisecond, time.Since(start))
		l.SetRate(.1) // the second's would come after 10.6s: too late
		refusal := refusalOf(t, <-second)
		assert.Equal(t, 600*time.Millisecond, time.Since(start), "at once")
		assert.Equal(t, start.Add(10*time.Second+600*time.Millisecond), refusal.RetryAt)
		assert.Same(t, refusal, refusalOf(t, <-third))

		l.SetRate(.2)
		last := come(t.Context(), l, 1)
		l.SetRate(0)
		assert.Zero(t, refusalOf(t, <-last).RetryAt)

		l.SetRate(.2)
		last = come(t.Context(), l, 2)
		l.SetRate(math.Inf(1))
		for range cap(last) {
			require.NoError(t, <-last)
		}
		assert.Equal(t, 600*time.Millisecond, time.Since(start))
		assert.EqualValues(t, 3, l.Stats().Rejected)
	})
}

func TestSetRateRefusesOnlyThoseForWhomItIsTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := quiet(Config{Rate: 4, Burst: 1, MaxWait: time.Second})
		require.NoError(t, l.Allow(t.Context()))
		hurried, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond)
		defer cancel()
		waits := []<-chan error{come(t.Context(), l, 1), come(hurried, l, 1), come(t.Context(), l, 1), come(t.Context(), l, 1)}
		start := time.Now()
		l.SetRate(2)
		for i, want := range []error{nil, ErrLimited, nil, ErrLimited} {
			require.ErrorIs(t, <-waits[i], want, i)
		}
		assert.Equal(t, time.Second, time.Since(start))
	})
}

func TestWaitsTakeRealTimeWhateverTheClockSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newHands()
		l := quiet(Config{Rate: 10, Burst: 1, MaxWait: time.Second, Clock: clock.read})
		require.NoError(t, l.Allow(t.Context()))
		start := time.Now()
		refusal := refusalOf(t, l.Allow(t.Context()))
		assert.Equal(t, time.Second, time.Since(start), "a clock that stands still holds nobody longer than MaxWait")
		assert.Equal(t, 100*time.Millisecond, refusal.RetryAfter())
		assert.Less(t, clock.reads, 20, "and nobody looks at it all the time")

		waits := come(t.Context(), l, 1)
		clock.move(100 * time.Millisecond)
		require.NoError(t, <-waits)
		assert.Equal(t, 1100*time.Millisecond, time.Since(start), "it looked when the wait was over")

		clock.move(100*time.Millisecond - time.Microsecond)
		reads := clock.reads
		refusalOf(t, l.Allow(t.Context()))
		assert.Less(t, clock.reads-reads, 1100, "not even a microsecond before a token")
	})
}

// A backward step lengthened the wait by itself (Kit3713/Proteus#377).
func TestAClockThatStepsBackBlocksNobodyLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		offset := time.Duration(0)
		var mu sync.Mutex
		step := func(d time.Duration) { mu.Lock(); offset += d; mu.Unlock() }
		l := quiet(Config{Rate: 2, Burst: 1, MaxWait: 5 * time.Second, Clock: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(offset).Round(0)
		}})
		require.NoError(t, l.Allow(t.Context()))
		step(-time.Hour)
		start := time.Now()
		require.NoError(t, l.Allow(t.Context()))
		assert.Equal(t, 500*time.Millisecond, time.Since(start), "it goes on from there")

		waits := come(t.Context(), l, 3)
		time.Sleep(100 * time.Millisecond)
		step(-time.Hour)
		for range cap(waits) {
			require.NoError(t, <-waits)
		}
		assert.InDelta(t, 2100*time.Millisecond, time.Since(start), float64(600*time.Millisecond))

		time.Sleep(time.Second)
		require.NoError(t, l.Allow(t.Context()))
		step(-300 * time.Millisecond)
		start = time.Now()
		refusal := func() *policy.RejectedError {
			ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
			defer cancel()
			return refusalOf(t, l.Allow(ctx))
		}()
		assert.Equal(t, 800*time.Millisecond, refusal.RetryAfter(), "300ms to catch up, and a token")
		require.NoError(t, l.Allow(t.Context()))
		assert.Equal(t, 800*time.Millisecond, time.Since(start))
	})
}

// joined puts a call in the queue that does not look by itself.
func joined(t *testing.T, l *Limiter) *waitingCall {
	t.Helper()
	c, err := l.join(t.Context(), l.patienceOf(t.Context()))
	require.NoError(t, err)
	require.NotNil(t, c)
	return c
}

func TestThoseWhoWakeUpLateGetTheWholeRate(t *testing.T) {
	clock := newHands()
	l := quiet(Config{Rate: 10, Burst: 1, MaxWait: time.Hour, Clock: clock.read})
	require.NoError(t, l.Allow(t.Context()))
	a, b, c := joined(t, l), joined(t, l), joined(t, l)
	assert.Equal(t, 100*time.Millisecond, l.look(a).sleep)
	assert.Equal(t, time.Hour, l.look(b).sleep.Round(time.Second), "it is not the first")
	clock.move(250 * time.Millisecond)
	assert.Equal(t, never, l.look(b).sleep, "its token has come, but not yet its turn")
	assert.True(t, l.look(a).served)
	<-b.woken
	assert.True(t, l.look(b).served, "as of 200ms")
	<-c.woken
	assert.Equal(t, 50*time.Millisecond, l.look(c).sleep, "and half of a token is there")
	l.leave(c)
	clock.move(50 * time.Millisecond)
	require.NoError(t, l.Allow(t.Context()))
	assert.Zero(t, l.Stats().Available)
}

func TestOneWhoWaitsKnowsWhenItsTokenComesAtANewRate(t *testing.T) {
	clock := newHands()
	l := quiet(Config{Rate: 10, Burst: 1, MaxWait: time.Hour, Clock: clock.read})
	require.NoError(t, l.Allow(t.Context()))
	_, second := joined(t, l), joined(t, l)
	l.SetRate(1)
	clock.move(time.Second)
	assert.Equal(t, time.Hour, l.look(second).sleep.Round(time.Second), "MaxWait may still end first")
	clock.move(time.Second)
	assert.Equal(t, never, l.look(second).sleep)
}

func TestARefusalTellsOfThoseWhoWaitNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := quiet(Config{Rate: 1, Burst: 1, MaxWait: 2 * time.Second})
		require.NoError(t, l.Allow(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		waits := come(ctx, l, 2)
		assert.Equal(t, 3*time.Second, refusalOf(t, l.Allow(t.Context())).RetryAfter())
		cancel()
		assert.Equal(t, context.Canceled, <-waits)
		assert.Equal(t, context.Canceled, <-waits)
		hurried, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		assert.Equal(t, time.Second, refusalOf(t, l.Allow(hurried)).RetryAfter())
	})
}

func TestOneWhoseMaxWaitEndsAsItsTokenComesIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := quiet(Config{Rate: 1000, Burst: 1, MaxWait: 100 * time.Millisecond})
		require.NoError(t, l.Allow(t.Context()))
		waits := come(t.Context(), l, 101)
		for i := range 101 {
			if err := <-waits; err != nil {
				require.ErrorIs(t, err, ErrLimited, i)
			}
		}
		assert.Equal(t, Stats{Rate: 1000, Burst: 1, Acquired: 101, Rejected: 1}, l.Stats())
	})
}

// surly is a context that panics when it is asked a second time.
type surly struct {
	context.Context
	asked int
}

func (s *surly) Err() error {
	if s.asked++; s.asked > 2 {
		panic("surly")
	}
	return nil
}

func TestAPanicInTheQueueLeavesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := quiet(Config{Rate: 1, MaxWait: forEver})
		require.NoError(t, l.Allow(t.Context()))
		waits := make(chan any, 1)
		go func() {
			defer func() { waits <- recover() }()
			_ = l.Allow(&surly{Context: t.Context()})
		}()
		synctest.Wait()
		require.Equal(t, 1, l.Stats().Waiting)
		behind := come(t.Context(), l, 1)
		assert.Equal(t, "surly", <-waits)
		assert.NoError(t, <-behind)
	})
}

func TestAWaitIsNotTakenFromTheTimeoutFurtherIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := quiet(Config{Rate: .1, MaxWait: forEver})
		p := policy.NewPipeline("p", l, policy.Timeout(time.Second)).Observed(observe.Discard)
		for range 2 { // the second waits for ten seconds
			require.NoError(t, p.Do(t.Context(), func(ctx context.Context) error {
				time.Sleep(900 * time.Millisecond)
				return ctx.Err()
			}))
		}
		assert.ErrorIs(t, p.Do(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return io.EOF }), policy.ErrTimeout)
	})
}
