package main

import (
	"slices"
	"time"
)

// The states that a breaker passes through by itself, as its events name them.
const (
	closed   = "closed"
	open     = "open"
	halfOpen = "half_open"
)

// stay is one stay of the breaker in a state.
type stay struct {
	state    string
	from, to time.Duration
	cooldown time.Duration // of an open one
}

// stays returns the breaker's states one after the other.
func (h *history) stays() []stay {
	stays := []stay{{state: closed}}
	for _, c := range h.changes {
		stays[len(stays)-1].to = c.at
		stays = append(stays, stay{state: c.to, from: c.at, cooldown: c.cooldown})
	}
	stays[len(stays)-1].to = h.end
	return stays
}

// stateAt returns the breaker's state at a time.
func (h *history) stateAt(at time.Duration) string {
	state := closed
	for _, c := range h.changes {
		if c.at <= at {
			state = c.to
		}
	}
	return state
}

// failingAt reports whether the dependency fails at a time.
func (h *history) failingAt(at time.Duration) bool {
	return h.down > 0 && at >= h.down && (h.up == 0 || at < h.up)
}

// interval is what happened in a part of a run.
type interval struct {
	reached        int // requests at the dependency
	reachedFailing int // those of them that it failed
	refused        int // calls that never reached it
	stale, failed  int // calls by their answer
	calls          int
	p50, p99       time.Duration // latency of the calls; 0 without any
}

// between sums up what ended, and which requests arrived, from a time on to before another.
func (h *history) between(from, to time.Duration) interval {
	var i interval
	var latencies []time.Duration
	for _, c := range h.calls {
		if c.end < from || c.end >= to {
			continue
		}
		latencies = append(latencies, c.end-c.begin)
		i.calls++
		if c.refused() {
			i.refused++
		}
		switch c.answer {
		case stale:
			i.stale++
		case failed:
			i.failed++
		}
	}
	for _, a := range h.arrivals {
		if a.at < from || a.at >= to {
			continue
		}
		i.reached++
		if a.failing {
			i.reachedFailing++
		}
	}
	slices.Sort(latencies)
	i.p50, i.p99 = percentile(latencies, 50), percentile(latencies, 99)
	return i
}

// percentile returns the smallest value that at least p percent of sorted do not exceed; 0 if there are none.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

// arrivalsIn counts the requests that reached the dependency in a stay, and those of them that it failed.
func (h *history) arrivalsIn(s stay) (all, failing int) {
	for _, a := range h.arrivals {
		if a.at < s.from || a.at >= s.to {
			continue
		}
		all++
		if a.failing {
			failing++
		}
	}
	return all, failing
}

// halfOpenCalls returns the most requests that reached the dependency in one half-open stay.
func (h *history) halfOpenCalls() int {
	most := 0
	for _, s := range h.stays() {
		if s.state == halfOpen {
			all, _ := h.arrivalsIn(s)
			most = max(most, all)
		}
	}
	return most
}

// whileOpen returns how many calls clients began while the breaker was open, and how many of them were refused.
func (h *history) whileOpen() (made, refused int) {
	stays := h.stays()
	for _, c := range h.calls {
		for _, s := range stays {
			if s.state != open || c.begin < s.from || c.begin >= s.to {
				continue
			}
			made++
			if c.refused() {
				refused++
			}
		}
	}
	return made, refused
}

// opened returns how long after the start of the outage the breaker opened, and whether it did.
func (h *history) opened() (time.Duration, bool) {
	for _, s := range h.stays() {
		if s.state == open && h.down > 0 && s.to > h.down {
			return max(0, s.from-h.down), true
		}
	}
	return 0, false
}

// beforeOpening returns how many requests reached the failing dependency that the breaker had let through before it
// opened: all but those at half-open. Some of them arrive a moment later.
func (h *history) beforeOpening() int {
	n := h.between(0, h.end).reachedFailing
	for _, s := range h.stays() {
		if s.state == halfOpen {
			_, failing := h.arrivalsIn(s)
			n -= failing
		}
	}
	return n
}

// recovery returns how long after the end of the outage the first client got an answer from the dependency, and whether
// one did.
func (h *history) recovery() (time.Duration, bool) {
	if h.up == 0 {
		return 0, false
	}
	for _, c := range h.calls {
		if c.answer == fresh && c.end > h.up {
			return c.end - h.up, true
		}
	}
	return 0, false
}

// cooldownRest returns how long after the end of the outage the last cooldown was over that the outage had set off: one
// that began because requests had met the failing dependency. A probe that still hung there at the end is such a request.
func (h *history) cooldownRest() time.Duration {
	var rest time.Duration
	stays := h.stays()
	for i, s := range stays {
		if s.state != open {
			continue
		}
		if _, failing := h.arrivalsIn(stays[i-1]); failing > 0 {
			rest = s.from + s.cooldown - h.up
		}
	}
	return max(0, rest)
}

// openedByCancellation reports whether the breaker opened when the end of the run cancelled calls.
func (h *history) openedByCancellation() bool {
	for _, c := range h.changes {
		if c.to == open && c.at >= h.end {
			return true
		}
	}
	return false
}

// lastError returns how long after the end of the outage the last client got an error.
func (h *history) lastError() time.Duration {
	var last time.Duration
	for _, c := range h.calls {
		if c.answer == failed {
			last = max(last, c.end-h.up)
		}
	}
	return last
}
