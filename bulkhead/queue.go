package bulkhead

import (
	"container/list"
	"context"
	"time"

	"github.com/switchgear-go/switchgear/internal/instant"
)

// queue holds the calls that wait, in the order of arrival. All of it is guarded by the bulkhead's mu. Its length is the
// number of waiters in permits, which is changed in the same hold of mu.
type queue struct {
	calls list.List // of *waitingCall
	pace  pace
}

// waitingCall is a call that waits for a permit.
type waitingCall struct {
	start   time.Duration // the instant of its arrival
	granted chan struct{} // closed under mu when a permit is handed to it
	place   *list.Element // nil once it has left the queue; guarded by the bulkhead's mu
}

// wait enters the queue and waits there for a permit, unless there is no room or no hope.
func (b *Bulkhead) wait(ctx context.Context) (waited bool, err error) {
	if b.permits.crowded(b.cfg.Queue) {
		return false, b.refuse(ctx, rejected, b.full.atOnce)
	}
	// What belongs to others is asked before the queue is entered: should it panic, no permit is ever handed to a call that
	// is gone.
	done := ctx.Done()
	deadline, hasDeadline := ctx.Deadline()

	b.mu.Lock()
	start := instant.Now()
	if hasDeadline && b.hopelessLocked(start, instant.Of(deadline)) {
		b.mu.Unlock()
		return false, b.refuse(ctx, rejected, b.full.tooLate)
	}
	c, took := b.joinLocked(start)
	b.mu.Unlock()
	switch {
	case took:
		b.counts[acquired].Add(1)
		return false, nil
	case c == nil:
		return false, b.refuse(ctx, rejected, b.full.atOnce)
	}
	return true, b.await(ctx, done, c)
}

// await waits for c to be handed a permit. One that comes in the instant the context ends goes on to the next; one that comes
// in the instant MaxWait ends is kept.
func (b *Bulkhead) await(ctx context.Context, done <-chan struct{}, c *waitingCall) error {
	var expired <-chan time.Time
	if b.cfg.MaxWait > 0 {
		timer := time.NewTimer(b.cfg.MaxWait)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-c.granted:
	case <-done:
		if !b.leave(c) {
			b.release()
		}
		return b.canceled(ctx, c)
	case <-expired:
		if b.leave(c) {
			err := b.refuse(ctx, timedOut, b.full.expired)
			b.record(ctx, waitTimedOut, c.start)
			return err
		}
	}
	kept := false
	defer func() {
		if !kept { // also where somebody else's code panics
			b.release()
		}
	}()
	if ctx.Err() != nil {
		return b.canceled(ctx, c)
	}
	b.counts[acquired].Add(1)
	b.record(ctx, waitAcquired, c.start)
	kept = true
	return nil
}

func (b *Bulkhead) canceled(ctx context.Context, c *waitingCall) error {
	b.counts[canceled].Add(1)
	b.record(ctx, waitCanceled, c.start)
	return ctx.Err()
}

// joinLocked enters the queue, unless a permit has come free or the queue is full.
func (b *Bulkhead) joinLocked(now time.Duration) (c *waitingCall, took bool) {
	took, waits := b.permits.takeOrWait(b.cfg.Queue)
	if !waits {
		return nil, took
	}
	if b.queue.calls.Len() == 0 {
		b.queue.pace = pace{last: now}
	}
	c = &waitingCall{start: now, granted: make(chan struct{})}
	c.place = b.queue.calls.PushBack(c)
	return c, false
}

// handOverLocked gives free permits to those who wait. Whoever frees permits while somebody waits calls it.
func (b *Bulkhead) handOverLocked() {
	for b.queue.calls.Len() > 0 && b.permits.handOver() {
		b.queue.pace.handedOver(instant.Now())
		c := b.queue.calls.Front().Value.(*waitingCall) // nothing else is in it
		b.removeLocked(c)
		close(c.granted)
	}
}

// leave leaves the queue and reports whether c was still in it; if not, c holds a permit.
func (b *Bulkhead) leave(c *waitingCall) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.place == nil {
		return false
	}
	b.removeLocked(c)
	b.permits.leave()
	return true
}

func (b *Bulkhead) removeLocked(c *waitingCall) {
	b.queue.calls.Remove(c.place)
	c.place = nil
}

// hopelessLocked reports whether a call that joined now could not start before its deadline, by the pace of the queue, even
// if the next permit came free at once.
func (b *Bulkhead) hopelessLocked(now, deadline time.Duration) bool {
	mean, known := b.queue.pace.mean(b.max)
	return known && float64(b.queue.calls.Len())*float64(mean) >= float64(instant.Add(deadline, -now))
}

// pace is how fast permits are handed over. It is measured only while somebody waits, and forgotten when nobody does: else a
// slow hour could keep everybody out of the queue long after, and so itself from ever being corrected.
type pace struct {
	last    time.Duration // the instant of the last hand-over, or of the first arrival
	average time.Duration // between hand-overs
	n       int
}

// paceMemory is how many hand-overs the average remembers, about.
const paceMemory = 32

func (p *pace) handedOver(now time.Duration) {
	p.n++
	p.average += (now - p.last - p.average) / time.Duration(min(p.n, paceMemory))
	p.last = now
}

// restart forgets what was measured under another Max.
func (p *pace) restart() { *p = pace{last: instant.Now()} }

// mean returns the mean time between hand-overs. It is known once as many permits have changed hands as there are: fewer
// may all have come free in one burst, or in none.
func (p *pace) mean(permits int) (time.Duration, bool) { return p.average, p.n >= permits }
