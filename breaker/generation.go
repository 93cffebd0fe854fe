package breaker

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/internal/window"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// generation is one stay in a state. Each change of state begins a new one. A permit holds the generation that admitted it,
// so a result that arrives after that stay has ended is recognised and does not count.
type generation struct {
	state   State
	since   time.Duration
	end     time.Duration         // Open: when its cooldown is over; else never
	wait    time.Duration         // Open: its cooldown. HalfOpen: the next cooldown, should a probe fail
	draw    float64               // the random draw for the jitter of the next cooldown, made in advance so that all reads agree
	ramp    time.Duration         // Closed: when its ramp-up is over; without one, since
	why     string                // Open, ForcedOpen, HalfOpen: the reason of the opening. Closed: ramp_up
	cause   error                 // the failure that opened the breaker, if one did
	refusal *policy.RejectedError // the error of every call that this stay refuses

	// free is set if calls need no admission: the breaker is closed, without ramp-up, and does not watch for slow calls.
	free atomic.Bool

	running   window.Running // probes, or the calls that SlowCall watches; guarded by Breaker.mu, as is what follows
	successes int            // successful probes
	credit    int            // of the ramp-up: see rampLocked
}

// closedSince returns a closed generation, for a new breaker or one that is reset.
func (b *Breaker) closedSince(since time.Duration) *generation {
	g := &generation{state: Closed, since: since, end: never, draw: rand.Float64(), ramp: since}
	b.admitFreely(g, false)
	return g
}

// phase is the part of a generation that time changes. It is a plain value, so that lookLocked can follow time without
// changing the breaker and passLocked can apply the same steps to it.
type phase struct {
	state State
	since time.Duration
	end   time.Duration // when time alone ends it
	wait  time.Duration // as in generation
}

// next returns the phase that follows p, if time has ended p by now: Open turns HalfOpen when its cooldown ends, and HalfOpen
// turns Open when a probe times out. The next phase begins at p's end, however late that is found.
func (p phase) next(now time.Duration) (phase, bool) {
	if now < p.end || p.end == never {
		return p, false
	}
	switch p.state {
	case Open:
		return phase{state: HalfOpen, since: p.end, end: never}, true // without a probe yet, nothing can time out
	case HalfOpen:
		return phase{state: Open, since: p.end, end: after(p.end, p.wait), wait: p.wait}, true
	}
	return p, false
}

func (b *Breaker) phaseLocked() phase {
	g := b.current.Load()
	p := phase{state: g.state, since: g.since, end: g.end, wait: g.wait}
	if g.state == HalfOpen {
		if start, ok := g.running.First(); ok { // the oldest probe times out first
			p.end = after(start, b.config.ProbeTimeout)
		}
	}
	return p
}

// passLocked makes the changes of state that time has brought by now, each as of its own instant, and returns the current
// generation.
func (b *Breaker) passLocked(ctx context.Context, now time.Duration) *generation {
	for {
		p, moved := b.phaseLocked().next(now)
		if !moved {
			return b.current.Load()
		}
		reason := reasonCooldownElapsed
		if p.state == Open {
			reason = reasonProbeTimeout
		}
		b.moveLocked(ctx, move{to: p.state, at: p.since, reason: reason})
	}
}

// The reasons for changes of state, as telemetry names them.
const (
	reasonFailureRatio    = "failure_ratio"
	reasonFailureCount    = "failure_count"
	reasonConsecutive     = "consecutive_failures"
	reasonSlowRatio       = "slow_call_ratio"
	reasonHint            = "hint"
	reasonCooldownElapsed = "cooldown_elapsed"
	reasonProbeSucceeded  = "probe_succeeded"
	reasonProbeFailed     = "probe_failed"
	reasonProbeTimeout    = "probe_timeout"
	reasonManual          = "manual"

	whyRampUp = "ramp_up" // of refusals during a ramp-up; no change of state has it
)

// move is a change of state.
type move struct {
	to     State
	at     time.Duration // a move that happens now reads the clock under the lock, so that stays never overlap
	reason string
	cause  error         // the failure that caused it, if one did
	wait   time.Duration // to Open: the cooldown; 0 for the one that was drawn
	ratio  float64       // the ratio that the rule judged
	calls  int           // the number of calls that it judged
}

// moveLocked begins the generation that m leads to, and queues its event.
func (b *Breaker) moveLocked(ctx context.Context, m move) {
	old := b.current.Load()
	g := &generation{state: m.to, since: m.at, end: never, draw: rand.Float64(), ramp: m.at, why: m.reason, cause: m.cause}
	e := observe.Event{
		Kind: observe.StateChange, Policy: policyType, Name: b.name, Pipeline: call.Pipeline(ctx),
		From: old.state.String(), To: m.to.String(), Reason: m.reason, Err: m.cause, Time: b.clock.time(m.at),
		Ratio: m.ratio, Calls: m.calls,
	}
	b.spent[old.state] += m.at - old.since
	if old.state == Closed {
		b.openings = b.config.remembered(b.openings, m.at-old.since)
	}
	var retryAt time.Time
	switch m.to {
	case Closed:
		b.clearLocked(m.at)
		b.admitFreely(g, m.reason == reasonProbeSucceeded)
		g.why, g.cause = whyRampUp, nil
	case ForcedClosed:
		b.clearLocked(m.at)
		b.admitFreely(g, false)
	case HalfOpen: // refuses for the same reason as the opening before
		g.why, g.cause = old.why, old.cause
		g.wait = b.config.cooldown(b.openings, g.draw)
	case Open:
		switch {
		case m.wait > 0:
			g.wait = m.wait
		case old.state == HalfOpen:
			g.wait = old.wait
		default:
			g.wait = b.config.cooldown(b.openings, old.draw)
		}
		g.end = after(m.at, g.wait)
		retryAt = b.clock.time(g.end)
		b.lastWait = g.wait
		e.Delay, e.Reopenings = g.wait, b.openings
		b.openings++
	}
	g.refusal = policy.Rejection(policyType, b.name, ErrCircuitOpen, retryAt, b.config.Clock)
	g.refusal.Why, g.refusal.Cause = g.why, g.cause
	b.countMoveLocked(old.state, m.to)
	b.current.Store(g)
	b.queueLocked(ctx, e)
}

// clearLocked forgets the results of past calls.
func (b *Breaker) clearLocked(now time.Duration) {
	b.calls.Clear(now)
	if b.failures != nil {
		b.failures.Clear()
	}
	b.consecutive = 0
}

// admitFreely prepares a closed stay, with a ramp-up if the breaker has recovered and RampUp is set.
func (b *Breaker) admitFreely(g *generation, recovered bool) {
	if recovered && b.config.RampUp > 0 {
		g.ramp = after(g.since, b.config.RampUp)
		g.credit = wholeShare - firstShare // so that the first call is let through
		return
	}
	g.free.Store(b.config.SlowCall == 0)
}
