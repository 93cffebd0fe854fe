package breaker

import (
	"context"
	"math"
	"time"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/internal/window"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// permit allows one call. Whoever gets one settles it exactly once.
type permit struct {
	gen       *generation
	start     time.Duration // set only together with run
	run       *window.Run   // its entry in gen.running, for a probe or a call that SlowCall watches; else nil
	bystander bool          // runs only because of shadow mode; its result is not judged
}

// admit returns a permit, or the error that refuses the call. Any state change that admission causes (a cooldown that has
// ended, say) is reported before it returns.
func (b *Breaker) admit(ctx context.Context, now time.Duration) (permit, error) {
	if g := b.current.Load(); b.refuses(g, now) {
		return permit{}, b.refuse(ctx, g, now)
	}
	p, ok := b.ask(ctx, now)
	if !ok {
		return permit{}, b.refuse(ctx, p.gen, now)
	}
	if b.owed.Load() {
		b.tellHolding(ctx, &p)
	}
	return p, nil
}

// refuses reports whether g refuses every call at now. It needs no lock: what it reads of g does not change.
func (b *Breaker) refuses(g *generation, now time.Duration) bool {
	return (g.state == Open || g.state == ForcedOpen) && now < g.end && !b.config.Shadow
}

// ask decides and takes a probe slot under one hold of the lock, so that two callers never get the same slot. If ok is
// false, only p.gen is set: the generation that refuses.
func (b *Breaker) ask(ctx context.Context, now time.Duration) (p permit, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.passLocked(ctx, now)
	now = max(now, g.since) // the clock may have been read before g began
	if g.state == Closed && b.config.SlowCall > 0 {
		if m, trips := b.slowLocked(g, now); trips {
			b.tripLocked(ctx, m)
			g = b.passLocked(ctx, now)
		}
	}
	p = permit{gen: g, start: now}
	switch {
	case g.state.admits():
		ok = b.rampLocked(g, now)
	case g.state == HalfOpen:
		ok = g.running.Len() < b.config.Probes
	}
	if !ok {
		if !b.config.Shadow {
			return p, false
		}
		b.counts[table.wouldReject].Add(1)
		p.bystander = !g.state.admits()
	}
	if g.state == HalfOpen && !p.bystander || g.state.admits() && b.config.SlowCall > 0 {
		p.run = g.running.Start(now)
	}
	return p, true
}

// The shares of a ramp-up, in millionths: integers, so that a tenth of the calls is exactly a tenth.
const (
	wholeShare = 1_000_000
	firstShare = wholeShare / 10
)

// rampLocked reports whether the ramp-up lets a call through. Each call adds the current share to a credit; a call is let
// through, and the credit reduced, when it reaches a whole. That spaces admitted calls evenly, where a random draw would
// not.
func (b *Breaker) rampLocked(g *generation, now time.Duration) bool {
	if now >= g.ramp {
		if b.config.SlowCall == 0 {
			g.free.Store(true)
		}
		return true
	}
	part := float64(now-g.since) / float64(g.ramp-g.since)
	g.credit += firstShare + int(math.Round(part*(wholeShare-firstShare)))
	if g.credit < wholeShare {
		return false
	}
	g.credit -= wholeShare
	return true
}

// refuse counts and reports a refusal. It returns the one error that g's refusals share.
func (b *Breaker) refuse(ctx context.Context, g *generation, now time.Duration) error {
	b.counts[table.calls[g.state][rejected]].Add(1)
	if b.owed.Load() {
		b.tell(true)
	}
	if b.config.Observer != observe.Discard {
		b.config.Observer.Observe(ctx, observe.Event{
			Kind: observe.Rejected, Policy: policyType, Name: b.name, Pipeline: call.Pipeline(ctx),
			From: g.state.String(), Reason: semconv.ResultRejected, Err: g.refusal,
			Time: b.timeIn(g, max(now, g.since)), // the clock may have been read before g began
		})
	}
	return g.refusal
}

// timeIn returns the wall time of an instant in g. While open it counts back from the known end of the cooldown, because
// reading the wall clock would double the cost of a refusal.
func (b *Breaker) timeIn(g *generation, at time.Duration) time.Time {
	if g.state == Open {
		return g.refusal.RetryAt.Add(at - g.end)
	}
	return b.clock.time(at)
}
