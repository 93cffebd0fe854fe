package otelx

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/switchgear-go/switchgear/policy/observe"
)

// maxEvents is how many events a call may add to one span. An SDK keeps 128 and drops the oldest: a retry storm must not
// push out what its caller has written there.
const maxEvents = 32

// roomFor reports whether e may be added to span, the span of ctx.
func roomFor(_ context.Context, _ trace.Span, e *observe.Event) bool {
	switch e.Kind {
	case observe.StateChange, observe.Exhausted, observe.TimedOut, observe.FellBack:
		return true
	}
	return e.Attempt <= maxEvents+1 // a retry's first event is for attempt 2
}
