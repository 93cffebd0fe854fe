package breaker

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// threeInTenMinutes opens for five minutes at three failures in ten.
var threeInTenMinutes = Config{Window: 10 * time.Minute, Failures: 3, FailureRatio: -1, Cooldown: 5 * time.Minute, Growth: 1, Jitter: -1}

func TestFailuresCountByTheirExactTimes(t *testing.T) {
	const m = time.Minute
	tests := []struct {
		name     string
		failures []time.Duration
		want     State
	}{
		{"within the window by a second", []time.Duration{0, 5 * m, 9*m + 59*time.Second}, Open},
		{"within the window by a nanosecond", []time.Duration{0, 5 * m, 10*m - 1}, Open},
		{"at its very end", []time.Duration{0, 5 * m, 10 * m}, Closed},
		{"spread over twelve minutes", []time.Duration{0, 6 * m, 12 * m}, Closed},
		{"close together", []time.Duration{0, m, 2 * m}, Open},
		{"close together, after one long ago", []time.Duration{0, 20 * m, 21 * m, 29 * m}, Open},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed(threeInTenMinutes)
			for _, at := range tt.failures {
				b.at(at)
				require.Equal(t, Closed, b.State())
				b.fail(1)
			}
			assert.Equal(t, tt.want, b.State())
		})
	}
}

func TestOneCallAMinuteThroughAnOutage(t *testing.T) {
	b := newBed(threeInTenMinutes)
	got := ""
	for minute := range 21 {
		b.at(time.Duration(minute) * time.Minute)
		var fault error
		if minute >= 3 && minute <= 12 {
			fault = errDown
		}
		switch err := b.call(fault); {
		case err == nil:
			got += "o"
		case errors.Is(err, ErrCircuitOpen):
			got += "-"
		default:
			got += "x"
		}
	}
	assert.Equal(t, "oooxxx----x----oooooo", got)
	assert.EqualValues(t, 8, b.Stats().Rejected)
	assert.Equal(t, strings.Join([]string{
		"5m0s closed→open failure_count",
		"10m0s open→half_open cooldown_elapsed",
		"10m0s half_open→open probe_failed",
		"15m0s open→half_open cooldown_elapsed",
		"15m0s half_open→closed probe_succeeded",
	}, ", "), b.told())
}

// The report: vert-x3/vertx-circuit-breaker#24.
func TestOldFailuresDoNotOpenABreaker(t *testing.T) {
	b := newBed(Config{Failures: 5, Window: 10 * time.Second})
	b.fail(4)
	assert.Equal(t, 4, b.Stats().Failed)
	b.advance(11 * time.Second)
	assert.Equal(t, 0, b.Stats().Failed, "without any call: gofiber/contrib#1990")
	b.fail(1)
	assert.Equal(t, Closed, b.State())
	assert.Equal(t, 1, b.Stats().Failed)
}

func TestAfterTheCooldownOneCallOfThreeGetsThrough(t *testing.T) {
	for _, tt := range []struct {
		name   string
		result error
		want   State
	}{{"a good probe closes", nil, Closed}, {"a failed one opens again", errDown, Open}} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed(Config{MinCalls: 5})
			b.fail(5)
			require.Equal(t, Open, b.State())
			b.advance(5*time.Second - 1)
			assert.True(t, b.refuses(), "a nanosecond before the cooldown ends")
			b.advance(1)
			probe := b.allow(t)
			assert.True(t, b.refuses())
			assert.True(t, b.refuses())
			probe.Done(tt.result)
			assert.Equal(t, tt.want, b.State())
			if tt.want == Closed {
				assert.Zero(t, b.Stats().Calls, "the window is cleared")
				b.fail(4)
				assert.Equal(t, Closed, b.State(), "and a lone failure opens nothing")
			}
		})
	}
}

// The reports: github/gh-aw-mcpg#10686, afreidah/s3-orchestrator#424, maverick-mcp#272.
func TestHoweverAProbeEndsItsSlotIsFreeAgain(t *testing.T) {
	tests := []struct {
		name string
		fn   policy.Func
		want State
	}{
		{"success", func(context.Context) error { return nil }, Closed},
		{"a healthy error", func(context.Context) error { return policy.Healthy(errDown) }, Closed},
		{"failure", func(context.Context) error { return errDown }, Open},
		{"a deadline", func(context.Context) error { return context.DeadlineExceeded }, Open},
		{"a refusal further in", func(context.Context) error { return policy.ErrRejected }, HalfOpen},
		{"the caller gives up", func(ctx context.Context) error {
			ctx.Value(cancelKey{}).(context.CancelFunc)()
			return ctx.Err()
		}, HalfOpen},
		{"the caller gives up and fn says something else", func(ctx context.Context) error {
			ctx.Value(cancelKey{}).(context.CancelFunc)()
			return errDown
		}, HalfOpen},
		{"panic", func(context.Context) error { panic("ouch") }, Open},
		{"Goexit", func(context.Context) error { runtime.Goexit(); return nil }, Open},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed(Config{Cooldown: time.Second, Growth: 1})
			b.halfOpen(t)
			apart(func() {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				_ = b.Do(context.WithValue(ctx, cancelKey{}, cancel), func(ctx context.Context) error {
					assert.Equal(t, 1, b.Stats().Probing)
					assert.True(t, b.refuses())
					return tt.fn(ctx)
				})
			})
			assert.Equal(t, tt.want, b.State())
			assert.Zero(t, b.Stats().Probing)
			b.advance(time.Second)
			assert.False(t, b.refuses(), "a later call is let through")
		})
	}
}

type cancelKey struct{}

// apart runs f on a goroutine of its own, which may panic or exit.
func apart(f func()) {
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		defer func() { _ = recover() }()
		f()
	}()
	wg.Wait()
}

// The reports: pyfailsafe#31, and the herd of 50 that some libraries let through.
func TestOfFiftyCallersAtAHalfOpenBreakerOneGetsThrough(t *testing.T) {
	b := newBed(Config{})
	b.halfOpen(t)
	var ran, refused atomic.Int32
	ready, others := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			<-ready
			err := b.Do(context.Background(), func(context.Context) error {
				ran.Add(1)
				<-others // until all the others are refused
				return nil
			})
			if errors.Is(err, ErrCircuitOpen) && refused.Add(1) == 49 {
				close(others)
			}
		})
	}
	close(ready)
	wg.Wait()
	assert.EqualValues(t, 1, ran.Load())
	assert.EqualValues(t, 49, refused.Load())
	assert.Equal(t, Closed, b.State())
}

// The report: sony/gobreaker#53.
func TestSoManyProbesRunAsAreAllowed(t *testing.T) {
	cfg := Config{Probes: 5, ProbeSuccesses: 5, Cooldown: time.Second, Growth: 1}
	b := newBed(cfg)
	b.halfOpen(t)
	var permits []*Permit
	for range 5 {
		permits = append(permits, b.allow(t))
	}
	assert.True(t, b.refuses())
	for i, p := range permits {
		assert.Equal(t, HalfOpen, b.State(), "after %d successes", i)
		p.Done(nil)
	}
	assert.Equal(t, Closed, b.State())

	b = newBed(cfg)
	b.halfOpen(t)
	b.fail(1)
	assert.Equal(t, Open, b.State())
	err := b.call(nil)
	require.ErrorIs(t, err, ErrCircuitOpen)
	assert.Contains(t, err.Error(), "circuit open (probe_failed: down)")
}

// The report: danielfm/pybreaker#96.
func TestALuckySuccessDoesNotCloseABreakerThatAsksForThree(t *testing.T) {
	b := newBed(Config{ProbeSuccesses: 3, Cooldown: time.Second, Growth: 1})
	b.halfOpen(t)
	b.succeed(2)
	assert.Equal(t, HalfOpen, b.State())
	b.fail(1)
	assert.Equal(t, Open, b.State())
	b.advance(time.Second)
	b.succeed(2)
	assert.Equal(t, HalfOpen, b.State(), "counting begins anew")
	b.succeed(1)
	assert.Equal(t, Closed, b.State())
}

// The report: diegosouzapw/OmniRoute#13836.
func TestAProbeThatHangsHasFailedWhenItsLeaseEnds(t *testing.T) {
	b := newBed(Config{Cooldown: 10 * time.Second, Growth: 1, ProbeTimeout: 30 * time.Second})
	b.Trip()
	b.at(12 * time.Second)
	probe := b.allow(t)
	b.told()
	b.at(42*time.Second - 1)
	assert.Equal(t, HalfOpen, b.State())
	b.at(47 * time.Second)
	assert.Equal(t, Open, b.State(), "though nobody has called")
	s := b.Stats()
	assert.Equal(t, start.Add(42*time.Second), s.Since)
	assert.Equal(t, start.Add(52*time.Second), s.Until)
	assert.Zero(t, s.Probing)
	assert.Empty(t, b.told(), "looking tells nothing")
	b.at(58 * time.Second) // the next cooldown has ended too
	second := b.allow(t)
	assert.Equal(t, "42s half_open→open probe_timeout, 52s open→half_open cooldown_elapsed", b.told())
	probe.Done(nil)
	assert.Equal(t, HalfOpen, b.State(), "the old probe's result comes too late")
	assert.Equal(t, 1, b.Stats().Probing)
	assert.EqualValues(t, 1, b.Stats().Late)
	second.Done(nil)
	assert.Equal(t, Closed, b.State())
}

func TestTheFirstOfSeveralLeasesToEndOpensTheBreaker(t *testing.T) {
	b := newBed(Config{Probes: 3, ProbeSuccesses: 3, ProbeTimeout: 10 * time.Second})
	b.halfOpen(t)
	first := b.allow(t)
	b.advance(time.Second)
	second := b.allow(t)
	b.advance(time.Second)
	b.allow(t)
	first.Done(nil)
	b.advance(9*time.Second - 1)
	assert.Equal(t, HalfOpen, b.State())
	b.advance(1)
	second.Done(nil) // it found its own end
	assert.Equal(t, Open, b.State())
	assert.Equal(t, "5s open→half_open cooldown_elapsed, 16s half_open→open probe_timeout", b.told())
}

// The reports: telekom/k8s-breakglass#981, denoland/std#7306, monix#1101, kora#475.
func TestAResultFromAnEarlierStayChangesNothing(t *testing.T) {
	for _, result := range []error{nil, errDown} {
		b := newBed(Config{Probes: 2, ProbeSuccesses: 2, Cooldown: time.Minute, MinCalls: 2})
		early := b.allow(t)
		b.halfOpen(t)
		old := b.allow(t)
		b.ForceOpen()
		b.Probe()
		probes := []*Permit{b.allow(t)}
		before := b.Stats()
		old.Done(result)
		early.Done(result)
		after := b.Stats()
		assert.EqualValues(t, 2, after.Late)
		before.Late = after.Late
		assert.Equal(t, before, after)
		probes = append(probes, b.allow(t))
		assert.True(t, b.refuses(), "still two at most")
		for _, p := range probes {
			p.Done(nil)
		}
		assert.Equal(t, Closed, b.State())
	}

	b := newBed(Config{MinCalls: 2})
	slow := b.allow(t)
	b.fail(2)
	until := b.Stats().Until
	b.advance(time.Second)
	slow.Done(nil)
	assert.Equal(t, Open, b.State(), "a late success closes nothing")
	assert.Equal(t, until, b.Stats().Until)
}

// The reports: cerberus#738, rubyist/circuitbreaker#42, go-zero#1545.
func TestAHundredCallersWhoGiveUpChangeNothing(t *testing.T) {
	b := newBed(Config{MinCalls: 5, Consecutive: 5, FailureRatio: .5})
	b.succeed(3)
	b.fail(1)
	before := b.Stats()
	ctx, cancel := context.WithCancel(context.Background())
	var permits []*Permit
	for range 100 {
		p, err := b.Allow(ctx)
		require.NoError(t, err)
		permits = append(permits, p)
	}
	cancel()
	for i, p := range permits {
		p.Done([]error{context.Canceled, errDown, policy.ErrRejected, errors.New("write: broken pipe")}[i%4])
	}
	assert.Equal(t, before, b.Stats())
	assert.EqualValues(t, 100, b.row("switchgear.circuit_breaker.calls", "closed", "ignored"))

	b.fail(1)
	assert.Equal(t, Closed, b.State())
	require.ErrorIs(t, b.Do(ctx, func(context.Context) error { panic("runs") }), context.Canceled, "a caller who has gone already")
	_, err := b.Allow(ctx)
	require.ErrorIs(t, err, context.Canceled)
	b.ForceOpen()
	assert.NotErrorIs(t, b.Do(ctx, func(context.Context) error { panic("runs") }), ErrCircuitOpen, "its error comes before any refusal")
}

// The report: go-zero#4091.
func TestACallWhoseDeadlineHasPassedDoesNotRunAndCountsNowhere(t *testing.T) {
	b := newBed(Config{MinCalls: 1})
	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	require.ErrorIs(t, b.Do(ctx, func(context.Context) error { panic("runs") }), context.DeadlineExceeded)
	for i := range b.source.Counts {
		assert.LessOrEqual(t, b.source.Counts[i].Load(), int64(0), "row %d", i)
	}
}

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
		luck := float64(i) / 1000
		assert.InDelta(t, 5*time.Second, cfg.cooldown(0, luck), 2.5e9)
		wait := cfg.cooldown(1000, luck)
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

func TestATotalHangOpensTheBreakerBeforeAnythingCompletes(t *testing.T) {
	b := newBed(Config{SlowCall: 2 * time.Second, MinCalls: 5})
	var permits []*Permit
	for range 5 {
		permits = append(permits, b.allow(t))
	}
	b.advance(2*time.Second - 1)
	permits = append(permits, b.allow(t))
	assert.Zero(t, b.Stats().Slow)
	b.advance(1)
	assert.Equal(t, 5, b.Stats().Slow)
	assert.True(t, b.refuses())
	require.Len(t, b.events, 2)
	assert.Equal(t, reasonSlowRatio, b.events[0].Reason)
	assert.InDelta(t, 1, b.events[0].Ratio, 0)
	assert.Equal(t, 5, b.events[0].Calls)
	for _, p := range permits {
		p.Done(nil)
	}
	assert.EqualValues(t, 6, b.Stats().Late)
	assert.Equal(t, Open, b.State())
}

func TestASlowProbeDoesNotCloseTheBreaker(t *testing.T) {
	b := newBed(Config{SlowCall: time.Second})
	b.halfOpen(t)
	probe := b.allow(t)
	b.advance(time.Second)
	probe.Done(nil)
	assert.Equal(t, Open, b.State())
	assert.Contains(t, b.told(), "half_open→open probe_failed")
}

func TestARampUpAdmitsAnEvenShareThatGrows(t *testing.T) {
	b := newBed(Config{RampUp: 9 * time.Second})
	ask := func(n int) string {
		got := ""
		for range n {
			if b.refuses() {
				got += "-"
			} else {
				got += "o"
			}
		}
		return got
	}
	assert.Equal(t, "oooooooooo", ask(10), "a new breaker has none")
	b.halfOpen(t)
	b.succeed(1)
	require.Equal(t, Closed, b.State())
	assert.Equal(t, "o---------o---------o", ask(21), "a tenth")
	b.advance(4 * time.Second) // half
	assert.Equal(t, 10, strings.Count(ask(20), "o"))
	assert.Contains(t, []string{"o-o-o-o-", "-o-o-o-o"}, ask(8))
	b.advance(time.Hour)
	assert.Equal(t, "oooooooooooooooooooo", ask(20))
	assert.True(t, b.current.Load().free.Load(), "then calls need no permission any more")
	refused := b.events[len(b.events)-1]
	assert.Equal(t, "closed", refused.From)
	require.EqualError(t, refused.Err, "circuit_breaker payments-api: circuit open (ramp_up)")

	b.halfOpen(t)
	b.Reset()
	assert.Equal(t, "oooooooooo", ask(10), "an operator's reset is taken at its word")
	b.halfOpen(t)
	b.succeed(1)
	assert.Equal(t, 2, strings.Count(ask(20), "o"), "again after each recovery")
	b.fail(500)
	assert.Equal(t, Open, b.State(), "and judged as ever")
}

func TestARampUpStillWatchesForSlowCalls(t *testing.T) {
	b := newBed(Config{RampUp: 10 * time.Second, SlowCall: time.Second, MinCalls: 1})
	b.halfOpen(t)
	b.succeed(1)
	b.allow(t)
	b.advance(time.Hour)
	assert.True(t, b.refuses())
	assert.Equal(t, Open, b.State())
}

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

func TestOneErrorServesAWholeOpening(t *testing.T) {
	b := newBed(Config{MinCalls: 2})
	b.fail(2)
	err := b.call(nil)
	assert.Same(t, err, b.call(nil))
	require.EqualError(t, err, "circuit_breaker payments-api: circuit open (failure_ratio: down)")
	require.NotErrorIs(t, err, errDown, "the cause is told, but is no part of what failed now")
	require.ErrorIs(t, err, policy.ErrRejected)
	assert.Equal(t, policy.Ignored, policy.Classify(context.Background(), err))
	b.advance(2 * time.Second)
	wait, ok := policy.RetryAfter(err)
	assert.True(t, ok)
	assert.Equal(t, 3*time.Second, wait, "by the breaker's clock")
	b.advance(3 * time.Second)
	b.allow(t)
	next := b.call(nil)
	assert.NotSame(t, err, next)
	require.EqualError(t, next, "circuit_breaker payments-api: circuit open (failure_ratio: down)")
	_, ok = policy.RetryAfter(next)
	assert.False(t, ok, "nobody knows how long a probe takes")
}

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
