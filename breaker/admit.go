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

// permit is the leave to make one call. Whoever gets one settles it exactly once.
type permit struct {
	gen       *generation
	start     time.Duration // meant only with run
	run       *window.Run   // its entry in gen.running: of a probe, or of a call watched for being slow
	bystander bool          // runs only because the breaker is in shadow mode, and is not judged
}

// admit returns a permit, or the error that refuses one. By then what the asking has changed is told.
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

// refuses reports whether g refuses every call now: that takes no lock to know.
func (b *Breaker) refuses(g *generation, now time.Duration) bool {
	return (g.state == Open || g.state == ForcedOpen) && now < g.end && !b.config.Shadow
}

// ask decides and marks in one step. Where the answer is no, the permit just names the generation that refuses.
func (b *Breaker) ask(ctx context.Context, now time.Duration) (p permit, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.passLocked(ctx, now)
	now = max(now, g.since) // it may have been read before g began
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

// A ramp-up admits shares in millionths, so that a tenth of the calls is exactly that.
const (
	wholeShare = 1_000_000
	firstShare = wholeShare / 10
)

// rampLocked reports whether the ramp-up lets a call through. Each call adds the present share to a credit, and one that
// makes it whole gets through: the calls let through are evenly spread among the others, not drawn.
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

// refuse counts and tells a refusal and returns its error, which all that g refuses share.
func (b *Breaker) refuse(ctx context.Context, g *generation, now time.Duration) error {
	b.counts[table.calls[g.state][rejected]].Add(1)
	if b.owed.Load() {
		b.tell(true)
	}
	if b.config.Observer != observe.Discard {
		b.config.Observer.Observe(ctx, observe.Event{
			Kind: observe.Rejected, Policy: policyType, Name: b.name, Pipeline: call.Pipeline(ctx),
			From: g.state.String(), Reason: semconv.ResultRejected, Err: g.refusal, Time: b.timeIn(g, now),
		})
	}
	return g.refusal
}

// timeIn returns the wall time of an instant in g. An opening is short enough to reckon from its known end, which saves half
// of a refusal's cost: reading the wall clock.
func (b *Breaker) timeIn(g *generation, at time.Duration) time.Time {
	if g.state == Open {
		return g.refusal.RetryAt.Add(at - g.end)
	}
	return b.clock.time(at)
}
