package otelx

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// maxEvents is how many events a call may add to one span. An SDK keeps 128 and drops the oldest: a retry storm must not
// push out what its caller has written there.
const maxEvents = 32

// roomFor counts e and reports whether it may be added to span, the span of ctx.
func roomFor(ctx context.Context, span trace.Span, e *observe.Event) bool {
	told := e.Attempt - 1 // a retry or a hedge used alone, without a node: its first event is for attempt 2
	if n := nodeOf(ctx, span.SpanContext()); n != nil {
		told = n.Told()
	}
	switch e.Kind {
	case observe.StateChange, observe.Exhausted, observe.TimedOut, observe.FellBack:
		return true
	}
	return told <= maxEvents
}

// nodeOf returns the node in which the events on span are counted: the outermost call that was started under span, so that
// the pipelines nested in it share its count; where none was, the innermost.
func nodeOf(ctx context.Context, span trace.SpanContext) *call.Node {
	counts := call.NodeOf(ctx)
	for n := counts; n != nil; n = n.Outer() {
		if startedUnder(n, span) {
			counts = n
		}
	}
	return counts
}

func startedUnder(n *call.Node, span trace.SpanContext) bool {
	s := trace.SpanContextFromContext(n.Context)
	return s.SpanID() == span.SpanID() && s.TraceID() == span.TraceID()
}
