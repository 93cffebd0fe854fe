package breaker

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy"
)

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
