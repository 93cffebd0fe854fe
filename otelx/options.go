package otelx

import (
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Option is an option of [New].
type Option interface{ apply(*config) }

type config struct {
	meters             metric.MeterProvider
	tracers            trace.TracerProvider
	loggers            log.LoggerProvider
	events             Events
	spans, transitions bool
}

type option func(*config)

func (o option) apply(c *config) { o(c) }

// WithMeterProvider sets the provider for metrics. By default, or if p is nil, it is the global one.
func WithMeterProvider(p metric.MeterProvider) Option {
	return option(func(c *config) { c.meters = p })
}

// WithTracerProvider sets the provider for the spans of [WithSpans] and [WithTransitionSpans]. By default, or if p is nil, it
// is the global one. Events do not need it: they are added to the span of the call.
func WithTracerProvider(p trace.TracerProvider) Option {
	return option(func(c *config) { c.tracers = p })
}

// WithLoggerProvider sets the provider for the log records of [LogEvents]. By default, or if p is nil, it is the global one.
func WithLoggerProvider(p log.LoggerProvider) Option {
	return option(func(c *config) { c.loggers = p })
}

// Events says where events are reported: any combination of the constants.
type Events uint8

// Where events are reported.
const (
	// SpanEvents adds events to the span of the call that caused them, if it is recording: at most 32 for one call, since an
	// SDK keeps 128 per span and drops the oldest. Changes of state, and events that end a call, are always added.
	SpanEvents Events = 1 << iota
	// LogEvents emits events as log records, with the event's name, severity and time, and the trace context of the call.
	LogEvents
)

// WithEvents sets where events are reported: [SpanEvents] | [LogEvents] for both, 0 for neither. The default is [SpanEvents].
func WithEvents(e Events) Option {
	return option(func(c *config) { c.events = e })
}

// WithSpans adds a span for each call of a pipeline, and one for each attempt that a retry or a hedge in it makes.
func WithSpans() Option {
	return option(func(c *config) { c.spans = true })
}

// WithTransitionSpans adds a short span of its own for a breaker's change of state if the call that caused it has no
// recording span: because an operator's method caused it, or because the call's trace is not sampled.
func WithTransitionSpans() Option {
	return option(func(c *config) { c.transitions = true })
}
