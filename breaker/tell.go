package breaker

import (
	"context"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// change is a change of state that the observer has yet to be told, with the context of the call that caused it.
type change struct {
	ctx   context.Context
	event observe.Event
}

// queueLocked queues a change. Unless another goroutine is telling, whoever holds the lock must call tell after unlocking.
func (b *Breaker) queueLocked(ctx context.Context, e observe.Event) {
	b.queue = append(b.queue, change{ctx, e})
	if !b.telling {
		b.owed.Store(true)
	}
}

// tellOwed tells the changes that an operator's method has queued.
func (b *Breaker) tellOwed() {
	if b.owed.Load() {
		b.tell(true)
	}
}

// tell tells the observer of the queued changes in order, including those queued meanwhile. One goroutine tells at a time.
// It gives up the lock while the observer runs, so the observer may call the breaker; a change that this causes is queued
// and told next. If fn is panicking (returned is false), a panic of the observer is dropped in favour of fn's.
func (b *Breaker) tell(returned bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.telling {
		return
	}
	b.telling = true
	b.owed.Store(false)
	defer func() { // also if the observer panics: the next caller then tells the rest
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

// tellUnlocked tells one change. It unlocks mu, which the caller holds, and locks it again.
func (b *Breaker) tellUnlocked(c change, returned bool) {
	b.mu.Unlock()
	defer b.mu.Lock()
	call.Tell(c.ctx, b.config.Observer, c.event, returned)
}

// tellHolding is tell for a caller that has just got p. If the observer panics the call will not run, so p is given back.
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
