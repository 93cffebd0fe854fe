package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/grpcx"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/retry"
)

// failures is how often the server fails before it answers.
const failures = 2

// newPipeline returns what stands between the caller and the server.
func newPipeline(o observe.Observer) *policy.Pipeline {
	return policy.NewPipeline("quotes",
		policy.Timeout(10*time.Second),
		retry.New(retry.Config{BackOff: retry.FullJitter(10*time.Millisecond, 100*time.Millisecond)}),
		breaker.New("quotes-api", breaker.Config{Observer: o}),
	).Observed(o)
}

// clientOptions are those of a client under policies, and instrumented. The interceptors stand outside of the stats handler
// whatever the order of the options: so each attempt has a client span.
func clientOptions(p policy.Policy, tracers trace.TracerProvider) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(grpcx.UnaryClientInterceptor(p)),
		grpc.WithChainStreamInterceptor(grpcx.StreamClientInterceptor(p)),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(otelgrpc.WithTracerProvider(tracers), otelgrpc.WithMeterProvider(sdkmetric.NewMeterProvider()))),
	}
}

// callTrace is the trace of one call.
type callTrace struct {
	title string
	spans []sdktrace.ReadOnlySpan // in the order of their starts
}

// traced makes one unary call and one stream, and returns their traces.
func traced(ctx context.Context) (traces []callTrace, err error) {
	for _, c := range []struct {
		title string
		call  func(context.Context, *grpc.ClientConn) error
	}{{"A unary call", get}, {"A stream", watch}} {
		t, err := traceOf(ctx, c.title, c.call)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.title, err)
		}
		traces = append(traces, t)
	}
	return traces, nil
}

// traceOf makes a call to a server that fails at first.
func traceOf(ctx context.Context, title string, call func(context.Context, *grpc.ClientConn) error) (t callTrace, err error) {
	spans := tracetest.NewSpanRecorder()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	o := otelx.New(otelx.WithTracerProvider(tracers), otelx.WithMeterProvider(sdkmetric.NewMeterProvider()))

	var n atomic.Int64
	q := &quotes{answer: func(context.Context) error {
		if n.Add(1) <= failures {
			return status.Error(codes.Unavailable, "starting")
		}
		return nil
	}}
	conn, stop, err := serve(q, nil, clientOptions(newPipeline(o), tracers))
	if err != nil {
		return t, err
	}
	ctx, span := tracers.Tracer("quotes").Start(ctx, "caller")
	err = call(ctx, conn)
	span.End()
	if err = errors.Join(err, stop()); err != nil {
		return t, err
	}
	ended := spans.Ended()
	slices.SortStableFunc(ended, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	return callTrace{title, ended}, nil
}

func get(ctx context.Context, conn *grpc.ClientConn) error {
	return conn.Invoke(ctx, getQuote, wrapperspb.String("GOPH"), new(wrapperspb.DoubleValue))
}

func watch(ctx context.Context, conn *grpc.ClientConn) error {
	stream, err := conn.NewStream(ctx, watchDesc, watchQuotes)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(wrapperspb.String("GOPH")); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		if err := stream.RecvMsg(new(wrapperspb.DoubleValue)); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (t callTrace) print(out io.Writer) {
	_, _ = fmt.Fprintf(out, "%s to a server that fails %d times:\n\n", t.title, failures)
	for _, s := range t.spans {
		indent := "  "
		if s.Parent().IsValid() {
			indent = "    "
		}
		_, _ = fmt.Fprintf(out, "%s%-14s %-9s %s\n", indent, s.Name(), s.SpanKind(), s.Status().Description)
		for _, e := range s.Events() {
			_, _ = fmt.Fprintf(out, "%s  · %s\n", indent, e.Name)
		}
	}
	_, _ = fmt.Fprintln(out)
}

// broken names what the trace lacks.
func (t callTrace) broken() (err error) {
	lacks := func(format string, args ...any) {
		err = errors.Join(err, fmt.Errorf("%s: "+format, append([]any{t.title}, args...)...))
	}
	attempts, retries, failed := 0, 0, 0
	for _, s := range t.spans {
		switch own := strings.HasPrefix(s.Name(), "Quotes/"); {
		case own && s.SpanKind() == trace.SpanKindClient:
			attempts++
			if s.Status().Code != 0 {
				failed++
			}
			if !s.Parent().IsValid() {
				lacks("an attempt is not a child of the caller's span")
			}
			for _, e := range s.Events() {
				if strings.HasPrefix(e.Name, "switchgear.") {
					lacks("%s is on an attempt", e.Name)
				}
			}
		case s.Name() == "caller":
			for _, e := range s.Events() {
				if e.Name == "switchgear.retry.attempt" {
					retries++
				}
			}
			if s.Status().Code != 0 {
				lacks("the caller's span has failed")
			}
		default:
			lacks("a span %s", s.Name())
		}
	}
	if attempts != failures+1 || failed != failures {
		lacks("%d spans of attempts, %d failed; want %d, %d", attempts, failed, failures+1, failures)
	}
	if retries != failures {
		lacks("%d events switchgear.retry.attempt on the caller's span, want %d", retries, failures)
	}
	return err
}
