package otelx

import (
	"fmt"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
)

// The SDK keeps sdkLimit series of a metric unless told otherwise, the overflow included; there is no asking it. A report
// leaves at nearLimit, while all series are still whole.
const (
	sdkLimit  = 2000
	nearLimit = sdkLimit * 9 / 10
)

// warn reports, once for an observer, that a metric has come near the SDK's limit.
func (is *instruments) warn(metric string) {
	if is.warned.Swap(true) {
		return
	}
	otel.Handle(fmt.Errorf("otelx: %s has %d series; an SDK keeps %d of a metric unless its MeterProvider "+
		"is made WithCardinalityLimit, and the policies made last show only as otel.metric.overflow", metric, nearLimit, sdkLimit))
}

// series counts the distinct series of a histogram, which the SDK keeps for good, up to nearLimit.
type series struct {
	mu   sync.Mutex
	seen map[attribute.Distinct]struct{} // guarded by mu
	near bool                            // guarded by mu
}

// add reports whether set is the one with which the limit is near.
func (s *series) add(set attribute.Set) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.near {
		return false
	}
	if s.seen == nil {
		s.seen = make(map[attribute.Distinct]struct{})
	}
	s.seen[set.Equivalent()] = struct{}{}
	if len(s.seen) < nearLimit {
		return false
	}
	s.near, s.seen = true, nil
	return true
}
