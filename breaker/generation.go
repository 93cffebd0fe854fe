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

// generation is one stay in a state. Each change of state begins a new one, and a permit names the one it is of: that is how
// a result that comes from a stay that has ended is told from one that counts.
type generation struct {
	state   State
	since   time.Duration
	end     time.Duration         // Open: when its cooldown is over; else never
	wait    time.Duration         // Open: its cooldown. HalfOpen: the cooldown that follows if it fails
	luck    float64               // Closed: the jitter of the cooldown that follows
	ramp    time.Duration         // Closed: when its ramp-up is over; without one, when it began
	why     string                // Open, ForcedOpen and HalfOpen: what opened the breaker
	cause   error                 // the failure that did, if one did
	refusal *policy.RejectedError // one error for all whom this stay refuses

	// free is set where a call needs no permission: the breaker is closed and has nothing to find out at admission.
	free atomic.Bool

	running   window.Running // probes, or the calls watched for being slow; guarded by Breaker.mu, as is what follows
	successes int            // of probes
	credit    int            // of the ramp-up
}

// closedSince returns a closed generation, for a breaker that begins or begins anew.
func (b *Breaker) closedSince(since time.Duration) *generation {
	g := &generation{state: Closed, since: since, end: never, luck: rand.Float64(), ramp: since}
	b.admitFreely(g, false)
	return g
}

// phase is what time can change of a generation. As a plain value it serves those who only look as well as those who move.
type phase struct {
	state State
	since time.Duration
	end   time.Duration // when time moves it on
	wait  time.Duration // as in generation
}

// next returns what p has become by now and whether it has: an Open one half-open when its cooldown ended, a HalfOpen one
// open when a probe's lease did. The change took place at its end, however late it is found.
func (p phase) next(now time.Duration) (phase, bool) {
	if now < p.end {
		return p, false
	}
	switch p.state {
	case Open:
		return phase{state: HalfOpen, since: p.end, end: never}, true // nobody has probed yet
	case HalfOpen:
		return phase{state: Open, since: p.end, end: after(p.end, p.wait), wait: p.wait}, true
	}
	return p, false
}

func (b *Breaker) phaseLocked() phase {
	g := b.current.Load()
	p := phase{state: g.state, since: g.since, end: g.end, wait: g.wait}
	if g.state == HalfOpen {
		if start, ok := g.running.First(); ok { // all leases are of one length
			p.end = after(start, b.config.ProbeTimeout)
		}
	}
	return p
}

// passLocked makes the changes that time has brought by now, and returns the generation that it is now. They are stamped
// with their own instants.
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

// The reasons of changes.
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

	whyRampUp = "ramp_up" // no change, but what refuses calls during one
)

// move is a change of state.
type move struct {
	to     State
	at     time.Duration // what happens now is stamped with a reading made under the lock, so that stays never overlap
	reason string
	cause  error         // the failure that brought it
	wait   time.Duration // to Open: how long; 0 for the wait that was drawn
	ratio  float64       // what a rule judged
	calls  int
}

// moveLocked begins the generation that m leads to, and queues what is to be told of it.
func (b *Breaker) moveLocked(ctx context.Context, m move) {
	old := b.current.Load()
	g := &generation{state: m.to, since: m.at, end: never, luck: rand.Float64(), ramp: m.at, why: m.reason, cause: m.cause}
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
	case HalfOpen: // refuses for what opened it
		g.why, g.cause = old.why, old.cause
		g.wait = b.config.cooldown(b.openings, g.luck)
	case Open:
		switch {
		case m.wait > 0:
			g.wait = m.wait
		case old.state == HalfOpen:
			g.wait = old.wait
		default:
			g.wait = b.config.cooldown(b.openings, old.luck)
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

// clearLocked forgets what the window holds.
func (b *Breaker) clearLocked(now time.Duration) {
	b.calls.Clear(now)
	if b.failures != nil {
		b.failures.Clear()
	}
	b.consecutive = 0
}

// admitFreely prepares a stay that lets calls through, after a ramp-up where one is due.
func (b *Breaker) admitFreely(g *generation, recovered bool) {
	if recovered && b.config.RampUp > 0 {
		g.ramp = after(g.since, b.config.RampUp)
		g.credit = wholeShare - firstShare // the first call is let through
		return
	}
	g.free.Store(b.config.SlowCall == 0)
}
