package ratelimit

import (
	"context"
	"time"
)

// In shadow mode nobody waits or is refused. Calls that would wait are told apart from those that would be refused by a queue
// of ghosts, which take the tokens that the calls would have taken, when they would have.

// rehearse counts a call in shadow mode.
func (l *Limiter) rehearse(ctx context.Context) {
	l.mu.Lock()
	_, now := l.readLocked()
	l.serveGhostsLocked(now)
	took := l.takeLocked(now)
	l.mu.Unlock()
	if !took && !l.haunt(ctx) {
		l.counts[wouldReject].Add(1)
	}
	l.counts[acquired].Add(1)
}

// haunt leaves a ghost of a call in the queue, and reports whether it would have waited there.
func (l *Limiter) haunt(ctx context.Context) bool {
	p := l.patienceOf(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	clock, now := l.readLocked()
	l.serveGhostsLocked(now)
	if l.takeLocked(now) {
		return true
	}
	if !p.allows(p.start, l.lastLocked(now)+now.Sub(clock)) {
		return false
	}
	l.queue.ghosts++
	return true
}

// serveGhostsLocked gives ghosts the tokens that were due to them.
func (l *Limiter) serveGhostsLocked(now time.Time) {
	for l.queue.ghosts > 0 && l.takeDueLocked(now) {
		l.queue.ghosts--
	}
}

// exorciseLocked refuses the ghosts: no more tokens come.
func (l *Limiter) exorciseLocked() {
	l.counts[wouldReject].Add(int64(l.queue.ghosts))
	l.queue.ghosts = 0
}
