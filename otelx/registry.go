package otelx

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/switchgear-go/switchgear/policy/observe"
)

// registry is everything that is read when metrics are collected. One callback reads it all, and lives as long as its
// provider: to unregister one inside a callback deadlocks, and one for each policy would outlive the policy.
//
// Two observations of the same attributes in one collection add up, so the policies of one type and name have one [owner],
// which sums them.
type registry struct {
	instruments *instruments

	collecting sync.Mutex // held through a collection; taken before mu
	owned      []*owner   // guarded by collecting, as are the next three: scratch of a collection
	members    []*member
	values     []int64
	sums       []int64

	mu        sync.Mutex          // bookkeeping only: no policy, SDK or error handler is called under it
	owners    map[ownerKey]*owner // guarded by mu
	order     list.List           // of *owner, by creation; guarded by mu. At the SDK's limit those observed first win
	peak      int                 // of len(owners) since it was made; guarded by mu
	strayTold bool                // guarded by mu
}

func newRegistry(meter metric.Meter) *registry {
	r := &registry{owners: make(map[ownerKey]*owner)}
	var observables []metric.Observable
	var err error
	r.instruments, observables, err = newInstruments(meter)
	if len(observables) > 0 {
		_, failed := meter.RegisterCallback(r.collect, observables...)
		err = errors.Join(err, failed)
	}
	if err != nil {
		otel.Handle(fmt.Errorf("otelx: metrics left out: %w", err))
	}
	return r
}

// unlock unlocks mu and reports what came up under it.
func (r *registry) unlock() {
	err := r.instruments.stray
	report := err != nil && !r.strayTold
	r.strayTold = r.strayTold || report
	r.mu.Unlock()
	if report {
		otel.Handle(err)
	}
}

// attach adds a policy to the owner of its type and name.
func (r *registry) attach(s observe.Source) *member {
	r.mu.Lock()
	defer r.unlock()
	key := ownerKey{s.Policy, s.Name}
	ow := r.owners[key]
	if ow == nil {
		ow = &owner{ownerKey: key}
		ow.place = r.order.PushBack(ow)
		r.owners[key] = ow
		r.peak = max(r.peak, len(r.owners))
	}
	m := &member{registry: r, owner: ow, source: s, at: len(ow.members)}
	ow.members = append(ow.members, m)
	ow.farewell = false
	if len(s.Durations) > 0 {
		if !ow.durations.of(s.Durations) {
			ow.durations = newDurationsLocked(r.instruments, s.Policy, s.Name, s.Durations)
		}
		m.durations = ow.durations
	}
	return m
}

// detach removes a policy that is gone.
func (r *registry) detach(m *member) {
	r.mu.Lock()
	defer r.unlock()
	if m.gone {
		return // a collection was first to find out
	}
	r.retireLocked(m)
}

// retireLocked takes leave of a policy: its totals go over to its owner, unless nobody has seen or will see that.
func (r *registry) retireLocked(m *member) {
	ow := m.owner
	if len(ow.members) == 1 && !ow.collected {
		r.forgetLocked(ow) // without an SDK nobody would ever come to take it away
	} else {
		ow.inheritLocked(r.instruments, m)
	}
	ow.removeLocked(m)
}

func (r *registry) forgetLocked(ow *owner) {
	ow.forgotten = true
	r.order.Remove(ow.place)
	delete(r.owners, ow.ownerKey)
	if n := len(r.owners); r.peak > roomy && n < r.peak/4 { // a map keeps the room it once needed
		owners := make(map[ownerKey]*owner, n)
		maps.Copy(owners, r.owners)
		r.owners, r.peak = owners, n
	}
}

// roomy is from how many elements on room that is no longer needed is given back.
const roomy = 256

// shrunk returns s, in less room if it needs little of what it has.
func shrunk[T any](s []T) []T {
	if cap(s) > roomy && len(s) < cap(s)/4 {
		return append(make([]T, 0, 2*len(s)), s...)
	}
	return s
}

// collect is the callback. What goes wrong with one owner is reported and costs the others nothing.
func (r *registry) collect(_ context.Context, o metric.Observer) error {
	r.collecting.Lock()
	defer r.collecting.Unlock()
	for _, i := range r.instruments.byName {
		i.observed = 0
	}
	r.mu.Lock()
	for e := r.order.Front(); e != nil; e = e.Next() {
		r.owned = append(r.owned, e.Value.(*owner))
	}
	r.mu.Unlock()
	for _, ow := range r.owned {
		r.observe(o, ow)
	}
	clear(r.owned)
	r.owned = shrunk(r.owned)[:0]
	r.members, r.values = shrunk(r.members), shrunk(r.values)
	for name, i := range r.instruments.byName {
		if i.observed >= nearLimit {
			r.instruments.warn(name)
		}
	}
	return nil
}

// observe reports one owner.
func (r *registry) observe(o metric.Observer, ow *owner) {
	defer func() {
		if p := recover(); p != nil {
			otel.Handle(fmt.Errorf("otelx: metrics of %s %q: panic: %v", ow.policy, ow.name, p))
		}
	}()
	r.read(ow)
	rows := r.sum(ow)
	for n, sum := range r.sums {
		if sum != observe.None && rows[n].instrument != nil {
			rows[n].instrument.observe(o, sum, rows[n].opts)
		}
	}
}

// read reads the policies of ow into r.members and r.values. It holds no lock of the registry: a policy takes its own.
func (r *registry) read(ow *owner) {
	r.mu.Lock()
	r.members = append(r.members[:0], ow.members...)
	r.mu.Unlock()
	r.values = r.values[:0]
	for _, m := range r.members {
		from := len(r.values)
		for range m.source.Rows {
			r.values = append(r.values, observe.None)
		}
		m.read(r.values[from:])
	}
}

// sum adds up what was read into r.sums, and returns the rows that it means.
func (r *registry) sum(ow *owner) []row {
	r.mu.Lock()
	defer r.unlock()
	r.sums = r.sums[:0]
	defer clear(r.members)
	if ow.forgotten {
		return nil
	}
	values := r.values
	for _, m := range r.members {
		v := values[:len(m.source.Rows)]
		values = values[len(v):]
		if m.gone {
			continue // since it was read; it has left its totals
		}
		if m.dead {
			r.retireLocked(m)
			continue
		}
		ow.noteLocked(r.instruments, m, v)
	}
	if ow.forgotten {
		return nil
	}
	if len(ow.members) == 0 {
		if ow.farewell {
			r.forgetLocked(ow)
			return nil
		}
		ow.farewell = true
	}
	ow.collected = true
	r.sums = append(r.sums, ow.past...)
	values = r.values
	for _, m := range r.members {
		v := values[:len(m.source.Rows)]
		values = values[len(v):]
		if m.gone {
			continue
		}
		for n, v := range v {
			r.sums[m.index[n]] = add(r.sums[m.index[n]], v)
		}
	}
	return ow.rows
}

// add adds two values of a row, each of which may be missing.
func add(a, b int64) int64 {
	switch {
	case a == observe.None:
		return b
	case b == observe.None:
		return a
	}
	return a + b
}
