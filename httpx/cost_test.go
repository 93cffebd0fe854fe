package httpx_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/switchgear-go/switchgear/httpx"
)

func TestAPipelineAddsAtMostTwentyAllocationsToARequest(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer srv.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	cancellable, cancel := context.WithCancel(t.Context())
	defer cancel()
	for of, ctx := range map[string]context.Context{"background": context.Background(), "cancellable": cancellable} {
		measure := func(rt http.RoundTripper) float64 {
			return testing.AllocsPerRun(500, func() { get(t, ctx, rt, srv.URL) })
		}
		plain := measure(base)
		for name, p := range pipelines() {
			t.Run(of+", "+name, func(t *testing.T) {
				assert.LessOrEqual(t, measure(&httpx.Transport{Base: base, Policy: p})-plain, 20.0)
			})
		}
	}
}
