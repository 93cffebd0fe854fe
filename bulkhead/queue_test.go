package bulkhead

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/internal/recorder"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// busy calls b.Do n times at once, each for d, and returns what they return. It waits until all have arrived.
func busy(ctx context.Context, b *Bulkhead, n int, d time.Duration) <-chan error {
	results := make(chan error, n)
	for range n {
		go func() { results <- b.Do(ctx, func(context.Context) error { time.Sleep(d); return nil }) }()
		synctest.Wait() // they arrive one after the other
	}
	return results
}

func results(ch <-chan error) (errs []error) {
	for range cap(ch) {
		errs = append(errs, <-ch)
	}
	return errs
}

func TestThoseWhoWaitAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := quiet(Config{Max: 2, Queue: 10})
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				assert.NoError(t, b.Do(t.Context(), func(context.Context) error {
					mu.Lock()
					order = append(order, i)
					mu.Unlock()
					time.Sleep(time.Second + time.Duration(i)*time.Millisecond) // never two at once
					return nil
				}))
			})
			synctest.Wait()
		}
		assert.Equal(t, Stats{Max: 2, Running: 2, Queue: 10, Waiting: 10, Acquired: 2}, b.Stats())
		require.ErrorIs(t, b.Do(t.Context(), func(context.Context) error { return nil }), ErrFull, "the queue is full")
		wg.Wait()
		assert.True(t, slices.IsSorted(order), order)
		assert.Equal(t, Stats{Max: 2, Queue: 10, Acquired: 12, Rejected: 1}, b.Stats())
	})
}

func TestNobodyOvertakesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := quiet(Config{Max: 1, Queue: 1})
		release := hold(t, b, 1)[0]
		waits := busy(t.Context(), b, 1, time.Second)
		release()
		assert.False(t, b.permits.take(), "the permit is the waiting call's, awake or not")
		assert.Equal(t, []error{nil}, results(waits))
	})
}

// The first in the queue used to leave without waking who was behind it (golang/go#37852).
func TestOneWhoLeavesTheQueueBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := quiet(Config{Max: 1, Queue: 2})
		release := hold(t, b, 1)[0]
		ctx, cancel := context.WithCancel(t.Context())
		first := busy(ctx, b, 1, 0)
		second := busy(t.Context(), b, 1, 0)
		start := time.Now()
		cancel()
		assert.Equal(t, []error{context.Canceled}, results(first))
		assert.Equal(t, 1, b.Stats().Waiting)
		release()
		assert.Equal(t, []error{nil}, results(second))
		assert.Zero(t, time.Since(start))
		assert.Equal(t, Stats{Max: 1, Queue: 2, Acquired: 2, Canceled: 1}, b.Stats())
	})
}

// Each one who gave up took a permit with it (failsafe-lib/failsafe#400).
func TestThoseWhoGiveUpTakeNoPermitsWithThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := quiet(Config{Max: 8, Queue: 100, MaxWait: time.Second})
		running := busy(t.Context(), b, 8, time.Minute)
		waits := busy(t.Context(), b, 100, 0)
		for _, err := range results(waits) {
			require.ErrorIs(t, err, ErrFull)
			require.EqualError(t, err, "bulkhead payments: no permit free (waited 1s)")
		}
		results(running)
		assert.Equal(t, Stats{Max: 8, Queue: 100, Acquired: 8, TimedOut: 100}, b.Stats())
		hold(t, b, 8)
	})
}

func TestMaxWaitZeroWaitsAsLongAsTheContextAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := quiet(Config{Max: 1, Queue: 2})
		release := hold(t, b, 1)[0]
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		short := busy(ctx, b, 1, 0)
		long := busy(t.Context(), b, 1, 0)
		assert.Equal(t, []error{context.DeadlineExceeded}, results(short))
		time.Sleep(1000 * time.Hour)
		release()
		assert.Equal(t, []error{nil}, results(long))
		assert.Equal(t, Stats{Acquired: 2, Canceled: 1}, totals(b))
	})
}

// Permits were lost where a wait's end met a hand-over (afex/hystrix-go#67).
func TestNoPermitIsLostWhereWaitsEndAsCallsDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 2
		b := quiet(Config{Max: limit, Queue: 50, MaxWait: 10 * time.Millisecond})
		var wg sync.WaitGroup
		for i := range 10_000 {
			wg.Go(func() {
				ctx := t.Context()
				if i%3 == 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 10*time.Millisecond)
					defer cancel()
				}
				_ = b.Do(ctx, func(context.Context) error { time.Sleep(10 * time.Millisecond); return nil })
			})
			if i%5 == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
		wg.Wait()
		s := b.Stats()
		assert.False(t, b.InUse(), s)
		assert.EqualValues(t, 10_000, s.Acquired+s.Rejected+s.TimedOut+s.Canceled)
		assert.NotZero(t, s.TimedOut)
		assert.NotZero(t, s.Canceled)
		hold(t, b, limit)
	})
}

// enqueue puts a call in the queue that nobody serves, as one that has not come to look yet.
func (b *Bulkhead) enqueue(t *testing.T) *waitingCall {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	c, took := b.joinLocked(0)
	require.NotNil(t, c)
	require.False(t, took)
	return c
}

func TestAPermitGrantedToOneWhoLeavesGoesOn(t *testing.T) {
	b := quiet(Config{Max: 1, Queue: 2})
	release := hold(t, b, 1)[0]
	first, second := b.enqueue(t), b.enqueue(t)
	release()
	<-first.granted
	ended, end := context.WithCancel(t.Context())
	end()
	assert.Equal(t, context.Canceled, b.await(ended, ended.Done(), first), "both its permit and its end are there")
	<-second.granted
	assert.False(t, b.leave(second), "it holds a permit")
	assert.Equal(t, Stats{Max: 1, Running: 1, Queue: 2, Acquired: 1, Canceled: 1}, b.Stats())
}

// watched is a context that knows whether somebody waits for its end.
type watched struct {
	context.Context
	asked atomic.Bool
}

func (w *watched) Done() <-chan struct{} {
	w.asked.Store(true)
	return w.Context.Done()
}

func TestARefusalAtOnceAsksForNoEndOfTheContext(t *testing.T) {
	b := quiet(Config{Max: 1, Queue: 1})
	hold(t, b, 1)
	b.enqueue(t)
	ctx := &watched{Context: t.Context()}
	require.ErrorIs(t, b.Do(ctx, func(context.Context) error { return nil }), ErrFull)
	assert.False(t, ctx.asked.Load(), "it may set a timer")
}

// silent is a context that has ended when ended says so, but tells nobody unless asked.
type silent struct {
	context.Context
	ended *atomic.Bool
}

func (c silent) Err() error {
	if c.ended.Load() {
		return context.Canceled
	}
	return nil
}

func TestAContextThatEndsWithTheGrantRunsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := quiet(Config{Max: 1, Queue: 1})
		release := hold(t, b, 1)[0]
		ctx := silent{t.Context(), new(atomic.Bool)}
		got := make(chan error)
		go func() {
			got <- b.Do(ctx, func(context.Context) error { t.Error("fn ran"); return nil })
		}()
		synctest.Wait()
		ctx.ended.Store(true)
		release()
		assert.Equal(t, context.Canceled, <-got)
		assert.Equal(t, Stats{Acquired: 1, Canceled: 1}, totals(b))
		assert.False(t, b.InUse())
	})
}

func TestResizeReachesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := quiet(Config{Max: 1, Queue: 10})
		calls := busy(t.Context(), b, 6, time.Minute)
		b.Resize(4)
		synctest.Wait()
		assert.Equal(t, Stats{Max: 4, Running: 4, Queue: 10, Waiting: 2, Acquired: 4}, b.Stats())
		b.Resize(1)
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		assert.Equal(t, Stats{Max: 1, Running: 1, Queue: 10, Waiting: 1, Acquired: 5}, b.Stats(), "four ended, one began")
		results(calls)
		assert.False(t, b.InUse())
	})
}

func TestADeadlineThatIsFarAwayIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := quiet(Config{Max: 1, Queue: 100})
		calls := busy(t.Context(), b, 4, time.Second)
		time.Sleep(1500 * time.Millisecond) // the pace is known
		synctest.Wait()
		ctx, cancel := context.WithDeadline(t.Context(), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
		defer cancel()
		require.NoError(t, b.Do(ctx, func(context.Context) error { return nil }))
		results(calls)
	})
}

func TestAnEntryThatCannotBeServedBeforeItsDeadlineIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := quiet(Config{Max: 1, Queue: 100})
		try := func(within time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			start := time.Now()
			err := b.Do(ctx, func(context.Context) error { return nil })
			if errors.Is(err, ErrFull) {
				assert.Zero(t, time.Since(start), "a refusal comes at once")
			}
			return err
		}
		calls := busy(t.Context(), b, 8, time.Second)
		assert.Equal(t, context.DeadlineExceeded, try(time.Millisecond), "nobody knows the pace yet")
		time.Sleep(3 * time.Second) // three have changed hands, one second each; four wait
		synctest.Wait()
		require.Equal(t, 4, b.Stats().Waiting)
		err := try(4 * time.Second)
		require.ErrorIs(t, err, ErrFull)
		require.EqualError(t, err, "bulkhead payments: no permit free (none expected before the deadline)")
		require.NoError(t, try(5*time.Second))
		results(calls)
		assert.Equal(t, Stats{Acquired: 9, Rejected: 1, Canceled: 1}, totals(b))

		defer hold(t, b, 1)[0]()
		assert.Equal(t, context.DeadlineExceeded, try(time.Millisecond), "with nobody ahead there is nothing to judge by")
		long := busy(t.Context(), b, 1, 0)
		assert.Equal(t, context.DeadlineExceeded, try(time.Millisecond), "the pace of the past is forgotten")
		b.Resize(2)
		results(long)
	})
}

func TestThePaceUnderAnotherMaxIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := quiet(Config{Max: 1, Queue: 100})
		calls := busy(t.Context(), b, 8, time.Second)
		time.Sleep(3 * time.Second)
		synctest.Wait() // one runs, four wait
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		require.ErrorIs(t, b.Do(ctx, func(context.Context) error { return nil }), ErrFull)
		b.Resize(3)
		require.NoError(t, b.Do(ctx, func(context.Context) error { return nil }))
		results(calls)
	})
}

func TestABurstIsNoPace(t *testing.T) {
	var p pace
	p.last = 0
	for i, at := range []time.Duration{900, 900, 900} {
		p.handedOver(at)
		_, known := p.mean(4)
		assert.False(t, known, i)
	}
	p.handedOver(2000)
	mean, known := p.mean(4)
	assert.True(t, known)
	assert.EqualValues(t, 500, mean)
	for range 1000 {
		p.handedOver(p.last + 100)
	}
	mean, _ = p.mean(4)
	assert.InDelta(t, 100, mean, 35, "it follows")
}

func TestAWaitIsNotTakenFromTheTimeoutFurtherIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := quiet(Config{Max: 1, Queue: 1})
		release := hold(t, b, 1)[0]
		p := policy.NewPipeline("p", b, policy.Timeout(time.Second)).Observed(observe.Discard)
		time.AfterFunc(time.Minute, release)
		require.NoError(t, p.Do(t.Context(), func(ctx context.Context) error {
			time.Sleep(900 * time.Millisecond)
			return ctx.Err()
		}))
		assert.ErrorIs(t, p.Do(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return io.EOF }), policy.ErrTimeout)
	})
}

func TestAnObserverThatPanicsOnAWaitLosesNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &recorder.Recorder{OnMeasure: func() { panic("observer") }}
		b := New("payments", Config{Max: 1, Queue: 1, MaxWait: time.Minute, Observer: o})
		do := func() (p any) {
			defer func() { p = recover() }()
			return b.Do(t.Context(), func(context.Context) error { t.Error("fn ran"); return nil })
		}
		release := hold(t, b, 1)[0]
		time.AfterFunc(time.Second, release)
		assert.Equal(t, "observer", do(), "on a grant")
		assert.False(t, b.InUse())
		defer hold(t, b, 1)[0]()
		assert.Equal(t, "observer", do(), "on a refusal")
		assert.Equal(t, Stats{Max: 1, Running: 1, Queue: 1, Acquired: 3, TimedOut: 1}, b.Stats())
	})
}
