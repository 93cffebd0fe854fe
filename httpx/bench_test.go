package httpx_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/httpx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/retry"
)

func pipelines() map[string]policy.Policy {
	return map[string]policy.Policy{
		"breaker": breaker.New("bench", breaker.Config{}),
		"timeout": policy.NewPipeline("bench-timeout", policy.Timeout(5*time.Second)),
		"pipeline": policy.NewPipeline("bench", policy.Timeout(5*time.Second), retry.New(retry.Config{}),
			breaker.New("bench", breaker.Config{}), bulkhead.New("bench", bulkhead.Config{Max: 100})),
		"two timeouts": policy.NewPipeline("bench-two", policy.Timeout(5*time.Second), retry.New(retry.Config{}),
			breaker.New("bench", breaker.Config{}), policy.Timeout(time.Second)),
	}
}

// get sends one request and reads the answer.
func get(tb testing.TB, ctx context.Context, rt http.RoundTripper, url string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		tb.Fatal(err)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err = io.Copy(io.Discard, resp.Body); err != nil {
		tb.Fatal(err)
	}
	resp.Body.Close()
}

func BenchmarkTransport(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer srv.Close()
	base := &http.Transport{MaxIdleConnsPerHost: 100}
	defer base.CloseIdleConnections()
	run := func(name string, rt http.RoundTripper, limit time.Duration, parent context.Context) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx, cancel := parent, context.CancelFunc(func() {})
				if limit > 0 {
					ctx, cancel = context.WithTimeout(parent, limit)
				}
				get(b, ctx, rt, srv.URL)
				cancel()
			}
		})
	}
	for name, parent := range map[string]context.Context{"background": context.Background(), "cancellable": b.Context()} {
		run(name+"/plain", base, 0, parent)
		run(name+"/plain with a timeout", base, 5*time.Second, parent)
		for p, policy := range pipelines() {
			run(name+"/"+p, &httpx.Transport{Base: base, Policy: policy}, 0, parent)
		}
	}
}
