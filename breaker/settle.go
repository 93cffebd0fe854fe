package breaker

import (
	"context"
	"time"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// result is how a call ended.
type result struct {
	outcome  policy.Outcome
	err      error
	hint     time.Duration // what TripOn asks for
	hinted   bool
	returned bool // fn returned and was judged: no panic is under way
}

// unreturned is the result of a call as long as nothing better is known: that is how a panic counts.
var unreturned = result{outcome: policy.Failure, err: observe.ErrPanicked}

// judge decides what r.err means. It asks functions of the user's, which may panic: r stays a failure then.
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

// settle records the result of p's call, gives its slot back, and tells what that has changed.
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
	if !g.state.admits() { // those do not end by themselves
		g = b.passLocked(ctx, now)
	}
	if p.gen != g { // its stay is over, and with it the slot
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

// probedLocked decides on a probe's result.
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

// addLocked counts a completed call.
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

// rulesLocked asks the rules after a completed call. trips reports whether one of them opens the breaker.
func (b *Breaker) rulesLocked(g *generation, now time.Duration) (m move, trips bool) {
	c, cfg := b.calls.At(now), &b.config
	ratio := float64(c.Failed) / float64(c.Calls) // divided and compared as it is: rounding or multiplying would miss .29 of 100
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

// failedLocked reports whether there were Failures failures: by their times, or among the calls of a window of calls.
func (b *Breaker) failedLocked(inWindow int) bool {
	if b.failures == nil {
		return inWindow >= b.config.Failures
	}
	return b.failures.Within(b.config.Window)
}

// slowLocked asks the rule of slow calls, to which the running ones that are slow already count too.
func (b *Breaker) slowLocked(g *generation, now time.Duration) (m move, trips bool) {
	c, running := b.calls.At(now), g.running.Since(now-b.config.SlowCall)
	slow, all := c.Slow+running, c.Calls+running
	if all == 0 || all < b.config.MinCalls {
		return move{}, false
	}
	ratio := float64(slow) / float64(all)
	return move{reason: reasonSlowRatio, ratio: ratio, calls: all}, ratio >= b.config.SlowRatio
}
