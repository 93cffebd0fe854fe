package otelx_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// device is a policy for tests: two totals that it counts, and a current value and a total of seconds that the clock decides.
type device struct {
	counts   []atomic.Int64
	running  atomic.Int64
	openTime atomic.Int64
	broken   atomic.Bool
}

const (
	acquired = iota
	rejected
)

var deviceRows = []observe.Row{
	acquired: {Metric: "switchgear.bulkhead.calls", Attrs: []observe.Attr{{Key: "switchgear.acquire.result", Value: "acquired"}}},
	rejected: {Metric: "switchgear.bulkhead.calls", Attrs: []observe.Attr{{Key: "switchgear.acquire.result", Value: "rejected"}}},
	{Metric: "switchgear.bulkhead.usage"},
	{Metric: "switchgear.circuit_breaker.time", Attrs: []observe.Attr{{Key: "switchgear.circuit_breaker.state", Value: "open"}}},
}

var deviceDurations = []observe.Row{
	{Metric: "switchgear.bulkhead.wait.duration", Attrs: []observe.Attr{{Key: "switchgear.acquire.result", Value: "acquired"}}},
	{Metric: "switchgear.bulkhead.wait.duration", Attrs: []observe.Attr{{Key: "switchgear.acquire.result", Value: "timeout"}}},
}

func (d *device) live(v []int64) {
	if d.broken.Load() {
		v[0] = 99
		panic("device broken")
	}
	v[0], v[1] = d.running.Load(), d.openTime.Load()
}

// newDevice attaches a device as policies do.
func newDevice(o observe.Observer, name string) *device {
	d, _ := attachDevice(o, name)
	return d
}

func attachDevice(o observe.Observer, name string) (*device, observe.Probe) {
	d := &device{counts: make([]atomic.Int64, 2)}
	probe := observe.Attach(o, d, observe.Source{
		Policy: "bulkhead", Name: name, Rows: deviceRows, Counts: d.counts, Durations: deviceDurations,
	}, (*device).live)
	return d, probe
}

// manual attaches a device whose end a test decides: drop makes it gone at once.
func manual(o observe.Observer, name string) (d *device, drop func()) {
	d = &device{counts: make([]atomic.Int64, 2)}
	probe := o.Attach(observe.Source{
		Policy: "bulkhead", Name: name, Rows: deviceRows, Counts: d.counts,
		Live: func(v []int64) bool { d.live(v); return true }, Durations: deviceDurations,
	})
	return d, probe.Detach
}

// Keys of a device's series in readings.
func callsOf(name, result string) string {
	return "bulkhead.calls{acquire.result=" + result + ",policy.name=" + name + "}"
}
func usageOf(name string) string { return "bulkhead.usage{policy.name=" + name + "}" }
func timeOf(name string) string {
	return "circuit_breaker.time{circuit_breaker.state=open,policy.name=" + name + "}"
}

// observed returns an observer and the reader of its metrics.
func observed(opts ...sdkmetric.ManualReaderOption) (observe.Observer, *sdkmetric.ManualReader) {
	reader := sdkmetric.NewManualReader(opts...)
	return otelx.New(otelx.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))), reader
}

func collect(t testing.TB, reader sdkmetric.Reader) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &all))
	metrics := map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		require.Equal(t, otelx.ScopeName, scope.Scope.Name)
		for _, m := range scope.Metrics {
			metrics[m.Name] = m
		}
	}
	return metrics
}

// readings collects and returns each series, as name{attributes} without the prefix switchgear, with its value; the number
// of recordings for a histogram.
func readings(t testing.TB, reader sdkmetric.Reader) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for name, m := range collect(t, reader) {
		add := func(set attribute.Set, v float64) {
			key := strings.ReplaceAll(name+"{"+set.Encoded(attribute.DefaultEncoder())+"}", "switchgear.", "")
			if _, twice := all[key]; twice {
				t.Fatalf("%s is reported twice", key)
			}
			all[key] = v
		}
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, float64(p.Value))
			}
		case metricdata.Sum[float64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, p.Value)
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, float64(p.Count))
			}
		default:
			t.Fatalf("%s: %T", name, data)
		}
	}
	return all
}

// handled collects what is reported to the global error handler during a test.
func handled(t *testing.T) func() []string {
	t.Helper()
	var mu sync.Mutex
	var texts []string
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		texts = append(texts, err.Error())
	}))
	t.Cleanup(func() { otel.SetErrorHandler(before) })
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), texts...)
	}
}

// inOwnProcess runs the rest of a test in a process of its own, where nobody has set a global provider yet. It reports
// whether this is that process.
func inOwnProcess(t *testing.T) bool {
	t.Helper()
	const key = "OTELX_TEST_ALONE"
	if os.Getenv(key) == t.Name() {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), key+"="+t.Name())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return false
}

// equal asserts that a reading is want.
func equal(t *testing.T, want, got float64, msg ...any) {
	t.Helper()
	assert.InDelta(t, want, got, 0, msg...)
}
