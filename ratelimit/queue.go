package ratelimit

import (
	"container/list"
	"context"
	"math"
	"time"

	"github.com/switchgear-go/switchgear/internal/instant"
	"github.com/switchgear-go/switchgear/policy"
)

// queue holds the calls that wait, in the order of arrival. They reserve no tokens: the first takes the next token when it is
// due, so a call that leaves the queue costs none. The token is taken as of the instant it was due, however late the call
// wakes up, so waiting calls get the whole rate. All of it is guarded by the limiter's mu.
type queue struct {
	calls    list.List // of *waitingCall
	shadowed int       // calls that would wait if it were not for shadow mode
	due      time.Time // when the first takes its token, in the bucket's time; not set while no call waits
}

func (q *queue) len() int { return q.calls.Len() + q.shadowed }

// waitingCall is a call that waits for a token.
type waitingCall struct {
	patience
	woken   chan struct{}         // signals to look again
	place   *list.Element         // nil once it has left the queue; guarded by the limiter's mu, as are the next two
	due     time.Time             // when its token comes at the latest, in the bucket's time
	refusal *policy.RejectedError // set if a change of the rate or the clock refused it
}

// patience is how long a call waits, in real time.
type patience struct {
	start    time.Duration // the instant of its arrival
	end      time.Duration // when MaxWait ends
	deadline time.Duration // of its context
}

func (l *Limiter) patienceOf(ctx context.Context) patience {
	p := patience{start: instant.Now(), end: math.MaxInt64, deadline: math.MaxInt64}
	if l.cfg.MaxWait >= 0 {
		if end := p.start + l.cfg.MaxWait; end >= p.start {
			p.end = end
		}
	}
	if at, ok := ctx.Deadline(); ok {
		p.deadline = instant.Of(at)
	}
	return p
}

// allows reports whether the call can wait for so long after now: up to the end of MaxWait, and less than up to its deadline,
// at which it could not start any more.
func (p patience) allows(now, wait time.Duration) bool {
	return wait < never && now+wait <= p.end && now+wait < p.deadline
}

// wait waits in the queue for a token.
func (l *Limiter) wait(ctx context.Context) (waited bool, err error) {
	c, err := l.join(ctx, l.patienceOf(ctx))
	if c == nil {
		return false, err
	}
	defer l.leave(c) // in case the context or the observer panics
	done := ctx.Done()
	var alarm alarm
	defer alarm.stop()
	for {
		if ctx.Err() != nil {
			l.leave(c)
			l.counts[canceled].Add(1)
			l.record(ctx, waitCanceled, c.start)
			return true, ctx.Err()
		}
		turn := l.look(c)
		switch {
		case turn.served:
			l.counts[acquired].Add(1)
			l.record(ctx, waitAcquired, c.start)
			return true, nil
		case turn.refusal != nil:
			err := l.refuse(ctx, turn.refusal, turn.clock)
			l.record(ctx, waitRejected, c.start)
			return true, err
		}
		select {
		case <-c.woken:
		case <-alarm.after(turn.sleep):
		case <-done:
		}
	}
}

// join enters the queue. It returns a nil call if there is a token after all, and a nil call and an error if the wait would
// be too long.
func (l *Limiter) join(ctx context.Context, p patience) (*waitingCall, error) {
	l.mu.Lock()
	clock, now := l.readLocked()
	if l.takeLocked(now) {
		l.mu.Unlock()
		l.counts[acquired].Add(1)
		return nil, nil
	}
	wait := l.lastLocked(now)
	if !p.allows(p.start, wait+now.Sub(clock)) {
		err := l.refusalLocked(now)
		l.mu.Unlock()
		return nil, l.refuse(ctx, err, clock)
	}
	c := &waitingCall{patience: p, woken: make(chan struct{}, 1), due: now.Add(wait)}
	c.place = l.queue.calls.PushBack(c)
	l.refusal = nil
	l.mu.Unlock()
	return c, nil
}

// lastLocked returns how long after now a call that joined the queue now would get a token: never if none would come, and
// possibly less than 0 if calls ahead of it have yet to wake up.
func (l *Limiter) lastLocked(now time.Time) time.Duration {
	ahead := l.queue.len()
	if ahead == 0 {
		wait := l.bucket.wait(now)
		l.queue.due = now.Add(wait)
		return wait
	}
	return l.bucket.behind(l.queue.due.Sub(now), ahead)
}

// turn is what a call in the queue finds when it looks.
type turn struct {
	served  bool
	refusal *policy.RejectedError // nil unless it was refused
	sleep   time.Duration         // if neither, how long until it should look again, unless it is woken earlier
	clock   time.Time
}

// look lets c take the token that is due, if c is the first.
func (l *Limiter) look(c *waitingCall) turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	clock, now := l.readLocked()
	t := turn{refusal: c.refusal, sleep: never, clock: clock}
	if t.refusal != nil {
		return t
	}
	if l.queue.calls.Front() == c.place {
		if t.served = l.takeDueLocked(now); t.served {
			l.leaveLocked(c)
			return t
		}
		t.sleep = max(l.queue.due.Sub(clock), l.minSleep)
	}
	if !c.due.After(now) || c.end == math.MaxInt64 {
		return t // its token has come and the calls ahead are waking up, or MaxWait sets no end
	}
	left := c.end - instant.Now()
	if left <= 0 {
		l.leaveLocked(c)
		t.refusal = l.refusalLocked(now)
	}
	t.sleep = min(t.sleep, left)
	return t
}

// takeDueLocked takes the token of the first in the queue, if it is due.
func (l *Limiter) takeDueLocked(now time.Time) bool {
	if l.queue.due.After(now) || !l.bucket.take(l.queue.due) {
		return false
	}
	l.queue.due = l.queue.due.Add(l.bucket.wait(l.queue.due))
	return true
}

// leave leaves the queue, if c is still in it.
func (l *Limiter) leave(c *waitingCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.place != nil {
		l.leaveLocked(c)
	}
}

func (l *Limiter) leaveLocked(c *waitingCall) {
	l.queue.calls.Remove(c.place)
	c.place = nil
	l.refusal = nil
	l.wakeFirstLocked()
}

func (l *Limiter) wakeFirstLocked() {
	if first := l.queue.calls.Front(); first != nil {
		first.Value.(*waitingCall).wake() // nothing else is in it
	}
}

func (c *waitingCall) wake() {
	select {
	case c.woken <- struct{}{}:
	default: // it is woken already
	}
}

// reviseLocked computes anew when waiting calls get their tokens, after the rate or the time has changed, and refuses those
// that would have to wait too long.
func (l *Limiter) reviseLocked(clock, now time.Time) {
	l.refusal = nil
	first := l.bucket.wait(now)
	l.queue.due = now.Add(first)
	if first == never {
		l.refuseShadowedLocked()
	}
	var refused []*waitingCall
	present, lag, ahead := instant.Now(), now.Sub(clock), 0
	for e := l.queue.calls.Front(); e != nil; {
		c := e.Value.(*waitingCall) // nothing else is in it
		e = e.Next()
		if wait := l.bucket.behind(first, ahead); c.allows(present, wait+lag) {
			c.due = now.Add(wait)
			ahead++
			continue
		}
		l.queue.calls.Remove(c.place)
		c.place = nil
		refused = append(refused, c)
	}
	for _, c := range refused {
		c.refusal = l.refusalLocked(now)
		c.wake()
	}
	l.wakeFirstLocked()
}

// alarm is a timer that is made when it is first needed.
type alarm struct{ timer *time.Timer }

func (a *alarm) after(d time.Duration) <-chan time.Time {
	switch {
	case d == never:
		return nil
	case a.timer == nil:
		a.timer = time.NewTimer(d)
	default:
		a.timer.Reset(d)
	}
	return a.timer.C
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
