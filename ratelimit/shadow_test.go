package ratelimit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/switchgear-go/switchgear/internal/recorder"
	"github.com/switchgear-go/switchgear/policy/observe"
)

func TestShadowRefusesAndDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &recorder.Recorder{}
		l := New("search", Config{Rate: 1, Burst: 1, MaxWait: 2 * time.Second, Shadow: true, Observer: o})
		start := time.Now()
		for range 5 {
			require.NoError(t, l.Do(t.Context(), succeed))
		}
		assert.Zero(t, time.Since(start))
		assert.Equal(t, Stats{Rate: 1, Burst: 1, Acquired: 5, WouldReject: 2}, l.Stats(), "one now, two would wait")
		assert.Empty(t, o.Events, "nothing was rejected")
		assert.EqualValues(t, 2, o.Rows(t)["switchgear.rate_limiter.would_reject"])
		time.Sleep(time.Second)
		require.NoError(t, l.Allow(t.Context()))
		assert.EqualValues(t, 2, l.Stats().WouldReject, "there is room for one to wait again")
		l.SetRate(0)
		assert.EqualValues(t, 4, l.Stats().WouldReject, "those who would wait now would wait for ever")
		require.NoError(t, l.Allow(t.Context()))
		l.SetRate(0)
		assert.EqualValues(t, 5, l.Stats().WouldReject)
		assert.True(t, l.InUse())
	})
}

func TestAChangeOfTheRateComesAfterTheTokensThatWereDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := quiet(Config{Rate: 1, Burst: 1, MaxWait: 2 * time.Second, Shadow: true})
		three := func() {
			for range 3 { // one now, two would wait
				assert.NoError(t, l.Allow(t.Context()))
			}
		}
		three()
		time.Sleep(2 * time.Second)
		l.SetRate(1)
		time.Sleep(time.Second)
		three()
		assert.Zero(t, l.Stats().WouldReject)
	})
}

// A rehearsal tells what would happen: as many as a limiter that means it refuses of the same calls.
func TestShadowIsLikeTheRealThing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{
			Rate:     rapid.SampledFrom(someRates).Draw(rt, "rate"),
			Burst:    rapid.IntRange(1, 3).Draw(rt, "burst"),
			MaxWait:  tick * time.Duration(rapid.SampledFrom([]int{-1, 0, 20, 64, 200}).Draw(rt, "maxWait")),
			Observer: observe.Discard,
		}
		steps := drawSteps(rt, "arrive", "hurry", "pass")
		var got, want Stats
		synctest.Test(t, func(*testing.T) {
			want = only(cfg, steps)
			cfg.Shadow = true
			got = only(cfg, steps)
		})
		if got.WouldReject != want.Rejected || got.Available != want.Available || got.Rejected != 0 || got.Acquired != want.Acquired+want.Rejected {
			rt.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

// only plays steps with a new limiter and lets the waiting ones finish.
func only(cfg Config, steps []step) Stats {
	l := New("played", cfg)
	var cancels []context.CancelFunc
	for _, s := range steps {
		ctx, cancel := context.WithCancel(context.Background())
		switch s.what {
		case "hurry":
			ctx, cancel = context.WithTimeout(ctx, time.Duration(1+s.n)*tick)
			fallthrough
		case "arrive":
			go func() { _ = l.Allow(ctx) }()
		case "pass":
			time.Sleep(time.Duration(s.n) * tick / 4)
		}
		cancels = append(cancels, cancel)
		synctest.Wait()
	}
	time.Sleep(time.Hour)
	synctest.Wait()
	_ = l.InUse()
	l.SetRate(cfg.Rate) // shadowed calls take their tokens at the next operation
	for _, cancel := range cancels {
		cancel()
	}
	return l.Stats()
}
