package otelx

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// instruments are the instruments of one meter, by the metric's name. All are made at once, and once for an observer: in a
// callback that deadlocks, and a global meter without an SDK keeps whatever is made twice.
type instruments struct {
	byName map[string]*instrument
	warned atomic.Bool // a metric has come near the SDK's limit
	stray  error       // the first row that no instrument takes; guarded by registry.mu
}

// instrument is a metric as a provider made it: one of the last three fields is set, or none if it could not.
type instrument struct {
	semconv.Metric
	ints   metric.Int64Observable
	floats metric.Float64Observable
	hist   metric.Float64Histogram

	observed int    // series in the present collection; guarded by registry.collecting
	recorded series // of hist
}

// newInstruments makes the instruments of the table. What fails is left out and told in the error.
func newInstruments(meter metric.Meter) (*instruments, []metric.Observable, error) {
	made := &instruments{byName: make(map[string]*instrument, len(semconv.Metrics))}
	var observables []metric.Observable
	var errs []error
	for _, m := range semconv.Metrics {
		i := &instrument{Metric: m}
		made.byName[m.Name] = i
		if err := i.create(meter); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.Name, err))
			continue
		}
		switch {
		case i.ints != nil:
			observables = append(observables, i.ints)
		case i.floats != nil:
			observables = append(observables, i.floats)
		}
	}
	return made, observables, errors.Join(errs...)
}

func (i *instrument) create(meter metric.Meter) error {
	unit, text := metric.WithUnit(i.Unit), metric.WithDescription(i.Description)
	switch {
	case i.Instrument == semconv.Histogram:
		h, err := meter.Float64Histogram(i.Name, unit, text, metric.WithExplicitBucketBoundaries(i.Boundaries...))
		if err != nil {
			return err
		}
		i.hist = h
	case i.Instrument == semconv.ObservableCounter && i.Seconds:
		c, err := meter.Float64ObservableCounter(i.Name, unit, text)
		if err != nil {
			return err
		}
		i.floats = c
	case i.Instrument == semconv.ObservableCounter:
		c, err := meter.Int64ObservableCounter(i.Name, unit, text)
		if err != nil {
			return err
		}
		i.ints = c
	default:
		c, err := meter.Int64ObservableUpDownCounter(i.Name, unit, text)
		if err != nil {
			return err
		}
		i.ints = c
	}
	return nil
}

// monotonic reports whether the metric's rows are totals, which never fall.
func (i *instrument) monotonic() bool { return i.Instrument == semconv.ObservableCounter }

// observe reports one row of the present collection.
func (i *instrument) observe(o metric.Observer, v int64, opts []metric.ObserveOption) {
	i.observed++
	if i.floats != nil {
		o.ObserveFloat64(i.floats, time.Duration(v).Seconds(), opts...)
		return
	}
	o.ObserveInt64(i.ints, v, opts...)
}

// observableLocked returns the instrument of a row that is read at collection, or nil.
func (is *instruments) observableLocked(policy string, row observe.Row) *instrument {
	i := is.byName[row.Metric]
	if i == nil || i.Instrument == semconv.Histogram {
		is.noteStrayLocked(policy, row)
		return nil
	}
	if i.ints == nil && i.floats == nil {
		return nil
	}
	return i
}

// histogramLocked returns the instrument of a row of durations, or nil.
func (is *instruments) histogramLocked(policy string, row observe.Row) *instrument {
	i := is.byName[row.Metric]
	if i == nil || i.Instrument != semconv.Histogram {
		is.noteStrayLocked(policy, row)
		return nil
	}
	if i.hist == nil {
		return nil
	}
	return i
}

func (is *instruments) noteStrayLocked(policy string, row observe.Row) {
	if is.stray == nil {
		is.stray = fmt.Errorf("otelx: policy type %s: not a metric of its kind: %q", policy, row.Metric)
	}
}

// attributes returns the attributes of a row of the policy of that name.
func (i *instrument) attributes(name string, row observe.Row) attribute.Set {
	kvs := make([]attribute.KeyValue, 0, 1+len(row.Attrs))
	kvs = append(kvs, attribute.String(i.NameKey, name))
	for _, a := range row.Attrs {
		kvs = append(kvs, attribute.String(a.Key, a.Value))
	}
	return attribute.NewSet(kvs...)
}
