package otelx

import (
	"container/list"
	"context"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/switchgear-go/switchgear/policy/observe"
)

type ownerKey struct{ policy, name string }

// owner stands for all policies of one type and name, which are one to whoever reads metrics. Totals are its own, not the
// policies': a policy that is made again under its name starts at 0, and a total that falls is a negative number to a
// delta reader. After the last policy is gone they are reported once more and then forgotten.
//
// Everything in it is guarded by registry.mu.
type owner struct {
	ownerKey
	place     *list.Element
	members   []*member // the policies
	rows      []row     // the distinct rows of all its policies, in order of appearance; only appended to
	past      []int64   // for each of rows the total of policies that are gone
	durations *durations
	collected bool // some collection has reported it
	farewell  bool // without policies, and the totals were reported once more
	forgotten bool
}

// row is one series.
type row struct {
	observe.Row
	instrument *instrument // nil if it cannot be reported
	opts       []metric.ObserveOption
}

// member is one policy: the [observe.Probe] it has.
type member struct {
	registry  *registry
	owner     *owner
	source    observe.Source // leads to the policy only weakly
	durations *durations

	dead bool // Live said so; guarded by registry.collecting

	at    int     // place in owner.members; guarded by registry.mu, as are the next three
	index []int   // where its rows stand in owner.rows; nil until somebody reads it
	seen  []int64 // its totals when it was last read
	gone  bool    // no longer among owner.members
}

// Enabled reports whether a histogram of the policy has a reader.
func (m *member) Enabled(ctx context.Context) bool {
	return m.durations != nil && m.durations.enabled(ctx)
}

// Record records a duration.
func (m *member) Record(ctx context.Context, row int, d time.Duration) {
	if m.durations != nil {
		m.durations.record(ctx, row, d)
	}
}

// Detach takes leave of the policy.
func (m *member) Detach() { m.registry.detach(m) }

// read fills v, which holds None, with the values of the policy's rows. Should Live panic, the counts are still good: to
// leave them out would make a delta reader count them twice when they return.
func (m *member) read(v []int64) {
	n := m.counts(v)
	if m.source.Live == nil {
		return
	}
	live := v[n:]
	defer func() {
		if p := recover(); p != nil {
			for i := range live {
				live[i] = observe.None
			}
			otel.Handle(fmt.Errorf("otelx: metrics of %s %q: panic: %v", m.source.Policy, m.source.Name, p))
		}
	}()
	m.dead = !m.source.Live(live)
}

// counts fills the part of v that the policy counts in its atomics, and returns how many rows that is.
func (m *member) counts(v []int64) int {
	n := min(len(v), len(m.source.Counts))
	for i := range n {
		v[i] = m.source.Counts[i].Load()
	}
	return n
}

// noteLocked completes v, what a policy reads now, by what it read before: a total never falls, not even with a clock that is
// moved back, and one that cannot be read stays where it was.
func (ow *owner) noteLocked(is *instruments, m *member, v []int64) {
	ow.indexLocked(is, m)
	for n, i := range m.index {
		if ow.rows[i].monotonic() {
			v[n] = max(v[n], m.seen[n]) // None is below all
			m.seen[n] = v[n]
		}
	}
}

// inheritLocked adds a policy's totals, by its last counts and what else was last read of it, to those of the past.
func (ow *owner) inheritLocked(is *instruments, m *member) {
	ow.indexLocked(is, m)
	last := slices.Repeat([]int64{observe.None}, len(m.source.Rows))
	m.counts(last)
	for n, i := range m.index {
		if ow.rows[i].monotonic() {
			ow.past[i] = add(ow.past[i], max(last[n], m.seen[n]))
		}
	}
}

func (ow *owner) removeLocked(m *member) {
	last := len(ow.members) - 1
	ow.members[m.at] = ow.members[last]
	ow.members[m.at].at = m.at
	ow.members[last] = nil
	ow.members = shrunk(ow.members[:last])
	m.gone = true
}

// indexLocked finds the rows of a policy among those of its owner, where they nearly always stand in the same places.
func (ow *owner) indexLocked(is *instruments, m *member) {
	if m.index != nil {
		return
	}
	m.index = make([]int, len(m.source.Rows))
	m.seen = slices.Repeat([]int64{observe.None}, len(m.source.Rows))
	for n, wanted := range m.source.Rows {
		if n < len(ow.rows) && same(ow.rows[n].Row, wanted) {
			m.index[n] = n
			continue
		}
		i := slices.IndexFunc(ow.rows, func(r row) bool { return same(r.Row, wanted) })
		if i < 0 {
			i = len(ow.rows)
			ow.rows = append(ow.rows, newRowLocked(is, ow.ownerKey, wanted))
			ow.past = append(ow.past, observe.None)
		}
		m.index[n] = i
	}
}

func newRowLocked(is *instruments, key ownerKey, r observe.Row) row {
	i := is.observableLocked(key.policy, r)
	if i == nil {
		return row{Row: r}
	}
	return row{r, i, []metric.ObserveOption{metric.WithAttributeSet(i.attributes(key.name, r))}}
}

func (r row) monotonic() bool { return r.instrument != nil && r.instrument.monotonic() }

func same(a, b observe.Row) bool { return a.Metric == b.Metric && slices.Equal(a.Attrs, b.Attrs) }
