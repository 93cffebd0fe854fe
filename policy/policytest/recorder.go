package policytest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/switchgear-go/switchgear/policy/observe"
)

// Recorder is an [observe.Observer] that records what policies report, for tests to read. The zero value is ready to use:
// give it to policies as their Observer. In a [Case], the observer that Policy gets is a Recorder. It is safe for concurrent
// use.
type Recorder struct {
	mu      sync.Mutex
	start   time.Time     // of the first event, or of the case; guarded by mu
	events  []told        // guarded by mu
	sources []*recordable // guarded by mu
	onEvent func(ctx context.Context, t term)
}

// told is an event, and when it was told.
type told struct {
	event observe.Event
	at    time.Duration
}

// recordable is a policy that can be read, and the recorder's side of it.
type recordable struct {
	observe.Source
	mu        sync.Mutex
	durations [][]time.Duration // by row; guarded by mu
}

// Observe keeps e.
func (r *Recorder) Observe(ctx context.Context, e observe.Event) {
	r.mu.Lock()
	if r.start.IsZero() {
		r.start = time.Now()
	}
	at := time.Since(r.start)
	r.events = append(r.events, told{e, at})
	hook := r.onEvent
	r.mu.Unlock()
	if hook != nil {
		hook(ctx, eventTerm(e, at))
	}
}

// Attach keeps what can be read of a policy.
func (r *Recorder) Attach(s observe.Source) observe.Probe {
	a := &recordable{Source: s, durations: make([][]time.Duration, len(s.Durations))}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sources = append(r.sources, a)
	return a
}

// Events returns the events so far, in the order in which they were told.
func (r *Recorder) Events() []observe.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := make([]observe.Event, len(r.events))
	for i, t := range r.events {
		events[i] = t.event
	}
	return events
}

// String returns the sequence of events so far, each with all its arguments, or none.
func (r *Recorder) String() string { return joined(r.terms()) }

// Match returns nil if the events so far match a sequence such as
//
//	retry → open(api) → reject(breaker) → …
//
// and otherwise an error with both. An event is a word with arguments. A sequence may leave out any of the arguments; those
// it has must be in this order:
//
//	closed, open, half_open, …   (name, reason, wait drawn)              a breaker's new state
//	reject                       (type, name, a breaker's state, result) types are breaker, bulkhead, limiter, …
//	retry                        (name, attempt, wait before it)
//	exhausted                    (name, result, attempts)
//	timeout                      (name, limit)
//	hedge                        (name, attempt, time since the last, result)
//	fallback                     (name)
//
// open@2s must be reported 2s after the start of the case or, outside a case, after the first event. retry×3 stands for three
// in a row, … for any number of any events, and none for no event. You may write -> for →, * for × and ... for ….
func (r *Recorder) Match(sequence string) error {
	seq, err := parseSequence(sequence)
	if err != nil {
		return err
	}
	got := r.terms()
	if _, over := align(got, seq); over > 0 {
		return fmt.Errorf("policytest: events are %s, want %s", joined(got), sequence)
	}
	return nil
}

// Count returns the sum of the numbers in all rows that match row. A row is a metric, without the prefix "switchgear.", with
// arguments: the policy's name, then the values of the metric's attributes in the order of docs/telemetry.md. As in
// [Recorder.Match], any of them may be left out:
//
//	r.Count("retry.calls(recovered)")
//	r.Count("circuit_breaker.transitions(payments-api, closed, open)")
//	r.Count("bulkhead.usage")
//
// It panics if there is no such row, since that is a mistake in the test; the panic lists the rows there are.
func (r *Recorder) Count(row string) int64 {
	sum, err := r.count(row)
	if err != nil {
		panic(err)
	}
	return sum
}

// Rows returns all numbers that are reported now, by their row in full, such as "bulkhead.calls(db, acquired)".
func (r *Recorder) Rows() map[string]int64 {
	rows := map[string]int64{}
	r.each(func(t term, v int64) {
		if v != observe.None {
			rows[t.String()] += v
		}
	})
	return rows
}

// State returns the state of the breaker of that name, "" if there is none. If name is empty, it is that of the only breaker.
func (r *Recorder) State(name string) string {
	states := r.states()
	if name == "" && len(states) == 1 {
		for _, s := range states {
			return s
		}
	}
	return states[name]
}

// Durations returns what was recorded so far of durations such as "bulkhead.wait.duration(acquired)", in the order in which
// it was recorded, policy by policy. It panics if there is no such row.
func (r *Recorder) Durations(row string) []time.Duration {
	want, _, err := parseTerm(strings.TrimPrefix(row, prefix))
	if err != nil {
		panic(err)
	}
	var all []time.Duration
	var known []string
	found := false
	for _, a := range r.attached() {
		a.mu.Lock()
		for i, d := range a.durations {
			t := rowTerm(a.Name, a.Durations[i])
			known = append(known, t.String())
			if want.covers(t) {
				found = true
				all = append(all, d...)
			}
		}
		a.mu.Unlock()
	}
	if !found {
		panic(unknownRow(row, known))
	}
	return all
}

// Reset forgets the events and durations so far. It does not change the numbers, which the policies keep.
func (r *Recorder) Reset() {
	r.mu.Lock()
	r.events = nil
	r.mu.Unlock()
	for _, a := range r.attached() {
		a.mu.Lock()
		clear(a.durations)
		a.mu.Unlock()
	}
}

func (r *Recorder) terms() []term {
	r.mu.Lock()
	defer r.mu.Unlock()
	terms := make([]term, len(r.events))
	for i, t := range r.events {
		terms[i] = eventTerm(t.event, t.at)
	}
	return terms
}

func (r *Recorder) attached() []*recordable {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sources)
}

func (r *Recorder) count(row string) (sum int64, err error) {
	want, _, err := parseTerm(strings.TrimPrefix(row, prefix))
	if err != nil {
		return 0, err
	}
	var known []string
	found := false
	r.each(func(t term, v int64) {
		known = append(known, t.String())
		if !want.covers(t) {
			return
		}
		found = true
		if v != observe.None {
			sum += v
		}
	})
	if !found {
		return 0, unknownRow(row, known)
	}
	return sum, nil
}

// states returns the state of each policy that reports one.
func (r *Recorder) states() map[string]string {
	states := map[string]string{}
	r.each(func(t term, v int64) {
		if strings.HasSuffix(t.word, ".status") && v == 1 && len(t.args) > 1 {
			states[t.args[0]] = t.args[1]
		}
	})
	return states
}

// each visits every row there is. Values of one policy are of one moment.
func (r *Recorder) each(visit func(t term, v int64)) {
	for _, a := range r.attached() {
		live := make([]int64, len(a.Rows)-len(a.Counts))
		for i := range live {
			live[i] = observe.None
		}
		if !a.Live(live) {
			for i := range live {
				live[i] = observe.None // the policy is gone
			}
		}
		for i, row := range a.Rows {
			if i < len(a.Counts) {
				visit(rowTerm(a.Name, row), a.Counts[i].Load())
			} else {
				visit(rowTerm(a.Name, row), live[i-len(a.Counts)])
			}
		}
	}
}

const prefix = "switchgear."

func rowTerm(name string, row observe.Row) term {
	t := term{word: strings.TrimPrefix(row.Metric, prefix)}
	if name != "" {
		t.args = append(t.args, name)
	}
	for _, a := range row.Attrs {
		t.args = append(t.args, a.Value)
	}
	return t
}

func unknownRow(row string, known []string) error {
	set := map[string]bool{}
	for _, k := range known {
		set[k] = true
	}
	if len(set) == 0 {
		return fmt.Errorf("policytest: no row matches %q: no policy reports to this observer", row)
	}
	return fmt.Errorf("policytest: no row matches %q; there are:\n\t%s", row, strings.Join(slices.Sorted(maps.Keys(set)), "\n\t"))
}

func (a *recordable) Enabled(context.Context) bool { return true }
func (a *recordable) Detach()                      {}

func (a *recordable) Record(_ context.Context, row int, d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.durations[row] = append(a.durations[row], d)
}
