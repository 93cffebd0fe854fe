// Package semconv names what is emitted: metrics, attributes and their closed sets of values, events.
//
// The names and tables are generated from otelx/registry: make generate.
package semconv

import "log/slog"

// Instrument is the kind of an OpenTelemetry instrument.
type Instrument uint8

// The kinds in use. Observable ones are read when telemetry is collected.
const (
	Histogram Instrument = iota
	ObservableCounter
	ObservableUpDownCounter
)

// Metric describes one metric.
type Metric struct {
	Name        string
	Instrument  Instrument
	Unit        string
	Description string
	NameKey     string      // the attribute that carries the policy's name
	Seconds     bool        // its rows hold nanoseconds and it is reported in seconds, as a float
	Attributes  []Attribute // beside the name
	Reported    string      // when it is; "" for always
	Boundaries  []float64   // of a histogram's buckets
}

// Type is what values an attribute has.
type Type uint8

// The types in use.
const (
	String Type = iota
	Int
	Double
)

// Attribute describes an attribute as one metric or event has it.
type Attribute struct {
	Key      string
	Type     Type
	Values   []string // all that it may have; nil for any
	Later    []string // those of Values that a metric reports from their first use on; the others start at zero
	Optional string   // when it is there; "" for always
}

// Event describes one event: a span event, a log record, or both.
type Event struct {
	Name       string
	Severity   slog.Level
	SeverityOf map[string]slog.Level // instead, by the value of SeverityBy
	SeverityBy string
	Terminal   bool // it is never left out of a span that has many
	Attributes []Attribute
}
