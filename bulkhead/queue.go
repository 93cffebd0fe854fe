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
	start   time.Duration // when it arrived
	granted chan struct{} // closed when a permit is handed to it
	place   *list.Element // nil once it has left the queue; guarded by the bulkhead's mu
}

// wait waits in the queue for a permit. It refuses the call at once if the queue is full, or moves too slowly for the call's
// deadline.
func (b *Bulkhead) wait(ctx context.Context) (waited bool, err error) {
	if b.permits.crowded(b.cfg.Queue) {
		return false, b.refuse(ctx, rejected, b.full.atOnce)
	}
	// The methods of the context are called before the call joins the queue: if they panic, no permit can be handed to a call
	// that is gone.
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

// await waits until c is handed a permit. If that happens at the moment at which the context ends, the permit is passed on;
// at the moment at which MaxWait ends, it is kept.
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
		if !kept { // also if the context or the probe panics
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

// joinLocked adds a call to the queue. It returns a nil call if it took a permit instead, which has become free, or if the
// queue is full.
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

// handOverLocked hands free permits to waiting calls. It must be called after permits are freed while calls wait.
func (b *Bulkhead) handOverLocked() {
	for b.queue.calls.Len() > 0 && b.permits.handOver() {
		b.queue.pace.handedOver(instant.Now())
		c := b.queue.calls.Front().Value.(*waitingCall) // nothing else is in it
		b.removeLocked(c)
		close(c.granted)
	}
}

// leave removes c from the queue. It reports false if c is not in it any more: then c holds a permit.
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

// hopelessLocked reports whether a call that joined the queue now could not start before its deadline at the queue's pace,
// even if a permit became free at once.
func (b *Bulkhead) hopelessLocked(now, deadline time.Duration) bool {
	mean, known := b.queue.pace.mean(b.max)
	return known && float64(b.queue.calls.Len())*float64(mean) >= float64(instant.Add(deadline, -now))
}

// pace measures how fast permits are handed over. It starts anew whenever the queue was empty. Otherwise, after a slow phase,
// it could keep every call out of the queue, and then never measure that the phase is over.
type pace struct {
	last    time.Duration // the latest hand-over or, before the first, when the queue began
	average time.Duration // time between hand-overs
	n       int           // hand-overs
}

// paceMemory is about how many hand-overs the average covers.
const paceMemory = 32

func (p *pace) handedOver(now time.Duration) {
	p.n++
	p.average += (now - p.last - p.average) / time.Duration(min(p.n, paceMemory))
	p.last = now
}

// restart starts anew, after a change of Max.
func (p *pace) restart() { *p = pace{last: instant.Now()} }

// mean returns the average time between hand-overs. It is known after as many hand-overs as there are permits: fewer may
// just be one burst of calls that end together.
func (p *pace) mean(permits int) (time.Duration, bool) { return p.average, p.n >= permits }
