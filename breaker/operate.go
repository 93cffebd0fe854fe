package breaker

import "context"

// Trip opens a closed or half-open breaker, which then recovers as after any opening. In other states it does nothing.
func (b *Breaker) Trip() {
	b.operate(Open, Closed, HalfOpen)
}

// Probe makes an open or forced-open breaker half-open now. In other states it does nothing.
func (b *Breaker) Probe() {
	b.operate(HalfOpen, Open, ForcedOpen)
}

// ForceOpen makes the breaker refuse every call until [Breaker.Reset], [Breaker.Probe] or [Breaker.ForceClosed].
func (b *Breaker) ForceOpen() {
	b.operate(ForcedOpen, Closed, HalfOpen, Open, ForcedClosed)
}

// ForceClosed makes the breaker let every call through, however many fail, until [Breaker.Reset] or [Breaker.ForceOpen].
// The window is cleared and goes on counting.
func (b *Breaker) ForceClosed() {
	b.operate(ForcedClosed, Closed, HalfOpen, Open, ForcedOpen)
}

// Reset closes the breaker, without a ramp-up, and makes it forget the results in its window and the growth of its
// cooldown. Calls that are still running go on, but their results no longer count.
func (b *Breaker) Reset() {
	defer b.tellOwed()
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.presentLocked()
	if g.state != Closed {
		b.moveLocked(context.Background(), move{to: Closed, at: b.clock.now(), reason: reasonManual})
	} else {
		b.clearLocked(b.clock.now())
		b.current.Store(b.closedSince(g.since)) // a new generation, so that running calls do not count; not an event
	}
	b.openings = 0
}

// operate moves the breaker to the state to if it is in one of the states from.
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

// presentLocked returns the current generation, after the changes that time has brought.
func (b *Breaker) presentLocked() *generation {
	return b.passLocked(context.Background(), b.clock.now())
}
