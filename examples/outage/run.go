package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	healthyTime = time.Second            // before the outage
	tailTime    = time.Second            // after the first answer that follows it
	patience    = 5 * time.Second        // for that answer, beyond the longest cooldown
	tick        = 250 * time.Millisecond // between two lines of the timeline
)

// trial is one run of the clients through an outage.
type trial struct {
	network network
	outage  time.Duration
	length  time.Duration // of the whole; if zero, until some time after the dependency has answered again
	watch   func(h *history)
}

// run lets clients ask a dependency of its own that fails and recovers. What happens is written down in r.
func (t trial) run(ctx context.Context, r *recorder, ask ask) (history, error) {
	d, err := startDependency(t.network, r.arrived)
	if err != nil {
		return history{}, err
	}
	running, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { t.phases(running, d, r) })
	for range clients {
		all.Go(func() { client(running, d.api, ask, r) })
	}

	end := t.follow(running, r)
	stop() // cancels what is in flight, as the end of any service does
	all.Wait()
	return r.until(end), errors.Join(ctx.Err(), d.close())
}

// follow watches the run until it is over, and returns when that was.
func (t trial) follow(ctx context.Context, r *recorder) time.Duration {
	at := tick
	for ; sleep(ctx, at-r.now()); at += tick {
		h := r.until(at)
		t.watch(&h)
		if t.over(&h) {
			break
		}
	}
	return at
}

// phases takes the dependency down and brings it back.
func (t trial) phases(ctx context.Context, d *dependency, r *recorder) {
	if !sleep(ctx, healthyTime-r.now()) {
		return
	}
	r.wentDown()
	d.failing.Store(true)
	if !sleep(ctx, healthyTime+t.outage-r.now()) {
		return
	}
	d.failing.Store(false)
	r.cameBack()
}

// over reports whether the run has come to its end.
func (t trial) over(h *history) bool {
	if t.length > 0 {
		return h.end >= t.length
	}
	if after, ok := h.recovery(); ok {
		return h.end >= h.up+after+tailTime
	}
	return h.up > 0 && h.end >= h.up+maxCooldown+patience
}
