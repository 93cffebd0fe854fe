package contract

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/internal/errtree"
	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/ratelimit"
	"github.com/switchgear-go/switchgear/retry"
)

// never are rows that stand in a policy's table and are not reported: the state refuses nobody.
var never = []string{rowKey(semconv.BreakerCalls, []observe.Attr{
	{Key: semconv.BreakerState, Value: semconv.StateForcedClosed}, {Key: semconv.CallOutcome, Value: semconv.OutcomeRejected},
})}

func TestWhatAnSDKCollectsIsWhatTheRegistrySays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		deltas := map[string]float64{}
		for _, d := range drives {
			d.drive(l)
			collected := l.collect(l.delta)
			for name, m := range collected {
				for _, p := range points(m) {
					key := fmt.Sprint(name, p.attrs.Encoded(attribute.DefaultEncoder()))
					if definition(t, name).Instrument == semconv.ObservableUpDownCounter {
						deltas[key] = p.value
						continue
					}
					assert.GreaterOrEqual(t, p.value, 0.0, "%s after %s", key, d.name)
					deltas[key] += p.value
				}
			}
			newSurvey(t, metricdata.DeltaTemporality).take(collected)
		}
		collected := l.collect(l.cumulative)
		s := newSurvey(t, metricdata.CumulativeTemporality)
		s.take(collected)
		s.requireAllSeen()
		for _, want := range rowsOf(l.sources) {
			assert.Equal(t, !slices.Contains(never, want), s.rows[want], "row of a policy, seen: %s", want)
		}
		for name, m := range collected {
			for _, p := range points(m) {
				key := fmt.Sprint(name, p.attrs.Encoded(attribute.DefaultEncoder()))
				if name != semconv.BreakerTime { // it goes on
					assert.InDelta(t, p.value, deltas[key], 1e-6, "the deltas of %s do not add up to its total", key)
				}
			}
		}
	})
}

func definition(t *testing.T, name string) semconv.Metric {
	t.Helper()
	i := slices.IndexFunc(semconv.Metrics, func(m semconv.Metric) bool { return m.Name == name })
	require.GreaterOrEqual(t, i, 0, "a metric that is not in the registry: %s", name)
	return semconv.Metrics[i]
}

// survey compares what is collected with the registry, and remembers what it has seen of that.
type survey struct {
	t           *testing.T
	temporality metricdata.Temporality
	values      map[string]bool // "metric key value", and "metric" and "metric key" alone
	rows        map[string]bool
}

func newSurvey(t *testing.T, temporality metricdata.Temporality) *survey {
	return &survey{t, temporality, map[string]bool{}, map[string]bool{}}
}

func (s *survey) take(collected map[string]metricdata.Metrics) {
	for name, got := range collected {
		want := definition(s.t, name)
		s.values[name] = true
		assert.Equal(s.t, want.Unit, got.Unit, name)
		assert.Equal(s.t, want.Description, got.Description, name)
		assert.Equal(s.t, s.kind(want), kindOf(got), name)
		if h, ok := got.Data.(metricdata.Histogram[float64]); ok {
			assert.Equal(s.t, want.Boundaries, h.DataPoints[0].Bounds, name)
		}
		for _, p := range points(got) {
			s.series(want, p.attrs)
		}
	}
}

// kind is what an SDK makes of an instrument of the registry.
func (s *survey) kind(m semconv.Metric) string {
	number := "int64"
	if m.Seconds {
		number = "float64"
	}
	switch m.Instrument {
	case semconv.Histogram:
		return fmt.Sprintf("histogram %s %v", number, s.temporality)
	case semconv.ObservableCounter:
		return fmt.Sprintf("sum %s %v monotonic", number, s.temporality)
	}
	return fmt.Sprintf("sum %s %v", number, metricdata.CumulativeTemporality)
}

func kindOf(m metricdata.Metrics) string {
	sum := func(number string, temporality metricdata.Temporality, monotonic bool) string {
		text := fmt.Sprintf("sum %s %v", number, temporality)
		if monotonic {
			text += " monotonic"
		}
		return text
	}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		return sum("int64", data.Temporality, data.IsMonotonic)
	case metricdata.Sum[float64]:
		return sum("float64", data.Temporality, data.IsMonotonic)
	case metricdata.Histogram[float64]:
		return fmt.Sprintf("histogram float64 %v", data.Temporality)
	}
	return fmt.Sprintf("%T", m.Data)
}

// series compares the attributes of one series: exactly these keys, and values of the closed sets.
func (s *survey) series(m semconv.Metric, attrs attribute.Set) {
	got := map[string]string{}
	for _, kv := range attrs.ToSlice() {
		assert.Equal(s.t, attribute.STRING, kv.Value.Type(), "%s %s", m.Name, kv.Key)
		got[string(kv.Key)] = kv.Value.AsString()
	}
	assert.NotEmpty(s.t, got[m.NameKey], "%s has no %s: %v", m.Name, m.NameKey, got)
	delete(got, m.NameKey)
	s.rows[rowKeyOf(m.Name, got)] = true
	for _, a := range m.Attributes {
		value, there := got[a.Key]
		delete(got, a.Key)
		if !there {
			assert.NotEmpty(s.t, a.Optional, "%s lacks %s", m.Name, a.Key)
			s.values[m.Name+" without "+a.Key] = true
			continue
		}
		assert.Contains(s.t, a.Values, value, "%s %s", m.Name, a.Key)
		s.values[m.Name+" "+a.Key+" "+value] = true
	}
	assert.Empty(s.t, got, "attributes of %s that are not in the registry", m.Name)
}

// requireAllSeen fails for what the registry has and nobody collected.
func (s *survey) requireAllSeen() {
	for _, m := range semconv.Metrics {
		assert.True(s.t, s.values[m.Name], "never seen: %s", m.Name)
		for _, a := range m.Attributes {
			assert.NotEmpty(s.t, a.Values, "%s %s may have any value: a series for each", m.Name, a.Key)
			for _, v := range a.Values {
				assert.True(s.t, s.values[m.Name+" "+a.Key+" "+v], "never seen: %s %s %s", m.Name, a.Key, v)
			}
			if a.Optional != "" {
				assert.True(s.t, s.values[m.Name+" without "+a.Key], "never seen: %s without %s", m.Name, a.Key)
			}
		}
	}
}

func rowsOf(sources []observe.Source) []string {
	all := map[string]bool{}
	for _, s := range sources {
		for _, r := range slices.Concat(s.Rows, s.Durations) {
			all[rowKey(r.Metric, r.Attrs)] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func rowKey(metric string, attrs []observe.Attr) string {
	byKey := map[string]string{}
	for _, a := range attrs {
		byKey[a.Key] = a.Value
	}
	return rowKeyOf(metric, byKey)
}

func rowKeyOf(metric string, attrs map[string]string) string {
	parts := []string{metric}
	for _, key := range slices.Sorted(maps.Keys(attrs)) {
		parts = append(parts, strings.TrimPrefix(key, "switchgear.")+"="+attrs[key])
	}
	return strings.Join(parts, " ")
}

// Series that are never at 0 hide their first increment from whoever computes rates.
func TestClosedSetsStartAtZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.keep(l.pipeline("fresh", policy.Timeout(1), retry.New(retry.Config{}), policy.Fallback(func(context.Context, error) error { return nil }),
			retry.NewHedge(retry.HedgeConfig{Delay: 1}),
			breaker.New("fresh", breaker.Config{Observer: l}),
			bulkhead.New("fresh", bulkhead.Config{Max: 1, Observer: l}),
			ratelimit.New("fresh", ratelimit.Config{Rate: 1, Observer: l})))
		collected := l.collect(l.cumulative)
		for _, m := range semconv.Metrics {
			if m.Instrument == semconv.Histogram || m.Reported != "" {
				assert.NotContains(t, collected, m.Name)
				continue
			}
			require.Contains(t, collected, m.Name)
			seen := map[string]bool{}
			for _, p := range points(collected[m.Name]) {
				if m.Instrument == semconv.ObservableCounter {
					assert.Zero(t, p.value, "%s %v", m.Name, p.attrs.ToSlice())
				}
				for _, kv := range p.attrs.ToSlice() {
					seen[string(kv.Key)+" "+kv.Value.AsString()] = true
				}
			}
			for _, a := range m.Attributes {
				for _, v := range a.Values {
					assert.Equal(t, !slices.Contains(a.Later, v), seen[a.Key+" "+v], "%s %s %s, seen", m.Name, a.Key, v)
				}
			}
		}
	})
}

func TestTheRegistryAndTheCodeHaveTheSameValues(t *testing.T) {
	set := func(metric, key string) []string {
		m := definition(t, metric)
		i := slices.IndexFunc(m.Attributes, func(a semconv.Attribute) bool { return a.Key == key })
		require.GreaterOrEqual(t, i, 0)
		return m.Attributes[i].Values
	}
	assert.ElementsMatch(t, errtree.Types[:], set(semconv.PipelineDuration, semconv.ErrorType))
	var states []string
	for _, s := range []breaker.State{breaker.Closed, breaker.HalfOpen, breaker.Open, breaker.ForcedOpen, breaker.ForcedClosed} {
		states = append(states, s.String())
	}
	assert.ElementsMatch(t, states, set(semconv.BreakerStatus, semconv.BreakerState))
}

func TestTelemetryAllocatesNothingOnACallThatSucceeds(t *testing.T) {
	l := newLab(t)
	sampled, span := l.tracer.Start(context.Background(), "caller")
	defer span.End()
	fine := func(context.Context) error { return nil }
	allocations := func(ctx context.Context, o observe.Observer) float64 {
		p := policy.NewPipeline("charge", policy.Timeout(time.Minute), retry.New(retry.Config{}),
			breaker.New("b", breaker.Config{Observer: o}), bulkhead.New("b", bulkhead.Config{Max: 1, Observer: o})).Observed(o)
		return testing.AllocsPerRun(1000, func() { _ = p.Do(ctx, fine) })
	}
	silent := allocations(context.Background(), observe.Discard)
	assert.InDelta(t, silent, allocations(context.Background(), l.Observer), 0)
	assert.InDelta(t, silent, allocations(sampled, l.Observer), 0, "in a sampled span")
}
