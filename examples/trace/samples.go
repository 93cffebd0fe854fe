package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// sample is what one collection says of the breaker.
type sample struct {
	at     time.Duration
	states []string           // those whose status is 1
	calls  map[string]int64   // by outcome
	spent  map[string]float64 // seconds by state
}

// collect reads the metrics, as an exporter does.
func collect(ctx context.Context, reader *sdkmetric.ManualReader, at time.Duration) (sample, error) {
	s := sample{at: at, calls: map[string]int64{}, spent: map[string]float64{}}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		return s, err
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			s.read(m)
		}
	}
	return s, nil
}

func (s *sample) read(m metricdata.Metrics) {
	switch m.Name {
	case "switchgear.circuit_breaker.status":
		for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
			if state, _ := p.Attributes.Value(newState); p.Value == 1 {
				s.states = append(s.states, state.AsString())
			}
		}
	case "switchgear.circuit_breaker.calls":
		for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
			outcome, _ := p.Attributes.Value("switchgear.call.outcome")
			s.calls[outcome.AsString()] += p.Value
		}
	case "switchgear.circuit_breaker.time":
		for _, p := range m.Data.(metricdata.Sum[float64]).DataPoints {
			state, _ := p.Attributes.Value(newState)
			s.spent[state.AsString()] = p.Value
		}
	}
}

// broken returns what is wrong with the telemetry.
func (r *recording) broken() error {
	var faults []error
	if len(r.spans) != r.started {
		faults = append(faults, fmt.Errorf("%d spans started, %d ended", r.started, len(r.spans)))
	}
	var before sample
	seen := map[string]bool{}
	for _, s := range r.samples {
		if len(s.states) != 1 {
			faults = append(faults, fmt.Errorf("at %v the breaker is in the states %q", s.at, s.states))
			continue
		}
		seen[s.states[0]] = true
		for outcome, n := range before.calls {
			if s.calls[outcome] < n {
				faults = append(faults, fmt.Errorf("at %v the count of %s fell", s.at, outcome))
			}
		}
		before = s
	}
	for _, state := range []string{"closed", "open", "half_open"} {
		if !seen[state] {
			faults = append(faults, fmt.Errorf("no collection saw it %s", state))
		}
	}
	if n := len(r.samples); n == 0 || !slices.Equal(r.samples[n-1].states, []string{"closed"}) {
		faults = append(faults, errors.New("the breaker did not close again"))
	}
	return errors.Join(faults...)
}
