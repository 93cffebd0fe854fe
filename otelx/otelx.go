// Package otelx reports policies through OpenTelemetry. It is what policies report to unless they are told otherwise.
//
// Three things leave it. What policies count on every call is read when metrics are collected, through observable
// instruments; a call pays for none of it. Durations go to histograms, for as long as something reads them. What happens
// rarely, a transition, a refusal, a retry, becomes an event on the span of the call that set it off, a log record, or
// both (see [WithEvents]). Package observe describes what policies tell; docs/telemetry.md lists every name.
//
// Nothing needs to be set up: [Default] follows the global providers, also ones that are set later. [New] is for providers
// of your own and for the options.
//
// The SDK keeps 2,000 series of a metric unless told otherwise, and switchgear.circuit_breaker.calls has 9 for each
// breaker. With more than 200 breakers in a process, give the MeterProvider a higher limit:
//
//	sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithCardinalityLimit(20_000))
//
// Near the limit one error is reported to the handler of [otel.SetErrorHandler]. Beyond it the policies made last show only
// in the series otel.metric.overflow.
package otelx

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"

	"github.com/switchgear-go/switchgear/policy/observe"
)

// ScopeName is the instrumentation scope of everything this package emits.
const ScopeName = "github.com/switchgear-go/switchgear/otelx"

// Default returns the observer of the global providers, with the default options. It is always the same one. Policies made
// before [otel.SetMeterProvider] is called report from then on, with all they have counted before.
func Default() observe.Observer { return global() }

var global = sync.OnceValue(func() observe.Observer { return New() })

// New returns an observer that reports to the providers of opts, or to the global ones.
//
// Make one for each MeterProvider and keep it: two on one provider add up where policies share a name, and an observer lives
// as long as its provider. What a provider cannot make is left out and reported once to the handler of [otel.SetErrorHandler].
func New(opts ...Option) observe.Observer {
	cfg := config{events: SpanEvents}
	for _, opt := range opts {
		opt.apply(&cfg)
	}
	if cfg.meters == nil {
		cfg.meters = otel.GetMeterProvider()
	}
	if cfg.tracers == nil {
		cfg.tracers = otel.GetTracerProvider()
	}
	if cfg.loggers == nil {
		cfg.loggers = otel.GetLoggerProvider()
	}
	o := &observer{registry: newRegistry(cfg.meters.Meter(ScopeName)), events: cfg.events, transitions: cfg.transitions}
	if cfg.events&LogEvents != 0 {
		o.logger = cfg.loggers.Logger(ScopeName)
	}
	if cfg.spans || cfg.transitions {
		o.tracer = cfg.tracers.Tracer(ScopeName)
	}
	if cfg.spans {
		return &tracing{o}
	}
	return o
}

// observer is the [observe.Observer] of a set of providers.
type observer struct {
	registry    *registry
	events      Events
	transitions bool
	tracer      trace.Tracer // nil if no span of our own is wanted
	logger      log.Logger   // nil without LogEvents
}

func (o *observer) Attach(s observe.Source) observe.Probe { return o.registry.attach(s) }

func (o *observer) Observe(ctx context.Context, e observe.Event) {
	o.spanEvent(ctx, &e)
	if o.logger != nil {
		o.logEvent(ctx, &e)
	}
}
