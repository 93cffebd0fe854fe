package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/httpx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A smaller load, and limits that a busy machine keeps, too.
func TestAProtectedServerServesWhatItCanUnderTenTimesItsCapacity(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes the load too much for the client")
	}
	const unit = 300 * time.Millisecond
	var err error
	for range 3 { // one disturbance does not count
		with, without := rush(t.Context(), protected(newDatabase()), unit), rush(t.Context(), newDatabase(), unit)
		if err = rushed(with, without, limits{served: .6, p99: 8 * query, refusal: time.Millisecond, quantile: .9}); err == nil {
			break
		}
	}
	require.NoError(t, err)
}

func TestAHostInTroubleDoesNotTouchTheOthers(t *testing.T) {
	well, bad, h := visit(t.Context(), 2*time.Second)
	require.NoError(t, visited(well, bad, h))
	assert.Positive(t, bad.count(failed))
	var out bytes.Buffer
	printVisit(&out, well, bad)
	assert.Contains(t, out.String(), "prices")
}

func TestWhatDoesNotHoldIsNamed(t *testing.T) {
	served := func(n int, took time.Duration) (all []request) {
		for range n {
			all = append(all, request{start: time.Second, end: time.Second + took, status: http.StatusOK})
		}
		return all
	}
	l := func(requests []request) *load {
		return &load{from: time.Second, until: 2 * time.Second, end: 3 * time.Second, requests: requests}
	}
	bad := l(append(served(10, time.Second), request{start: time.Second, end: 2 * time.Second}))
	bad.refusals = []time.Duration{time.Second}
	err := rushed(bad, l(served(20, time.Second)), limits{served: 1, p99: time.Millisecond, refusal: time.Millisecond, quantile: .5})
	for _, want := range []string{
		"served 10/s under ten times its capacity of 100/s", "took 1s\n", "1s for a refusal, of 1", "1 clients left", "without protection as many are served: 20/s",
	} {
		require.ErrorContains(t, err, want)
	}

	good := &upstream{calls: []call{{outcome: failed}}}
	err = visited(good, good, newHosts())
	for _, want := range []string{"1 calls of the host that is well", "1 failed and only 0 were refused", "not found well again", "0 hosts, not 2"} {
		assert.ErrorContains(t, err, want)
	}
}

func TestTheProgramRejectsWhatItDoesNotKnow(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), []string{"x"}, io.Discard, io.Discard), `unexpected argument "x"`)
	assert.Error(t, run(t.Context(), []string{"-x"}, io.Discard, io.Discard))
}

func TestThePictureIsAnSVG(t *testing.T) {
	l := &load{from: time.Second, until: 2 * time.Second, end: 3 * time.Second, requests: []request{
		{end: time.Second, status: 200}, {start: time.Second, end: time.Second, status: 503}, {start: 2 * time.Second, end: 4 * time.Second},
	}}
	file := filepath.Join(t.TempDir(), "http.svg")
	require.NoError(t, os.WriteFile(file, draw(l, l), 0o644))
	picture, err := os.ReadFile(file)
	require.NoError(t, err)
	d := xml.NewDecoder(bytes.NewReader(picture))
	for err == nil {
		_, err = d.Token()
	}
	require.ErrorIs(t, err, io.EOF)
}

// traced has a caller's span around a call, and returns the spans that ended in it.
func traced(t *testing.T, call func(ctx context.Context, provider trace.TracerProvider)) (caller sdktrace.ReadOnlySpan, others []sdktrace.ReadOnlySpan) {
	t.Helper()
	seen := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(seen))
	ctx, span := provider.Tracer("test").Start(t.Context(), "caller")
	call(ctx, provider)
	span.End()
	for _, s := range seen.Ended() {
		if s.Name() == "caller" {
			caller = s
		} else {
			others = append(others, s)
		}
	}
	assert.Len(t, seen.Started(), len(seen.Ended()))
	return caller, others
}

func attributes(s sdktrace.ReadOnlySpan) map[attribute.Key]attribute.Value {
	all := map[attribute.Key]attribute.Value{}
	for _, a := range s.Attributes() {
		all[a.Key] = a.Value
	}
	return all
}

func events(s sdktrace.ReadOnlySpan) (names []string) {
	for _, e := range s.Events() {
		names = append(names, e.Name)
	}
	return names
}

func TestAttemptsAreChildSpansAndOurEventsAreOnTheParent(t *testing.T) {
	var n atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, "hello")
	}))
	defer srv.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	caller, attempts := traced(t, func(ctx context.Context, provider trace.TracerProvider) {
		client := &http.Client{Transport: &httpx.Transport{
			Policy: policy.NewPipeline("hello", policy.Timeout(time.Minute), retry.New(retry.Config{BackOff: retry.FullJitter(time.Microsecond, time.Microsecond)})),
			Base:   otelhttp.NewTransport(resend{base}, otelhttp.WithTracerProvider(provider)),
		}}
		status, err := exchange(ctx, client, http.MethodGet, srv.URL)
		require.NoError(t, err)
		assert.Equal(t, 200, status)
	})
	assert.Equal(t, []string{"switchgear.retry.attempt", "switchgear.retry.attempt"}, events(caller))
	require.Len(t, attempts, 3)
	for i, s := range attempts {
		assert.Equal(t, trace.SpanKindClient, s.SpanKind())
		assert.Equal(t, caller.SpanContext().SpanID(), s.Parent().SpanID(), "a child of the caller's span")
		assert.Empty(t, s.Events())
		resent, told := attributes(s)["http.request.resend_count"]
		assert.Equal(t, i > 0, told)
		assert.Equal(t, int64(i), resent.AsInt64())
		status := attributes(s)["http.response.status_code"]
		assert.Equal(t, map[bool]int64{true: 503, false: 200}[i < 2], status.AsInt64())
		assert.Equal(t, map[bool]codes.Code{true: codes.Error, false: codes.Unset}[i < 2], s.Status().Code)
	}
	assert.Equal(t, codes.Unset, caller.Status().Code, "it recovered")
}

func TestAHedgedAttemptIsASpanToo(t *testing.T) {
	var n atomic.Int64
	both := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 2 {
			close(both)
			return
		}
		<-both
		<-r.Context().Done()
	}))
	defer srv.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	var client *http.Client
	caller, attempts := traced(t, func(ctx context.Context, provider trace.TracerProvider) {
		lost := make(chan struct{}, 2)
		client = &http.Client{Transport: &httpx.Transport{
			Policy: policy.NewPipeline("hello", retry.NewHedge(retry.HedgeConfig{Delay: time.Millisecond})),
			Base:   told{otelhttp.NewTransport(resend{base}, otelhttp.WithTracerProvider(provider)), lost},
		}}
		_, err := exchange(ctx, client, http.MethodGet, srv.URL)
		require.NoError(t, err)
		<-lost // the loser's span ends after the call
		<-lost
	})
	assert.Equal(t, []string{"switchgear.hedge.attempt"}, events(caller))
	require.Len(t, attempts, 2)
	for _, s := range attempts {
		assert.Equal(t, caller.SpanContext().SpanID(), s.Parent().SpanID())
	}
}

// told tells when a round trip has ended.
type told struct {
	http.RoundTripper
	ended chan struct{}
}

func (t told) RoundTrip(r *http.Request) (*http.Response, error) {
	defer func() { t.ended <- struct{}{} }()
	return t.RoundTripper.RoundTrip(r)
}

func TestARefusalIsInTheServersSpan(t *testing.T) {
	seen := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(seen))
	limit := bulkhead.New("orders", bulkhead.Config{Max: 1})
	release, err := limit.Acquire(t.Context())
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(http.ResponseWriter, *http.Request) {})
	handler := otelhttp.NewHandler(httpx.Middleware(limit)(mux), "server", otelhttp.WithTracerProvider(provider))
	ask := func() sdktrace.ReadOnlySpan {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/orders/1", nil))
		ended := seen.Ended()
		return ended[len(ended)-1]
	}

	refusal := ask()
	assert.Equal(t, trace.SpanKindServer, refusal.SpanKind())
	assert.Equal(t, []string{"switchgear.bulkhead.rejected"}, events(refusal))
	status := attributes(refusal)["http.response.status_code"]
	assert.Equal(t, int64(503), status.AsInt64())

	release()
	answer := ask()
	assert.Empty(t, events(answer))
	assert.Equal(t, "GET /orders/{id}", answer.Name(), "the route is known outside of the middleware")
}
