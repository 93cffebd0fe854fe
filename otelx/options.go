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

// WithMeterProvider sets where metrics go. If nil, or without it, to the global MeterProvider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return option(func(c *config) { c.meters = p })
}

// WithTracerProvider sets where the spans of [WithSpans] and [WithTransitionSpans] go. If nil, or without it, to the global
// TracerProvider. Span events need none: they go to the span of the call.
func WithTracerProvider(p trace.TracerProvider) Option {
	return option(func(c *config) { c.tracers = p })
}

// WithLoggerProvider sets where the log records of [LogEvents] go. If nil, or without it, to the global LoggerProvider.
func WithLoggerProvider(p log.LoggerProvider) Option {
	return option(func(c *config) { c.loggers = p })
}

// Events says what becomes of events.
type Events uint8

const (
	// SpanEvents adds events to the span of the call that set them off, if that is recording: at most 32 for each call on one
	// span, since an SDK keeps 128 and drops the oldest. State changes, and what ends a call, are always added.
	SpanEvents Events = 1 << iota
	// LogEvents emits events as log records, with event name, severity and time, and the trace context of the call.
	LogEvents
)

// WithEvents sets what becomes of events, [SpanEvents] | [LogEvents] for both. Without it they are span events; 0 drops them.
func WithEvents(e Events) Option {
	return option(func(c *config) { c.events = e })
}

// WithSpans adds a span around each call of a pipeline and one around each attempt that a retry in it makes.
func WithSpans() Option {
	return option(func(c *config) { c.spans = true })
}

// WithTransitionSpans gives a state change of a circuit breaker a short span of its own where the call that set it off has no
// recording span: one that an operator or nobody's request brought about, or one in a trace that is not sampled.
func WithTransitionSpans() Option {
	return option(func(c *config) { c.transitions = true })
}
