package breaker

import "context"

// Trip opens a closed or half-open breaker, which then recovers as from any opening. In other states it does nothing.
func (b *Breaker) Trip() {
	b.operate(Open, Closed, HalfOpen)
}

// Probe makes an open or forced-open breaker half-open now. In other states it does nothing.
func (b *Breaker) Probe() {
	b.operate(HalfOpen, Open, ForcedOpen)
}

// ForceOpen makes the breaker refuse every call until [Breaker.Reset] (or Probe).
func (b *Breaker) ForceOpen() {
	b.operate(ForcedOpen, Closed, HalfOpen, Open, ForcedClosed)
}

// ForceClosed makes the breaker let every call through, whatever becomes of it, until [Breaker.Reset]. The window goes on
// counting, from zero.
func (b *Breaker) ForceClosed() {
	b.operate(ForcedClosed, Closed, HalfOpen, Open, ForcedOpen)
}

// Reset closes the breaker and makes it forget: what its window holds, how much longer its next wait would be, and the
// calls that now run, whose results no longer count. There is no ramp-up.
func (b *Breaker) Reset() {
	defer b.tellOwed()
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.presentLocked()
	if g.state != Closed {
		b.moveLocked(context.Background(), move{to: Closed, at: b.clock.now(), reason: reasonManual})
	} else {
		b.clearLocked(b.clock.now())
		b.current.Store(b.closedSince(g.since)) // no change to tell, but running calls are of another generation
	}
	b.openings = 0
}

// operate moves from one of the states to another.
func (b *Breaker) operate(to State, from ...State) {
	defer b.tellOwed()
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.presentLocked()
	for _, s := range from {
		if g.state == s {
			b.moveLocked(context.Background(), move{to: to, at: b.clock.now(), reason: reasonManual})
			return
		}
	}
}

// presentLocked returns the generation of now, once time has had its say.
func (b *Breaker) presentLocked() *generation {
	return b.passLocked(context.Background(), b.clock.now())
}
