package otelx

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/internal/errtree"
	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// tracing is an observer with [WithSpans]: an [observe.Spanner].
type tracing struct{ *observer }

// Start starts the span of a pipeline's call, or of an attempt in it.
func (t *tracing) Start(ctx context.Context, pipeline string, attempt int) (context.Context, func(error)) {
	name := "pipeline " + pipeline
	attrs := append(make([]attribute.KeyValue, 0, 2), attribute.String(semconv.PipelineName, pipeline))
	if attempt > 0 {
		name = "attempt " + strconv.Itoa(attempt)
		attrs = append(attrs, attribute.Int(semconv.AttemptNumber, attempt))
	}
	inner, span := t.tracer.Start(ctx, name, trace.WithAttributes(attrs...))
	if !span.IsRecording() {
		if trace.SpanFromContext(ctx).IsRecording() {
			inner = ctx // a provider that makes no spans must not take the caller's from our events
		}
		return inner, func(error) { span.End() }
	}
	return &spanned{call.Node{Context: inner, Pipeline: pipeline}}, func(err error) {
		if err != nil && errtree.Sort(err) != errtree.Healthy {
			span.SetAttributes(attribute.String(semconv.ErrorType, errtree.Type(err)))
			if inner.Err() != context.Canceled {
				span.SetStatus(codes.Error, err.Error())
			}
		}
		span.End()
	}
}

// spanned is a context with a span of ours, and a node to count the events on that span in.
type spanned struct{ call.Node }

func (s *spanned) Value(key any) any {
	if _, ok := key.(call.NodeKey); ok {
		return &s.Node
	}
	return s.Context.Value(key)
}

// transitionSpan gives a state change a span of its own. A caller's trace that is not sampled says nothing about the state
// change, so that is linked to it but starts a trace of its own.
func (o *observer) transitionSpan(ctx context.Context, e *observe.Event) {
	opts := []trace.SpanStartOption{trace.WithAttributes(eventAttributes(e)...)}
	if caller := trace.SpanContextFromContext(ctx); caller.IsValid() && !caller.IsSampled() {
		opts = append(opts, trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: caller}))
	}
	_, span := o.tracer.Start(ctx, eventName(e), opts...)
	if o.events&SpanEvents != 0 && span.IsRecording() {
		addEvent(span, e)
	}
	span.End()
}
