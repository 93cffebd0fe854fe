package main

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEachAttemptIsAClientSpanAndOurEventsAreOnTheCallers(t *testing.T) {
	traces, err := traced(t.Context())
	require.NoError(t, err)
	require.Len(t, traces, 2)
	for _, tr := range traces {
		require.NoError(t, tr.broken())
		var caller trace.SpanID
		for _, s := range tr.spans {
			if s.Name() == "caller" {
				caller = s.SpanContext().SpanID()
			}
		}
		for _, s := range tr.spans {
			if s.SpanKind() == trace.SpanKindClient {
				assert.Equal(t, caller, s.Parent().SpanID(), "attempts are children of the caller's span, beside each other")
			}
		}
	}
}

func TestTheProgramPrintsWhatItSaw(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out))
	for _, want := range []string{"A unary call", "A stream", "caller", "· switchgear.retry.attempt", "Quotes/Get", "Quotes/Watch", "served", "refused", "handlers at once"} {
		assert.Contains(t, out.String(), want)
	}
}

func TestAnInterruptedRunSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, run(ctx, io.Discard))
	_, err := overload(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestWhatIsNotAsItHasToBeIsNamed(t *testing.T) {
	spans := tracetest.SpanStubs{
		{Name: "caller", Status: sdktrace.Status{Code: 1}, Events: []sdktrace.Event{{Name: "switchgear.retry.attempt"}}},
		{Name: "Quotes/Get", SpanKind: trace.SpanKindClient, Events: []sdktrace.Event{{Name: "switchgear.retry.attempt"}}},
		{Name: "other"},
	}.Snapshots()
	err := callTrace{"A call", spans}.broken()
	require.Error(t, err)
	for _, want := range []string{
		"the caller's span has failed", "not a child", "switchgear.retry.attempt is on an attempt", "a span other",
		"1 spans of attempts, 0 failed; want 3, 2", "1 events switchgear.retry.attempt on the caller's span, want 2",
	} {
		assert.Contains(t, err.Error(), want)
	}

	err = (&load{most: room + 1, others: []error{context.Canceled}, served: []time.Duration{1}}).broken()
	require.ErrorIs(t, err, context.Canceled)
	assert.Contains(t, err.Error(), "5 handlers at once in a room for 4")
	assert.Contains(t, err.Error(), "1 served, 0 refused")
	require.NoError(t, (&load{served: []time.Duration{1}, refused: []time.Duration{1}}).broken())
}
