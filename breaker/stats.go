package breaker

import (
	"time"

	"github.com/switchgear-go/switchgear/policy/observe"
)

// Stats is a breaker at one moment.
type Stats struct {
	State State
	Since time.Time // when that began
	Until time.Time // when an open breaker's cooldown ends; else zero

	// Of the window now.
	Calls   int     // completed and judged
	Failed  int     // of these
	Slow    int     // of these, and running calls that are slow already
	Probing int     // probes that now run
	Ratio   float64 // Failed ÷ Calls; 0 without calls

	// Since New.
	Rejected      int64         // calls refused
	Opened        int64         // times the breaker opened; not by ForceOpen
	Late          int64         // results that came after the state they were admitted in had ended
	OpenFor       time.Duration // in all, spent open
	Cooldown      time.Duration // the wait of the latest opening; 0 before the first
	Reopenings    int           // which reopening that was since the breaker was at ease, less what is forgotten by now
	LastFailure   error         // the latest failure; for a panic, one that says so
	LastFailureAt time.Time
}

// State returns the present state. Like [Breaker.Stats] it is a pure read, and sees what time has changed at once: an open
// breaker is half-open from its cooldown's end on.
func (b *Breaker) State() State {
	g := b.current.Load()
	if g.end == never && g.state != HalfOpen {
		return g.state
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lookLocked().phase.state
}

// Stats returns the present numbers, all of one moment.
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
		if !v.moved { // else nobody has probed yet
			s.Probing = g.running.Len()
		}
	case Closed, ForcedClosed:
		if b.config.SlowCall > 0 {
			s.Slow += g.running.Since(v.now - b.config.SlowCall)
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

// InUse reports whether the breaker is anything but closed: then it must not be replaced by a new one, which would let
// calls through.
func (b *Breaker) InUse() bool { return b.State() != Closed }

// view is what the clock makes of a breaker at one moment.
type view struct {
	now      time.Duration
	phase    phase
	moved    bool                  // phase is not the generation's any more
	spent    [states]time.Duration // in each state, the present stay included
	wait     time.Duration         // of the latest opening
	openings int
}

// lookLocked follows time without changing anything.
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
