package main

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/retry"
)

// The plan of the outage.
const (
	clients   = 8
	pause     = 30 * time.Millisecond // of a client between two calls
	healthy   = 15 * time.Millisecond // what an answer takes
	failing   = 40 * time.Millisecond // what a failure takes
	downFrom  = time.Second
	downUntil = 2500 * time.Millisecond
	length    = 4 * time.Second
	interval  = 20 * time.Millisecond // of the collections: shorter than a probe
)

// newPipeline returns what stands between the clients and the service.
func newPipeline(o observe.Observer) *policy.Pipeline {
	return policy.NewPipeline("quotes",
		policy.Fallback(func(context.Context, error) error { return nil }), // a stale quote
		policy.Timeout(time.Second),
		retry.New(retry.Config{BackOff: retry.FullJitter(60*time.Millisecond, time.Second)}),
		breaker.New("quotes-api", breaker.Config{
			Consecutive: clients + 1, // a call that still has an attempt left: what that meets is then to be seen
			Cooldown:    600 * time.Millisecond,
			Growth:      1,
			Observer:    o,
		}),
	).Observed(o)
}

// recording is what the outage left.
type recording struct {
	spans   []sdktrace.ReadOnlySpan
	started int
	samples []sample
}

// outage runs the clients, and returns what was recorded of them.
func outage(ctx context.Context) (seen recording, err error) {
	spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	observer := otelx.New(
		otelx.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
		otelx.WithTracerProvider(tracers),
		otelx.WithSpans())
	service := &service{tracer: tracers.Tracer("quotes"), start: time.Now()}
	pipeline := newPipeline(observer)

	end, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var running sync.WaitGroup
	for range clients {
		running.Go(func() { service.client(end, pipeline) })
	}
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for end.Err() == nil {
		select {
		case <-ticks.C:
		case <-end.Done():
			continue
		}
		var now sample
		if now, err = collect(ctx, reader, time.Since(service.start)); err != nil {
			break
		}
		seen.samples = append(seen.samples, now)
	}
	running.Wait()
	runtime.KeepAlive(pipeline) // the metrics of a policy leave with it
	seen.spans, seen.started = spans.Ended(), len(spans.Started())
	return seen, errors.Join(err, ctx.Err())
}

// service is a dependency that fails for a while, with the spans that an instrumented client of it has.
type service struct {
	tracer trace.Tracer
	start  time.Time
}

// unavailable is the service's failure. With an ErrorType, telemetry names it.
type unavailable struct{}

func (unavailable) Error() string     { return "503 Service Unavailable" }
func (unavailable) ErrorType() string { return "503" }

// client makes one call after the other.
func (s *service) client(ctx context.Context, p *policy.Pipeline) {
	for ctx.Err() == nil {
		// Not ctx itself: a call that has begun may end.
		request, span := s.tracer.Start(context.WithoutCancel(ctx), "GET /quote")
		if err := p.Do(request, s.fetch); err != nil {
			otel.Handle(err) // the fallback always answers
		}
		span.End()
		_ = wait(ctx, pause) // the loop looks at ctx
	}
}

// fetch asks the service.
func (s *service) fetch(ctx context.Context) error {
	ctx, span := s.tracer.Start(ctx, "fetch", trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	if at := time.Since(s.start); at < downFrom || at > downUntil {
		return wait(ctx, healthy)
	}
	if err := wait(ctx, failing); err != nil {
		return err
	}
	span.SetStatus(codes.Error, unavailable{}.Error())
	return unavailable{}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
