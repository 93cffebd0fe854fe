package breaker

import (
	"time"

	"github.com/switchgear-go/switchgear/internal/instant"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// Stats describes a [Breaker] at one moment.
type Stats struct {
	State State     // the state now
	Since time.Time // when that state began
	Until time.Time // when the cooldown of an open breaker ends; else zero

	// Of the window.
	Calls  int     // calls completed and judged as Success or Failure
	Failed int     // those that failed
	Slow   int     // those that were slow, and running calls that are slow already
	Ratio  float64 // Failed ÷ Calls; 0 without calls

	Probing int // probes running now

	// Since New.
	Rejected      int64         // calls refused
	Opened        int64         // times the breaker opened, not counting ForceOpen
	Late          int64         // results that came after the state that admitted them had ended; they change nothing
	OpenFor       time.Duration // total time spent open, not counting forced_open
	Cooldown      time.Duration // the cooldown of the latest opening; 0 before the first
	Reopenings    int           // steps of growth in that cooldown, less those taken back since: see Config.Growth
	LastFailure   error         // the latest failure, nil if there was none; for a panic, observe.ErrPanicked
	LastFailureAt time.Time     // when that was; zero if there was none
}

// State returns the current state. Like [Breaker.Stats] it changes nothing and takes time into account: an open breaker is
// half-open once its cooldown has ended, even before the first probe.
func (b *Breaker) State() State {
	g := b.current.Load()
	if g.end == never && g.state != HalfOpen {
		return g.state
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lookLocked().phase.state
}

// Stats returns the breaker's numbers, read under one lock: they fit together.
func (b *Breaker) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.lookLocked()
	g, c := b.current.Load(), b.calls.At(v.now)
	s := Stats{
		State: v.phase.state, Since: b.clock.time(v.phase.since),
		Calls: c.Calls, Failed: c.Failed, Slow: c.Slow,
		Late: b.counts[table.late].Load(), OpenFor: v.spent[Open],
		Cooldown: v.wait, Reopenings: max(0, v.openings-1), LastFailure: b.lastFailure,
	}
	if c.Calls > 0 {
		s.Ratio = float64(c.Failed) / float64(c.Calls)
	}
	switch v.phase.state {
	case Open:
		s.Until = b.clock.time(v.phase.end)
	case HalfOpen:
		if !v.moved { // otherwise no probe has started yet
			s.Probing = g.running.Len()
		}
	case Closed, ForcedClosed:
		if b.config.SlowCall > 0 {
			s.Slow += g.running.Since(instant.Add(v.now, -b.config.SlowCall))
		}
	}
	if b.failed {
		s.LastFailureAt = b.clock.time(b.lastFailureAt)
	}
	for state := range State(states) {
		if n := b.counts[table.calls[state][rejected]].Load(); n != observe.None {
			s.Rejected += n
		}
		if row := table.moves[state][Open]; row > 0 {
			s.Opened += b.counts[row].Load()
		}
	}
	return s
}

// InUse reports whether the breaker is not closed. A [policy.Group] then keeps it, since a new one in its place would be
// closed and let calls through.
func (b *Breaker) InUse() bool { return b.State() != Closed }

// view is a breaker as of one instant.
type view struct {
	now      time.Duration
	phase    phase
	moved    bool                  // time has ended the current generation
	spent    [states]time.Duration // in each state, the present stay included
	wait     time.Duration         // the cooldown of the latest opening
	openings int                   // as in Breaker
}

// lookLocked returns the breaker as time has changed it by now. It does not change the breaker.
func (b *Breaker) lookLocked() view {
	v := view{now: b.clock.now(), phase: b.phaseLocked(), spent: b.spent, wait: b.lastWait, openings: b.openings}
	for {
		next, moved := v.phase.next(v.now)
		if !moved {
			break
		}
		v.spent[v.phase.state] += next.since - v.phase.since
		if v.phase, v.moved = next, true; next.state == Open {
			v.wait = next.wait
			v.openings++
		}
	}
	stay := v.now - v.phase.since
	v.spent[v.phase.state] += stay
	if v.phase.state == Closed {
		v.openings = b.config.remembered(v.openings, stay)
	}
	return v
}
