// Package otelx reports what policies do to OpenTelemetry. Policies use it unless they are given another observer.
//
// Counts are read from the policies when metrics are collected, through observable instruments, and cost a call nothing.
// Durations are recorded in histograms, if there is a reader for them. What happens rarely, such as a change of state, a
// refusal or a retry, becomes an event on the span of the call that caused it, a log record, or both (see [WithEvents]).
// docs/telemetry.md lists all metrics, events and attributes.
//
// Nothing needs to be set up: [Default] uses the global providers, even if they are set later. [New] is for providers of
// your own and for options.
//
// The SDK keeps 2,000 series of a metric unless told otherwise, and switchgear.circuit_breaker.calls has 9 for each
// breaker. With more than 200 breakers in a process, give the MeterProvider a higher limit:
//
//	sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithCardinalityLimit(20_000))
//
// Near the limit one error is reported to the handler of [otel.SetErrorHandler]. Beyond it, the policies that were created
// last are only part of the series with otel.metric.overflow=true.
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

// Default returns the observer that reports to the global providers with the default options: always the same one. Policies
// that were created before [otel.SetMeterProvider] report from then on, including what they have counted before.
func Default() observe.Observer { return global() }

var global = sync.OnceValue(func() observe.Observer { return New() })

// New returns an observer that reports to the providers of opts, or to the global ones.
//
// Create one observer per MeterProvider and keep it: it lives as long as its provider, and with two on the same provider the
// numbers of policies with the same name add up. If a provider cannot create an instrument, that metric is left out and the
// error reported once to the handler of [otel.SetErrorHandler].
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
