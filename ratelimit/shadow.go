package ratelimit

import (
	"context"
	"time"
)

// In shadow mode no call waits or is refused. To count only those that would be refused, the queue holds a number of shadowed
// calls: calls that have run already, but would still be waiting otherwise. Each takes its token when it would have.

// rehearse counts a call in shadow mode.
func (l *Limiter) rehearse(ctx context.Context) {
	l.mu.Lock()
	_, now := l.readLocked()
	l.serveShadowedLocked(now)
	took := l.takeLocked(now)
	l.mu.Unlock()
	if !took && !l.joinShadow(ctx) {
		l.counts[wouldReject].Add(1)
	}
	l.counts[acquired].Add(1)
}

// joinShadow adds a shadowed call to the queue. It reports false if the call would have been refused instead.
func (l *Limiter) joinShadow(ctx context.Context) bool {
	p := l.patienceOf(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	clock, now := l.readLocked()
	l.serveShadowedLocked(now)
	if l.takeLocked(now) {
		return true
	}
	if !p.allows(p.start, l.lastLocked(now)+now.Sub(clock)) {
		return false
	}
	l.queue.shadowed++
	return true
}

// serveShadowedLocked gives shadowed calls the tokens that have become due.
func (l *Limiter) serveShadowedLocked(now time.Time) {
	for l.queue.shadowed > 0 && l.takeDueLocked(now) {
		l.queue.shadowed--
	}
}

// refuseShadowedLocked counts all shadowed calls as refused, since no more tokens come.
func (l *Limiter) refuseShadowedLocked() {
	l.counts[wouldReject].Add(int64(l.queue.shadowed))
	l.queue.shadowed = 0
}
