package main

import (
	"context"
	"sync"
	"time"

	"github.com/switchgear-go/switchgear/policy/observe"
)

// history is what happened in a run. All times count from its start.
type history struct {
	calls    []call // by their end
	arrivals []arrival
	changes  []change
	down, up time.Duration // when the outage began and ended; 0: not yet
	end      time.Duration // of what is known
	canceled int           // calls that the end of the run cut short
}

// call is one loop of a client.
type call struct {
	begin, end time.Duration
	sent       int // requests that went out for it
	answer     answer
}

// refused reports whether a policy answered in the dependency's place without asking it.
func (c call) refused() bool { return c.sent == 0 }

// answer is what a client got.
type answer uint8

const (
	fresh  answer = iota // from the dependency; "no such symbol" is one
	stale                // from the fallback
	failed               // an error
)

// arrival is one request at the dependency.
type arrival struct {
	at      time.Duration
	failing bool
}

// change is one of the breaker's changes of state.
type change struct {
	at       time.Duration
	from, to string
	reason   string
	cooldown time.Duration // where to is open
}

// recorder writes a history.
type recorder struct {
	start time.Time

	mu      sync.Mutex
	history history // guarded by mu; its slices only grow
}

func newRecorder() *recorder { return &recorder{start: time.Now()} }

// now returns the time since the start of the run.
func (r *recorder) now() time.Duration { return time.Since(r.start) }

func (r *recorder) called(c call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.end = r.now()
	r.history.calls = append(r.history.calls, c)
}

func (r *recorder) cutShort() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.canceled++
}

func (r *recorder) arrived(failing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.arrivals = append(r.history.arrivals, arrival{r.now(), failing})
}

func (r *recorder) wentDown() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.down = r.now()
}

func (r *recorder) cameBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.up = r.now()
}

// observe is an [observe.Func]: the breaker tells it of each change, in order.
func (r *recorder) observe(_ context.Context, e observe.Event) {
	if e.Kind != observe.StateChange {
		return
	}
	c := change{at: e.Time.Sub(r.start), from: e.From, to: e.To, reason: e.Reason}
	if e.To == open {
		c.cooldown = e.Delay
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.changes = append(r.history.changes, c)
}

// until returns the history of a run that lasts until end. It may hold a little more than that.
func (r *recorder) until(end time.Duration) history {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.history
	h.end = end
	return h
}
