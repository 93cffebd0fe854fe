package ratelimit

import (
	"context"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/internal/recorder"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

func TestItReportsWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &recorder.Recorder{}
		l := New("search", Config{Rate: 1, Burst: 3, MaxWait: 2 * time.Second, Observer: o})
		assert.Equal(t, "rate_limiter", o.Source.Policy)
		assert.Equal(t, "search", o.Source.Name)
		assert.Equal(t, map[string]int64{
			"switchgear.rate_limiter.calls acquired": 0, "switchgear.rate_limiter.calls rejected": 0, "switchgear.rate_limiter.calls canceled": 0,
			"switchgear.rate_limiter.available": 3, "switchgear.rate_limiter.limit": 3,
		}, o.Rows(t), "all at zero from the start")
		for range 3 {
			require.NoError(t, l.Allow(t.Context()))
		}

		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "caller")
		p := policy.NewPipeline("find", l).Observed(observe.Discard)
		leaving, leave := context.WithCancel(t.Context())
		first, second := come(t.Context(), l, 1), come(leaving, l, 1)
		refusedAt := time.Now()
		refusal := p.Do(ctx, succeed)
		require.ErrorIs(t, refusal, ErrLimited)
		time.Sleep(500 * time.Millisecond)
		leave()
		assert.Equal(t, context.Canceled, <-second)
		require.NoError(t, <-first)
		third := come(t.Context(), l, 1)
		time.Sleep(250 * time.Millisecond)
		l.SetRate(0)
		require.ErrorIs(t, <-third, ErrLimited)

		require.Len(t, o.Events, 2)
		assert.Equal(t, observe.Event{
			Kind: observe.Rejected, Policy: "rate_limiter", Name: "search", Pipeline: "find", Reason: "rejected", Err: refusal, Time: refusedAt,
		}, o.Events[0])
		assert.Equal(t, "caller", o.Contexts[0].Value(key{}))
		assert.Equal(t, map[string][]time.Duration{
			"switchgear.rate_limiter.wait.duration acquired": {time.Second},
			"switchgear.rate_limiter.wait.duration canceled": {500 * time.Millisecond},
			"switchgear.rate_limiter.wait.duration rejected": {250 * time.Millisecond},
		}, o.Waits)
		assert.Equal(t, map[string]int64{
			"switchgear.rate_limiter.calls acquired": 4, "switchgear.rate_limiter.calls rejected": 2, "switchgear.rate_limiter.calls canceled": 1,
			"switchgear.rate_limiter.available": 0, "switchgear.rate_limiter.limit": 3,
		}, o.Rows(t))
	})
}

func TestWhoTellsOfItsWaitHasLeftTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &recorder.Recorder{}
		l := New("search", Config{Rate: 1, MaxWait: forEver, Observer: o})
		told := 0
		o.OnMeasure = func() {
			told++
			assert.Zero(t, l.Stats().Waiting)
		}
		require.NoError(t, l.Allow(t.Context()))
		require.NoError(t, l.Allow(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		waits := come(ctx, l, 1)
		cancel()
		assert.Equal(t, context.Canceled, <-waits)
		waits = come(t.Context(), l, 1)
		l.SetRate(0)
		require.ErrorIs(t, <-waits, ErrLimited)
		assert.Equal(t, 3, told)
	})
}

func TestTokensAreRoundedDown(t *testing.T) {
	clock := newHands()
	o := &recorder.Recorder{}
	l := New("search", Config{Rate: 10, Burst: 5, Clock: clock.read, Observer: o})
	for range 5 {
		require.NoError(t, l.Allow(t.Context()))
	}
	for i, want := range []int64{0, 0, 1, 2, 2, 3} {
		assert.Equal(t, want, o.Rows(t)["switchgear.rate_limiter.available"], i)
		clock.move(time.Duration([]int{90, 10, 100, 99, 1, 0}[i]) * time.Millisecond)
	}
	assert.Equal(t, event(t, o, l, clock), clock.now, "events tell the time of the limiter's clock")

	l = New("search", Config{Rate: math.Inf(1), Burst: 5, Observer: o})
	require.NoError(t, l.Allow(t.Context()))
	assert.EqualValues(t, 5, o.Rows(t)["switchgear.rate_limiter.available"])
	runtime.KeepAlive(l)
}

func event(t *testing.T, o *recorder.Recorder, l *Limiter, clock *hands) time.Time {
	t.Helper()
	for l.Allow(t.Context()) == nil {
		clock.move(time.Millisecond)
	}
	return o.Events[len(o.Events)-1].Time
}

func TestADroppedLimiterIsFreed(t *testing.T) {
	o := &recorder.Recorder{}
	func() { require.NoError(t, New("search", Config{Rate: 1, Observer: o}).Allow(t.Context())) }()
	for range 20 {
		runtime.GC()
	}
	assert.False(t, o.Source.Live(make([]int64, 2)))
	assert.EqualValues(t, 1, o.Source.Counts[0].Load(), "its counts stay")
}
