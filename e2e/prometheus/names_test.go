package prometheus_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/e2e"
	"github.com/switchgear-go/switchgear/e2e/internal/exposed"
	"github.com/switchgear-go/switchgear/e2e/internal/promserver"
	"github.com/switchgear-go/switchgear/e2e/internal/service"
	"github.com/switchgear-go/switchgear/e2e/internal/workload"
	"github.com/switchgear-go/switchgear/internal/semconv"
)

func TestEveryMetricArrivesUnderTheNameThatQueriesUse(t *testing.T) {
	e2e.Real(t)
	t.Parallel()
	s := service.Start(t)
	keep := workload.Everything(t.Context(), s.Observer)
	defer runtime.KeepAlive(keep)
	server := promserver.Start(t, promserver.Config{Target: s.Address, Interval: 100 * time.Millisecond})

	known, err := exposed.All()
	require.NoError(t, err)
	server.AwaitScrape(t, time.Now())
	stored, _, _, err := server.API.Series(t.Context(), []string{`{__name__=~"switchgear_.+"}`}, time.Now().Add(-time.Minute), time.Now())
	require.NoError(t, err)

	found := map[string]bool{}
	for _, series := range stored {
		name := string(series[model.MetricNameLabel])
		found[name] = true
		want, ok := known[name]
		if !assert.True(t, ok, "%s is not in the registry", name) {
			continue
		}
		for label, value := range series {
			if label == model.MetricNameLabel || strings.HasPrefix(string(label), "otel_scope_") {
				continue
			}
			values, ok := want.Labels[string(label)]
			assert.True(t, ok, "%s has a label %s that is not in the registry", name, label)
			if values != nil && label != "le" {
				assert.Contains(t, values, string(value), "%s: %s", name, label)
			}
		}
	}
	for name := range known {
		assert.True(t, found[name], "%s has not arrived", name)
	}

	metadata, err := server.API.Metadata(t.Context(), "", "")
	require.NoError(t, err)
	kinds := map[semconv.Instrument]string{
		semconv.Histogram: "histogram", semconv.ObservableCounter: "counter", semconv.ObservableUpDownCounter: "gauge",
	}
	for n := range semconv.Metrics {
		m := &semconv.Metrics[n]
		name, err := exposed.Name(m)
		require.NoError(t, err)
		if assert.NotEmpty(t, metadata[name], "%s has no metadata", name) {
			assert.Equal(t, kinds[m.Instrument], string(metadata[name][0].Type), "%s", name)
			assert.Equal(t, m.Description, metadata[name][0].Help, "%s", name)
		}
	}
}

func TestPromtoolFindsNothingToSayAboutTheMetrics(t *testing.T) {
	e2e.Real(t)
	t.Parallel()
	s := service.Start(t)
	keep := workload.Everything(t.Context(), s.Observer)
	defer runtime.KeepAlive(keep)
	text := s.Text(t)
	require.Contains(t, string(text), "switchgear_circuit_breaker_status")
	said, err := promserver.Tool(t, text, "check", "metrics")
	require.NoError(t, err, said)
	assert.Empty(t, said)
}
