package main

import (
	"net/http"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/switchgear-go/switchgear/policy"
)

// resend tells in the span of each attempt after the first which one it is. It stands inside otelhttp's Base, where that
// span is the current one.
type resend struct{ base http.RoundTripper }

func (t resend) RoundTrip(r *http.Request) (*http.Response, error) {
	if n := policy.Attempt(r.Context()); n > 1 {
		trace.SpanFromContext(r.Context()).SetAttributes(semconv.HTTPRequestResendCount(n - 1))
	}
	return t.base.RoundTrip(r)
}
