package breaker

import (
	"context"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// change is a change of state that is to be told, with the context of whoever set it off.
type change struct {
	ctx   context.Context
	event observe.Event
}

// queueLocked queues a change to be told. Unless somebody is telling, telling is owed by whoever holds the lock.
func (b *Breaker) queueLocked(ctx context.Context, e observe.Event) {
	b.queue = append(b.queue, change{ctx, e})
	if !b.telling {
		b.owed.Store(true)
	}
}

// tellOwed tells what is owed on behalf of an operator's method.
func (b *Breaker) tellOwed() {
	if b.owed.Load() {
		b.tell(true)
	}
}

// tell tells the queued changes in order, those queued meanwhile too. There is one teller at a time: it leaves the lock while
// an observer is told, so an observer may call the breaker, whose changes then wait for their turn here. Where fn is
// panicking (returned is false), a panic of the observer gives way to that.
func (b *Breaker) tell(returned bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.telling {
		return
	}
	b.telling = true
	b.owed.Store(false)
	defer func() { // also when an observer panics: the next one to come by tells the rest
		b.telling = false
		b.owed.Store(len(b.queue) > 0)
	}()
	for len(b.queue) > 0 {
		next := b.queue[0]
		b.queue[0] = change{}
		b.queue = b.queue[1:]
		b.tellUnlocked(next, returned)
	}
	b.queue = nil
}

// tellUnlocked tells one change without the lock that its caller holds.
func (b *Breaker) tellUnlocked(c change, returned bool) {
	b.mu.Unlock()
	defer b.mu.Lock()
	call.Tell(c.ctx, b.config.Observer, c.event, returned)
}

// tellHolding tells for a caller who has just got p. Should an observer panic, its call will not run, so p is given back.
func (b *Breaker) tellHolding(ctx context.Context, p *permit) {
	told := false
	defer func() {
		if !told {
			b.record(ctx, p, &result{outcome: policy.Ignored}, b.clock.now())
		}
	}()
	b.tell(true)
	told = true
}
