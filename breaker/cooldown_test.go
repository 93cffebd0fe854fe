package breaker

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy"
)

func TestEachReopeningWaitsLongerUpToTheLimit(t *testing.T) {
	b := newBed(Config{Cooldown: time.Second, MaxCooldown: 10 * time.Second})
	b.Trip()
	var waits []time.Duration
	for range 6 {
		waits = append(waits, b.Stats().Cooldown)
		b.advance(b.Stats().Cooldown)
		b.fail(1)
	}
	assert.Equal(t, []time.Duration{1e9, 2e9, 4e9, 8e9, 10e9, 10e9}, waits)
	assert.Equal(t, 6, b.Stats().Reopenings)
	b.advance(10 * time.Second)
	b.succeed(1)
	require.Equal(t, Closed, b.State())
	b.Trip()
	assert.Equal(t, 10*time.Second, b.Stats().Cooldown, "closing alone forgets nothing")
	b.advance(10 * time.Second)
	b.succeed(1)
	b.advance(19 * time.Second)
	b.Trip()
	assert.Equal(t, 8*time.Second, b.Stats().Cooldown, "one step is forgotten for each MaxCooldown closed")
	b.advance(8 * time.Second)
	b.succeed(1)
	b.advance(20 * time.Second)
	b.Trip()
	assert.Equal(t, 4*time.Second, b.Stats().Cooldown)
	b.Reset()
	b.Trip()
	assert.Equal(t, time.Second, b.Stats().Cooldown, "a reset forgets all")
}

func TestAFlappingBreakerWaitsLonger(t *testing.T) {
	b := newBed(Config{Cooldown: time.Second})
	for _, want := range []time.Duration{1e9, 2e9, 4e9} {
		b.Trip()
		assert.Equal(t, want, b.Stats().Cooldown)
		b.advance(want)
		b.succeed(1)
		b.advance(time.Second)
	}
}

// The reports: cenkalti/backoff#117 (jitter above the limit), google/adk-js#704 (piled up at the limit).
func TestWaitsAreSpreadAroundTheirMiddleAndNeverAboveTheLimit(t *testing.T) {
	cfg := Config{Jitter: .5}.resolved()
	lowest, highest, atLimit := time.Hour, time.Duration(0), 0
	for i := range 1000 {
		draw := float64(i) / 1000
		assert.InDelta(t, 5*time.Second, cfg.cooldown(0, draw), 2.5e9)
		wait := cfg.cooldown(1000, draw)
		lowest, highest = min(lowest, wait), max(highest, wait)
		if wait == cfg.MaxCooldown {
			atLimit++
		}
	}
	assert.Equal(t, 30*time.Second, lowest)
	assert.LessOrEqual(t, highest, time.Minute)
	assert.Greater(t, highest, 59*time.Second)
	assert.LessOrEqual(t, atLimit, 1)

	seen := map[time.Duration]bool{}
	for range 10 {
		b := newBed(Config{Jitter: .2})
		b.Trip()
		seen[b.Stats().Cooldown] = true
	}
	assert.Greater(t, len(seen), 1, "each breaker draws its own")
}

func TestLookingTwiceSeesTheSameWait(t *testing.T) {
	b := newBed(Config{Jitter: .5, ProbeTimeout: time.Second})
	b.halfOpen(t)
	b.allow(t)
	b.advance(time.Second)
	until := b.Stats().Until
	require.False(t, until.IsZero())
	for range 10 {
		assert.Equal(t, until, b.Stats().Until)
	}
	b.Trip() // does nothing, but makes the change that time has brought
	assert.Equal(t, until, b.Stats().Until)
}

func TestHugeDurationsDoNotOverflow(t *testing.T) {
	const ages = 290 * 365 * 24 * time.Hour
	b := newBed(Config{Window: ages, Cooldown: ages, MaxCooldown: ages, ProbeTimeout: ages, RampUp: ages, SlowCall: ages, Growth: 1e300})
	for range 3 {
		b.advance(time.Second)
		b.Trip()
		b.Probe()
		b.allow(t)
		b.Probe()
		assert.Equal(t, HalfOpen, b.State())
	}
	b.at(ages)
	assert.Equal(t, HalfOpen, b.State())
}

func TestAServersHintOpensTheBreakerAtOnceForThatLong(t *testing.T) {
	b := newBed(Config{MaxCooldown: time.Minute, TripOn: func(err error) (time.Duration, bool) {
		hint := hintError(0)
		return time.Duration(hint), errors.As(err, &hint) && hint >= 0
	}})
	for _, tt := range []struct{ hint, want time.Duration }{{20 * time.Second, 20 * time.Second}, {24 * time.Hour, time.Minute}, {-1, 0}} {
		b.Reset()
		b.told()
		b.end(1, hintError(tt.hint))
		if tt.want == 0 {
			assert.Equal(t, Closed, b.State())
			continue
		}
		assert.Equal(t, Open, b.State())
		assert.Equal(t, tt.want, b.Stats().Cooldown)
		assert.Contains(t, b.told(), "closed→open hint")
	}
	b.end(1, policy.Healthy(hintError(time.Second)))
	assert.Equal(t, Closed, b.State(), "only a failure is asked about")
	b.halfOpen(t)
	b.end(1, hintError(7*time.Second))
	assert.Equal(t, 7*time.Second, b.Stats().Cooldown, "a probe is asked about too")
	assert.Contains(t, b.told(), "half_open→open hint")
}

type hintError time.Duration

func (h hintError) Error() string { return "come back later" }
