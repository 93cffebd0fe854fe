package contract

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/retry"
)

// The reports: opentelemetry-go#5827, #5780.
func TestPoliciesThatAreThereBeforeTheProviderReportAllTheyHaveCounted(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	b := breaker.New("payments-api", breaker.Config{})
	p := policy.NewPipeline("charge", policy.Timeout(time.Minute), b)
	fine := func(context.Context) error { return nil }
	calls := func(n int) {
		for range n {
			assert.NoError(t, p.Do(context.Background(), fine))
		}
	}
	calls(10)
	reader := sdkmetric.NewManualReader()
	var running sync.WaitGroup
	running.Go(func() { calls(1000) })
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	running.Wait()
	calls(10)

	l := &lab{t: t}
	got := l.readings(reader)
	count := func(series string) int { return int(got["switchgear."+series]) }
	assert.Equal(t, 1020, count("circuit_breaker.calls{switchgear.call.outcome=success,switchgear.circuit_breaker.state=closed,switchgear.policy.name=payments-api}"))
	assert.Equal(t, 1020, count("timeout.calls{switchgear.policy.name=charge,switchgear.timeout.result=completed}"))
	assert.Equal(t, 1, count("circuit_breaker.status{switchgear.circuit_breaker.state=closed,switchgear.policy.name=payments-api}"))
	assert.GreaterOrEqual(t, count("pipeline.duration{switchgear.call.outcome=success,switchgear.pipeline.name=charge}"), 10)
	runtime.KeepAlive(p)
}

func TestAnObserverThatIsThereBeforeTheProvidersTracesAndLogsThroughThem(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	o := otelx.New(otelx.WithSpans(), otelx.WithEvents(otelx.SpanEvents|otelx.LogEvents))
	p := policy.NewPipeline("charge", policy.Fallback(func(context.Context, error) error { return nil })).Observed(o)
	down := func(context.Context) error { return errDown }
	require.NoError(t, p.Do(context.Background(), down))

	spans, records := tracetest.NewSpanRecorder(), &logs{}
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	otel.SetLoggerProvider(sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewSimpleProcessor(records))))
	require.NoError(t, p.Do(context.Background(), down))
	require.Len(t, spans.Ended(), 1)
	assert.Equal(t, "pipeline charge", spans.Ended()[0].Name())
	require.Len(t, spans.Ended()[0].Events(), 1)
	assert.Equal(t, semconv.EventFallbackUsed, spans.Ended()[0].Events()[0].Name)
	require.Len(t, records.records, 1)
	assert.Equal(t, semconv.EventFallbackUsed, records.records[0].EventName())
	assert.Equal(t, spans.Ended()[0].SpanContext().SpanID(), records.records[0].SpanID())
}

func TestASlowBucketLeadsToATrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		p := l.pipeline("charge")
		_ = l.run(context.Background(), p, func(context.Context) error {
			time.Sleep(3 * time.Second)
			return nil
		})
		h, ok := l.collect(l.cumulative)[semconv.PipelineDuration].Data.(metricdata.Histogram[float64])
		require.True(t, ok)
		require.Len(t, h.DataPoints, 1)
		require.Len(t, h.DataPoints[0].Exemplars, 1)
		want, got := l.spans.Ended()[0].SpanContext().TraceID(), h.DataPoints[0].Exemplars[0]
		assert.Equal(t, want[:], got.TraceID)
		assert.InDelta(t, 3, got.Value, 1e-9)
	})
}

// The report: pilot#5210, an alert on a count of openings that fired for ever.
func TestABreakerIsInExactlyOneStateAndShowsItsRecoveryWithoutTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		b, p := l.newBreaker("payments-api", breaker.Config{Consecutive: 1, Cooldown: 5 * time.Second})
		// state collects, and returns the one state that the status shows, and the openings so far.
		state := func() (state string, openings int) {
			collected := l.collect(l.cumulative)
			for _, p := range points(collected[semconv.BreakerStatus]) {
				v, _ := p.attrs.Value(semconv.BreakerState)
				if p.value != 0 {
					assert.Empty(t, state, "in two states: %s", v.AsString())
					assert.Equal(t, 1, int(p.value))
					state = v.AsString()
				}
			}
			for _, p := range points(collected[semconv.BreakerTransitions]) {
				if v, _ := p.attrs.Value(semconv.BreakerState); v.AsString() == semconv.StateOpen {
					openings += int(p.value)
				}
			}
			return state, openings
		}
		is := func(want string, wantOpenings int) {
			t.Helper()
			got, openings := state()
			assert.Equal(t, want, got)
			assert.Equal(t, wantOpenings, openings)
		}
		is("closed", 0)
		_ = l.call(p, errDown)
		is("open", 1)
		time.Sleep(5*time.Second - time.Nanosecond)
		is("open", 1)
		time.Sleep(time.Nanosecond)
		is("half_open", 1)
		_ = l.call(p, nil)
		is("closed", 1)
		b.ForceOpen()
		is("forced_open", 1)
		b.Reset()
		is("closed", 1)
	})
}

// The report: opentelemetry-go#6788: the SDK keeps a series for as long as the process lives.
func TestTenThousandErrorsAddNoSeries(t *testing.T) {
	l := newLab(t)
	b := breaker.New("payments-api", breaker.Config{Window: time.Hour, FailureRatio: -1, Observer: l})
	p := l.pipeline("charge", policy.Fallback(func(_ context.Context, err error) error { return err }), retry.New(retry.Config{Attempts: 1}), b)
	_ = p.Do(context.Background(), func(context.Context) error { return errDown })
	before := len(l.readings(l.cumulative))
	for n := range 10_000 {
		_ = p.Do(context.Background(), func(context.Context) error { return typed{kind: fmt.Sprint("user ", n, " not found")} })
	}
	assert.Len(t, l.readings(l.cumulative), before)
}

// The reports: unpoller#1092, otelsql#580, opentelemetry-go#3808.
func TestBreakersMadeAndDroppedLeaveNoSeriesAndNoMemory(t *testing.T) {
	const breakers = 100_000
	l := newLab(t)
	observer := l.Observer // not the lab, which keeps the sources
	makeAndDrop := func(from, n int) {
		for i := range n {
			b := breaker.New(fmt.Sprint("b", from+i), breaker.Config{Observer: observer})
			_ = b.Do(context.Background(), func(context.Context) error { return errDown })
			if i%10_000 == 0 {
				l.collect(l.cumulative)
			}
		}
	}
	heap := func() int64 {
		for range 5 { // cleanups run after a collection of garbage, and free more
			runtime.GC()
			runtime.Gosched()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	makeAndDrop(0, 1000)
	before := heap()
	makeAndDrop(1000, breakers)
	var grown int64
	var series int
	require.Eventually(t, func() bool {
		grown, series = heap()-before, len(l.readings(l.cumulative))
		return grown < 1<<20 && series == 0
	}, time.Minute, time.Millisecond, "%d breakers leave %v bytes and %v series", breakers, &grown, &series)
}

// inOwnProcess runs the rest of a test in a process of its own, where nobody has set a global provider yet. It reports
// whether this is that process.
func inOwnProcess(t *testing.T) bool {
	t.Helper()
	const key = "SWITCHGEAR_TEST_ALONE"
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
