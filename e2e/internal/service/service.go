// Package service is what a Prometheus scrapes: an observer whose metrics are served over HTTP.
package service

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// Service serves the metrics of what reports to its Observer.
type Service struct {
	Observer observe.Observer
	Address  string // host:port; the path is /metrics

	server *httptest.Server
}

// Start returns a service that lives as long as the test.
func Start(t testing.TB) *Service {
	t.Helper()
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	require.NoError(t, err)
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &Service{
		Observer: otelx.New(otelx.WithMeterProvider(provider)),
		Address:  server.Listener.Addr().String(),
		server:   server,
	}
}

// Text returns what is served now.
func (s *Service) Text(t testing.TB) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.server.URL+"/metrics", http.NoBody)
	require.NoError(t, err)
	res, err := s.server.Client().Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusOK, res.StatusCode)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return text
}
