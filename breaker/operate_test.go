package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// The report: danielfm/pybreaker and others keep counting after a reset; opencodex#4728, replicator#190.
func TestAResetForgetsEverything(t *testing.T) {
	b := newBed(Config{MinCalls: 5, Failures: 5, Consecutive: 5, FailureRatio: 1})
	b.fail(5)
	b.Reset()
	s := b.Stats()
	assert.Zero(t, s.Calls+s.Failed+s.Slow+s.Probing+s.Reopenings)
	b.fail(4)
	assert.Equal(t, Closed, b.State())
	b.told()
	since := b.Stats().Since
	b.advance(time.Second)
	running := b.allow(t)
	b.Reset()
	assert.Empty(t, b.told(), "no change, no event")
	assert.Zero(t, b.Stats().Failed)
	running.Done(errDown)
	assert.Zero(t, b.Stats().Failed, "what ran before counts no more")
	assert.Equal(t, since, b.Stats().Since)
	b.fail(4)
	assert.Equal(t, Closed, b.State())
	b.fail(1)
	assert.Equal(t, Open, b.State())
}

func TestForcedStatesHoldUntilReset(t *testing.T) {
	b := newBed(Config{MinCalls: 1})
	b.ForceOpen()
	b.advance(1000 * time.Hour)
	err := b.call(nil)
	require.ErrorIs(t, err, ErrCircuitOpen)
	refusal := new(policy.RejectedError)
	require.ErrorAs(t, err, &refusal)
	assert.True(t, refusal.RetryAt.IsZero(), "nobody knows when")
	b.Trip()
	assert.Equal(t, ForcedOpen, b.State())
	b.ForceClosed()
	b.fail(100)
	b.Trip()
	b.Probe()
	assert.Equal(t, ForcedClosed, b.State())
	assert.Equal(t, 100, b.Stats().Failed)
	b.Reset()
	assert.Equal(t, Closed, b.State())
	assert.Zero(t, b.Stats().Failed)
}

func TestAManualProbeEndsAForcedOpening(t *testing.T) {
	b := newBed(Config{})
	b.ForceOpen()
	b.Probe()
	assert.Equal(t, HalfOpen, b.State())
	b.succeed(1)
	assert.Equal(t, Closed, b.State())
	b.Probe()
	assert.Equal(t, Closed, b.State())
}

func TestOperatorsFirstSeeWhatTimeHasDecided(t *testing.T) {
	b := newBed(Config{Cooldown: time.Second})
	b.Trip()
	b.told()
	b.advance(10 * time.Second)
	b.Trip()
	assert.Equal(t, "1s open→half_open cooldown_elapsed, 10s half_open→open manual", b.told())
	assert.Equal(t, time.Second, b.Stats().OpenFor)
	assert.Equal(t, 1, b.Stats().Reopenings)
}

func TestAShadowBreakerJudgesAndRefusesNothing(t *testing.T) {
	b := newBed(Config{Shadow: true, MinCalls: 2, Cooldown: time.Second})
	b.fail(2)
	assert.Equal(t, Open, b.State())
	b.fail(3)
	assert.EqualValues(t, 3, b.row("switchgear.circuit_breaker.would_reject"))
	assert.EqualValues(t, 3, b.row("switchgear.circuit_breaker.calls", "open", "failure"))
	assert.Zero(t, b.Stats().Rejected)
	b.advance(time.Second)
	probe := b.allow(t)
	b.fail(3)
	assert.Equal(t, HalfOpen, b.State(), "only probes are judged")
	probe.Done(nil)
	assert.Equal(t, Closed, b.State())
	b.ForceOpen()
	require.NoError(t, b.call(nil))
	for _, e := range b.events {
		assert.Equal(t, observe.StateChange, e.Kind)
	}
}

func TestARampUpInShadowModeRefusesNothing(t *testing.T) {
	b := newBed(Config{Shadow: true, RampUp: time.Minute})
	b.halfOpen(t)
	b.succeed(1)
	b.succeed(20)
	assert.EqualValues(t, 18, b.row("switchgear.circuit_breaker.would_reject"))
	assert.Equal(t, 20, b.Stats().Calls, "all of them are judged")
}
