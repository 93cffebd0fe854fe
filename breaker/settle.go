package breaker

import (
	"context"
	"time"

	"github.com/switchgear-go/switchgear/internal/instant"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// result is how a call ended.
type result struct {
	outcome  policy.Outcome
	err      error
	hint     time.Duration // the cooldown that TripOn asks for
	hinted   bool          // TripOn asks to open
	returned bool          // fn has returned and was judged: there is no panic under way
}

// unreturned is the result that a call starts with. It stays that way if fn panics or exits: then the call is a failure.
var unreturned = result{outcome: policy.Failure, err: observe.ErrPanicked}

// judge sets r's outcome. If Classify or TripOn panics, r stays a failure.
func (b *Breaker) judge(ctx context.Context, r *result) {
	outcome := b.config.Classify(ctx, r.err)
	if outcome != policy.Success && outcome != policy.Ignored {
		outcome = policy.Failure
		if b.config.TripOn != nil && r.err != nil {
			r.hint, r.hinted = b.config.TripOn(r.err)
		}
	}
	r.outcome, r.returned = outcome, true
}

// settle records the result of p's call, gives its slot back, and tells the observer of the changes of state.
func (b *Breaker) settle(ctx context.Context, p *permit, r *result) {
	b.record(ctx, p, r, b.clock.now())
	if b.owed.Load() {
		b.tell(r.returned)
	}
}

func (b *Breaker) record(ctx context.Context, p *permit, r *result, now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.current.Load()
	if !g.state.admits() { // time does not end the states that admit
		g = b.passLocked(ctx, now)
	}
	if p.gen != g { // late: its stay is over, and its slot with it
		b.counts[table.late].Add(1)
		return
	}
	b.counts[table.calls[g.state][r.outcome]].Add(1)
	slow := false
	if p.run != nil {
		slow = b.config.SlowCall > 0 && now-p.start >= b.config.SlowCall
		g.running.End(p.run)
	}
	if r.outcome == policy.Ignored || p.bystander {
		return
	}
	if slow {
		b.counts[table.slow].Add(1)
	}
	failed := r.outcome == policy.Failure
	if failed {
		b.lastFailure, b.lastFailureAt, b.failed = r.err, now, true
	}
	if g.state == HalfOpen {
		b.probedLocked(ctx, g, r, failed || slow)
		return
	}
	b.addLocked(now, failed, slow)
	if g.state != Closed {
		return
	}
	if failed && r.hinted {
		b.tripLocked(ctx, move{reason: reasonHint, cause: r.err, wait: min(r.hint, b.config.MaxCooldown)})
	} else if m, trips := b.rulesLocked(g, now); trips {
		b.tripLocked(ctx, m)
	}
}

// probedLocked closes or reopens the breaker by a probe's result, or waits for more probes.
func (b *Breaker) probedLocked(ctx context.Context, g *generation, r *result, failed bool) {
	if failed {
		m := move{reason: reasonProbeFailed, cause: r.err}
		if r.hinted {
			m.reason, m.wait = reasonHint, min(r.hint, b.config.MaxCooldown)
		}
		b.tripLocked(ctx, m)
		return
	}
	if g.successes++; g.successes >= b.config.ProbeSuccesses {
		b.moveLocked(ctx, move{to: Closed, at: b.clock.now(), reason: reasonProbeSucceeded})
	}
}

// tripLocked opens the breaker now.
func (b *Breaker) tripLocked(ctx context.Context, m move) {
	m.to, m.at = Open, b.clock.now()
	b.moveLocked(ctx, m)
}

// addLocked adds a completed call to the window.
func (b *Breaker) addLocked(now time.Duration, failed, slow bool) {
	b.calls.Add(now, failed, slow)
	if !failed {
		b.consecutive = 0
		return
	}
	b.consecutive++
	if b.failures != nil {
		b.failures.Add(now)
	}
}

// rulesLocked applies the rules after a completed call. trips reports whether one is met; m is then the move to open.
func (b *Breaker) rulesLocked(g *generation, now time.Duration) (m move, trips bool) {
	c, cfg := b.calls.At(now), &b.config
	ratio := float64(c.Failed) / float64(c.Calls) // not Failed >= FailureRatio*Calls: in floats .07*100 is above 7
	m = move{cause: b.lastFailure, ratio: ratio, calls: c.Calls}
	switch {
	case cfg.Consecutive > 0 && b.consecutive >= cfg.Consecutive:
		m.reason = reasonConsecutive
	case cfg.Failures > 0 && b.failedLocked(c.Failed):
		m.reason = reasonFailureCount
	case cfg.FailureRatio > 0 && c.Calls >= cfg.MinCalls && ratio >= cfg.FailureRatio:
		m.reason = reasonFailureRatio
	case cfg.SlowCall > 0:
		return b.slowLocked(g, now)
	default:
		return move{}, false
	}
	return m, true
}

// failedLocked reports whether the rule of Failures is met: by the times of the failures in a window of time, by their
// number in a window of calls.
func (b *Breaker) failedLocked(inWindow int) bool {
	if b.failures == nil {
		return inWindow >= b.config.Failures
	}
	return b.failures.Within(b.config.Window)
}

// slowLocked applies the rule of slow calls. Running calls that are slow already count as slow.
func (b *Breaker) slowLocked(g *generation, now time.Duration) (m move, trips bool) {
	c, running := b.calls.At(now), g.running.Since(instant.Add(now, -b.config.SlowCall))
	slow, all := c.Slow+running, c.Calls+running
	if all == 0 || all < b.config.MinCalls {
		return move{}, false
	}
	ratio := float64(slow) / float64(all)
	return move{reason: reasonSlowRatio, ratio: ratio, calls: all}, ratio >= b.config.SlowRatio
}
