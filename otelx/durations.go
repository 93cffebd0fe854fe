package otelx

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/switchgear-go/switchgear/policy/observe"
)

// durations are the histogram rows of the policies of one type and name.
type durations struct {
	instruments  *instruments
	policy, name string
	table        []observe.Row
	rows         []duration
	hists        []*instrument // the distinct ones of rows
}

// duration is one row. Its options are built when it is first recorded: attributes built in a call cost more than the rest
// of it, and without an SDK they are never needed.
type duration struct {
	instrument *instrument // nil if it could not be made
	opts       atomic.Pointer[[]metric.RecordOption]
}

func newDurationsLocked(is *instruments, policy, name string, table []observe.Row) *durations {
	d := &durations{instruments: is, policy: policy, name: name, table: table, rows: make([]duration, len(table))}
	for n := range table {
		var i *instrument
		if n > 0 && table[n].Metric == table[n-1].Metric {
			i = d.rows[n-1].instrument
		} else {
			i = is.histogramLocked(policy, table[n])
		}
		d.rows[n].instrument = i
		if i != nil && !slices.Contains(d.hists, i) {
			d.hists = append(d.hists, i)
		}
	}
	return d
}

// of reports whether d serves policies whose rows are table, one and the same for all policies of a type.
func (d *durations) of(table []observe.Row) bool {
	return d != nil && len(d.table) == len(table) && &d.table[0] == &table[0]
}

func (d *durations) enabled(ctx context.Context) bool {
	for _, i := range d.hists {
		if i.hist.Enabled(ctx) {
			return true
		}
	}
	return false
}

func (d *durations) record(ctx context.Context, row int, took time.Duration) {
	if row < 0 || row >= len(d.rows) || d.rows[row].instrument == nil {
		return
	}
	r := &d.rows[row]
	opts := r.opts.Load()
	if opts == nil {
		if !r.instrument.hist.Enabled(ctx) {
			return
		}
		opts = d.prepare(row)
	}
	r.instrument.hist.Record(ctx, took.Seconds(), *opts...)
}

// prepare builds the options of a row. Two calls at once may both do it, to the same effect.
func (d *durations) prepare(row int) *[]metric.RecordOption {
	r := &d.rows[row]
	set := r.instrument.attributes(d.name, d.table[row])
	if r.instrument.recorded.add(set) {
		d.instruments.warn(r.instrument.Name)
	}
	opts := []metric.RecordOption{metric.WithAttributeSet(set)}
	r.opts.Store(&opts)
	return &opts
}
