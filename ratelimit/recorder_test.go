package ratelimit

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/switchgear-go/switchgear/policy/observe"
)

// recorder is an observer that tests read.
type recorder struct {
	mu        sync.Mutex
	events    []observe.Event
	contexts  []context.Context
	source    observe.Source
	waits     map[string][]time.Duration // by result
	onEvent   func()
	onMeasure func()
}

func (r *recorder) Observe(ctx context.Context, e observe.Event) {
	r.mu.Lock()
	r.events, r.contexts = append(r.events, e), append(r.contexts, ctx)
	r.mu.Unlock()
	if r.onEvent != nil {
		r.onEvent()
	}
}

func (r *recorder) Attach(s observe.Source) observe.Probe {
	r.source = s
	return r
}

func (r *recorder) Enabled(context.Context) bool { return true }
func (r *recorder) Detach()                      {}

func (r *recorder) Record(_ context.Context, row int, d time.Duration) {
	r.mu.Lock()
	if r.waits == nil {
		r.waits = map[string][]time.Duration{}
	}
	key := r.source.Durations[row].Metric + " " + r.source.Durations[row].Attrs[0].Value
	r.waits[key] = append(r.waits[key], d)
	r.mu.Unlock()
	if r.onMeasure != nil {
		r.onMeasure()
	}
}

// rows returns what a collection would report.
func (r *recorder) rows(t *testing.T) map[string]int64 {
	t.Helper()
	got := map[string]int64{}
	live := make([]int64, len(r.source.Rows)-len(r.source.Counts))
	for i := range live {
		live[i] = observe.None
	}
	if !r.source.Live(live) {
		t.Error("the policy is gone")
	}
	for i, row := range r.source.Rows {
		key := row.Metric
		for _, a := range row.Attrs {
			key += " " + a.Value
		}
		if i < len(r.source.Counts) {
			got[key] = r.source.Counts[i].Load()
		} else if v := live[i-len(r.source.Counts)]; v != observe.None {
			got[key] = v
		}
	}
	return got
}
