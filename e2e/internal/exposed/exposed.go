// Package exposed says what the registry's metrics and attributes are called once they are in Prometheus.
package exposed

import (
	"fmt"

	"github.com/prometheus/otlptranslator"

	"github.com/switchgear-go/switchgear/internal/semconv"
)

// Kind is what may be done with the values of a series.
type Kind string

// The kinds in use.
const (
	Counter Kind = "counter" // it only rises, until a restart
	Gauge   Kind = "gauge"
)

// Series is a name that queries may use.
type Series struct {
	Name   string
	Kind   Kind
	Metric *semconv.Metric
	Labels map[string][]string // all that may be there, with all values that they may have; nil for any
}

// All returns every series of the registry by name: three for a histogram.
func All() (map[string]Series, error) {
	all := map[string]Series{}
	for n := range semconv.Metrics {
		m := &semconv.Metrics[n]
		name, err := Name(m)
		if err != nil {
			return nil, err
		}
		labels, err := labelsOf(m)
		if err != nil {
			return nil, err
		}
		switch m.Instrument {
		case semconv.Histogram:
			buckets := map[string][]string{"le": nil}
			for label, values := range labels {
				buckets[label] = values
			}
			all[name+"_bucket"] = Series{name + "_bucket", Counter, m, buckets}
			all[name+"_sum"] = Series{name + "_sum", Counter, m, labels}
			all[name+"_count"] = Series{name + "_count", Counter, m, labels}
		case semconv.ObservableCounter:
			all[name] = Series{name, Counter, m, labels}
		default:
			all[name] = Series{name, Gauge, m, labels}
		}
	}
	return all, nil
}

var types = map[semconv.Instrument]otlptranslator.MetricType{
	semconv.Histogram:               otlptranslator.MetricTypeHistogram,
	semconv.ObservableCounter:       otlptranslator.MetricTypeMonotonicCounter,
	semconv.ObservableUpDownCounter: otlptranslator.MetricTypeNonMonotonicCounter,
}

// Name returns what a metric is called, by the translation that OpenTelemetry's exporter, the Collector and Prometheus'
// own OTLP receiver have in common.
func Name(m *semconv.Metric) (string, error) {
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	kind, ok := types[m.Instrument]
	if !ok {
		return "", fmt.Errorf("%s: no translation of instrument %d", m.Name, m.Instrument)
	}
	return namer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: kind})
}

// Label returns what an attribute is called.
func Label(key string) (string, error) {
	namer := otlptranslator.LabelNamer{}
	return namer.Build(key)
}

func labelsOf(m *semconv.Metric) (map[string][]string, error) {
	labels := map[string][]string{"job": nil, "instance": nil}
	attributes := append([]semconv.Attribute{{Key: m.NameKey}}, m.Attributes...)
	for _, a := range attributes {
		label, err := Label(a.Key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		labels[label] = a.Values
	}
	return labels, nil
}
