package httpx_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/httpx"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/retry"
)

// otel-go-contrib#3071, #3765
func TestHostileRequestsAddNoSeries(t *testing.T) {
	reader := metric.NewManualReader()
	o := otelx.New(otelx.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	series := func() (all []string) {
		var found metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(context.Background(), &found))
		for _, scope := range found.ScopeMetrics {
			for _, m := range scope.Metrics {
				switch data := m.Data.(type) {
				case metricdata.Sum[int64]:
					for _, p := range data.DataPoints {
						all = append(all, m.Name+" "+p.Attributes.Encoded(attribute.DefaultEncoder()))
					}
				case metricdata.Sum[float64]:
					for _, p := range data.DataPoints {
						all = append(all, m.Name+" "+p.Attributes.Encoded(attribute.DefaultEncoder()))
					}
				case metricdata.Histogram[float64]:
					for _, p := range data.DataPoints {
						all = append(all, m.Name+" "+p.Attributes.Encoded(attribute.DefaultEncoder()))
					}
				default:
					t.Fatalf("%s is a %T", m.Name, data)
				}
			}
		}
		return all
	}
	statuses := []int{200, 404, 429, 500, 501, 503, 599}
	onServer := policy.NewPipeline("server", bulkhead.New("server", bulkhead.Config{Max: 100, Observer: o})).Observed(o)
	srv := serve(t, "HTTP/1.1", httpx.Middleware(onServer)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i, _ := strconv.Atoi(r.Header.Get("Number"))
		w.WriteHeader(statuses[i%len(statuses)])
		_, _ = io.WriteString(w, r.URL.Path)
	})).ServeHTTP)
	hosts := policy.NewGroup(policy.GroupConfig{Name: "hosts"}, func(string) policy.Policy {
		return policy.NewPipeline("hosts", retry.New(retry.Config{Attempts: 2, BackOff: instantly}),
			breaker.New("hosts", breaker.Config{FailureRatio: -1, Observer: o})).Observed(o)
	})
	rt := &httpx.Transport{Base: srv.base, For: func(r *http.Request) policy.Policy { return hosts.Get(r.Host) }}
	send := func(i int) {
		req := request(t, t.Context(), http.MethodGet, fmt.Sprintf("%s/%d%s?q=%d", srv.URL, rand.Int(), "/x"[:rand.IntN(3)], rand.Int()))
		req.Method = fmt.Sprintf("METHOD%d", rand.Int())
		if i%2 == 0 {
			req.Method = http.MethodGet
		}
		req.Host = fmt.Sprintf("host-%d.test", i%50)
		req.Header.Set("Number", strconv.Itoa(i/2))
		req.Header.Set("User-Agent", fmt.Sprint(rand.Int()))
		req.Header.Set(fmt.Sprintf("X-%d", rand.Int()), fmt.Sprint(rand.Int()))
		resp, err := rt.RoundTrip(req)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	for i := range 200 {
		send(i)
	}
	before := series()
	assert.Less(t, len(before), 100)
	for i := range 10_000 {
		send(i)
	}
	assert.ElementsMatch(t, before, series())
}
