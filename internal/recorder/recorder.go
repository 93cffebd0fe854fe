// Package recorder has the observer with which the tests of policies look at what one policy reports.
package recorder

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/switchgear-go/switchgear/policy/observe"
)

// Recorder keeps what one policy reports, for tests to read while nothing runs. The zero value is ready.
type Recorder struct {
	mu        sync.Mutex
	Events    []observe.Event
	Contexts  []context.Context // of the events
	Source    observe.Source
	Waits     map[string][]time.Duration // by metric and result
	OnEvent   func()                     // if not nil, called after each event
	OnMeasure func()                     // if not nil, called after each duration
}

// Observe keeps e and ctx.
func (r *Recorder) Observe(ctx context.Context, e observe.Event) {
	r.mu.Lock()
	r.Events, r.Contexts = append(r.Events, e), append(r.Contexts, ctx)
	r.mu.Unlock()
	if r.OnEvent != nil {
		r.OnEvent()
	}
}

// Attach keeps s.
func (r *Recorder) Attach(s observe.Source) observe.Probe {
	r.Source = s
	return r
}

// Enabled returns true.
func (r *Recorder) Enabled(context.Context) bool { return true }

// Detach does nothing.
func (r *Recorder) Detach() {}

// Record keeps d.
func (r *Recorder) Record(_ context.Context, row int, d time.Duration) {
	r.mu.Lock()
	if r.Waits == nil {
		r.Waits = map[string][]time.Duration{}
	}
	key := r.Source.Durations[row].Metric + " " + r.Source.Durations[row].Attrs[0].Value
	r.Waits[key] = append(r.Waits[key], d)
	r.mu.Unlock()
	if r.OnMeasure != nil {
		r.OnMeasure()
	}
}

// Rows returns what a collection would report.
func (r *Recorder) Rows(t *testing.T) map[string]int64 {
	t.Helper()
	got := map[string]int64{}
	live := make([]int64, len(r.Source.Rows)-len(r.Source.Counts))
	for i := range live {
		live[i] = observe.None
	}
	if !r.Source.Live(live) {
		t.Error("the policy is gone")
	}
	for i, row := range r.Source.Rows {
		key := row.Metric
		for _, a := range row.Attrs {
			key += " " + a.Value
		}
		if i < len(r.Source.Counts) {
			got[key] = r.Source.Counts[i].Load()
		} else if v := live[i-len(r.Source.Counts)]; v != observe.None {
			got[key] = v
		}
	}
	return got
}
