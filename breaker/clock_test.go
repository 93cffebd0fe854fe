package breaker

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

func TestAClockThatStepsBackStandsStill(t *testing.T) {
	b := newBed(Config{MinCalls: 2, SlowCall: time.Second})
	b.advance(time.Hour)
	b.fail(2)
	b.at(0)
	assert.Equal(t, Open, b.State())
	assert.Equal(t, start.Add(time.Hour), b.Stats().Since)
	assert.Zero(t, b.Stats().OpenFor)
	b.at(time.Hour + 3*time.Second)
	assert.Equal(t, 3*time.Second, b.Stats().OpenFor)
	b.at(time.Hour + 2*time.Second)
	assert.Equal(t, 3*time.Second, b.Stats().OpenFor)
	b.at(time.Hour + 5*time.Second)
	assert.Equal(t, HalfOpen, b.State())
	b.at(time.Hour)
	assert.Equal(t, HalfOpen, b.State())
	probe := b.allow(t)
	b.at(0)
	probe.Done(nil)
	assert.Equal(t, Closed, b.State())
	assert.Equal(t, 5*time.Second, b.Stats().OpenFor)
}

func TestAClockMayLeapFurtherThanADurationReaches(t *testing.T) {
	var now time.Time // not set yet
	b := New("payments-api", Config{Consecutive: 1, Jitter: -1, Clock: func() time.Time { return now }, Observer: observe.Discard})
	fail := func() { _ = b.Do(context.Background(), func(context.Context) error { return errDown }) }
	for range 2 { // a third time would reach the end of time
		fail()
		require.Equal(t, Open, b.State())
		now = now.AddDate(2000, 0, 0)
		require.Equal(t, HalfOpen, b.State())
		b.Reset()
		fail()
		require.Equal(t, now.Add(5*time.Second), b.Stats().Until)
		now = now.Add(5*time.Second - 1)
		require.Equal(t, Open, b.State())
		now = now.Add(1)
		require.Equal(t, HalfOpen, b.State())
		b.Reset()
	}
}

func TestAtTheEndOfTimeABreakerStandsStill(t *testing.T) {
	b := newBed(Config{Consecutive: 1})
	b.at(math.MaxInt64)
	b.fail(1)
	assert.Equal(t, Open, b.State())
	assert.True(t, b.refuses())
	b.Probe()
	b.allow(t).Done(nil)
	assert.Equal(t, Closed, b.State())
	assert.Equal(t, Closed, b.Stats().State)
}

func TestAnAdmissionThatReadTheClockBeforeTheStateBeganCountsFromThere(t *testing.T) {
	b := newBed(Config{ProbeTimeout: 30 * time.Second})
	b.Trip()
	b.at(4 * time.Second)
	b.Probe()
	_, err := b.admit(context.Background(), 3*time.Second)
	require.NoError(t, err)
	b.at(34*time.Second - 1)
	assert.Equal(t, HalfOpen, b.State())
	b.at(34 * time.Second)
	assert.Equal(t, Open, b.State())
}

func TestARefusalIsNotToldOfATimeBeforeWhatRefuses(t *testing.T) {
	b := newBed(Config{})
	b.at(4 * time.Second)
	for _, open := range []func(){b.Trip, b.ForceOpen} {
		open()
		_, err := b.admit(context.Background(), 3*time.Second) // the clock was read before
		require.ErrorIs(t, err, ErrCircuitOpen)
		assert.Equal(t, start.Add(4*time.Second), b.events[len(b.events)-1].Time)
	}
}

func TestWithoutAClockTimeIsTheProcesss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New("payments-api", Config{Cooldown: time.Second, Jitter: -1, Observer: observe.Discard})
		begin := time.Now()
		b.Trip()
		err := b.Do(t.Context(), func(context.Context) error { return nil })
		wait, ok := policy.RetryAfter(err)
		assert.True(t, ok)
		assert.Equal(t, time.Second, wait)
		time.Sleep(time.Second - 1)
		assert.Equal(t, Open, b.State())
		time.Sleep(time.Nanosecond)
		assert.Equal(t, HalfOpen, b.State())
		assert.WithinDuration(t, begin.Add(time.Second), b.Stats().Since, 0)
		require.NoError(t, b.Do(t.Context(), func(context.Context) error { time.Sleep(30*time.Second - 1); return nil }))
		assert.Equal(t, Closed, b.State())
	})
}

func TestTheLongestSlowCallIsNeverReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where instants are below 0
		b := New("payments-api", Config{SlowCall: math.MaxInt64, MinCalls: 1, Observer: observe.Discard})
		for range 2 {
			require.NoError(t, b.Do(t.Context(), func(context.Context) error {
				assert.Zero(t, b.Stats().Slow)
				return nil
			}))
		}
	})
}
