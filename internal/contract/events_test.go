package contract

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"

	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// everyEvent drives all policies and returns what came of it.
func everyEvent(t *testing.T) *lab {
	l := newLab(t, otelx.WithEvents(otelx.SpanEvents|otelx.LogEvents), otelx.WithTransitionSpans())
	for _, d := range drives {
		d.drive(l)
	}
	return l
}

func TestEventsAreWhatTheRegistrySays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := everyEvent(t)
		require.Len(t, l.logs.records, len(l.told), "each event is one record")
		seen := map[string]bool{}
		for n, r := range l.logs.records {
			attrs := attrsOf(r)
			e := event(t, r.EventName())
			seen[e.Name] = true
			checkAttributes(t, e, attrs, seen)
			assert.Equal(t, severity(e, attrs), r.Severity(), "%s %v", e.Name, attrs)
			assert.True(t, l.told[n].Time.Equal(r.Timestamp()), "%s: a record has the event's time", e.Name)
			assert.WithinRange(t, r.Timestamp(), r.ObservedTimestamp().Add(-2*time.Hour), r.ObservedTimestamp(), e.Name)
		}
		for _, s := range l.spans.Ended() {
			for _, got := range s.Events() {
				attrs := map[string]attribute.Value{}
				for _, kv := range got.Attributes {
					attrs[string(kv.Key)] = kv.Value
				}
				checkAttributes(t, event(t, got.Name), attrs, seen)
			}
		}
		for _, e := range semconv.Events {
			assert.True(t, seen[e.Name], "never seen: %s", e.Name)
			for _, a := range e.Attributes {
				assert.True(t, seen[e.Name+" "+a.Key] || a.Key == semconv.EventLag, "never seen: %s %s", e.Name, a.Key)
				for _, v := range a.Values {
					// That of an error is the same function for all events; a fallback has met every one.
					assert.True(t, seen[e.Name+" "+a.Key+" "+v] || a.Key == semconv.ErrorType && e.Name != semconv.EventFallbackUsed,
						"never seen: %s %s %s", e.Name, a.Key, v)
				}
			}
		}
		assert.True(t, seen[semconv.EventStateChange+" "+semconv.EventLag], "never seen: an event that is told late")
	})
}

func TestASpanEventAndALogRecordAreTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := everyEvent(t)
		var records, events []string
		for _, r := range l.logs.records {
			records = append(records, fmt.Sprint(r.EventName(), attrsOf(r)))
		}
		for _, s := range l.spans.Ended() {
			for _, e := range s.Events() {
				attrs := map[string]attribute.Value{}
				for _, kv := range e.Attributes {
					if kv.Key != semconv.EventLag {
						attrs[string(kv.Key)] = kv.Value
					}
				}
				events = append(events, fmt.Sprint(e.Name, attrs))
			}
		}
		assert.ElementsMatch(t, records, events)
	})
}

func event(t *testing.T, name string) semconv.Event {
	t.Helper()
	i := slices.IndexFunc(semconv.Events, func(e semconv.Event) bool { return e.Name == name })
	require.GreaterOrEqual(t, i, 0, "an event that is not in the registry: %q", name)
	return semconv.Events[i]
}

func checkAttributes(t *testing.T, e semconv.Event, attrs map[string]attribute.Value, seen map[string]bool) {
	known := 0
	for _, a := range e.Attributes {
		v, there := attrs[a.Key]
		if !there {
			assert.NotEmpty(t, a.Optional, "%s lacks %s: %v", e.Name, a.Key, attrs)
			continue
		}
		known++
		seen[e.Name+" "+a.Key] = true
		assert.Equal(t, types[a.Type], v.Type(), "%s %s", e.Name, a.Key)
		if a.Values != nil {
			assert.Contains(t, a.Values, v.AsString(), "%s %s", e.Name, a.Key)
			seen[e.Name+" "+a.Key+" "+v.AsString()] = true
		}
	}
	assert.Len(t, attrs, known, "attributes of %s that are not in the registry: %v", e.Name, attrs)
}

var types = map[semconv.Type]attribute.Type{semconv.String: attribute.STRING, semconv.Int: attribute.INT64, semconv.Double: attribute.FLOAT64}

func severity(e semconv.Event, attrs map[string]attribute.Value) log.Severity {
	level := e.Severity
	if by, ok := e.SeverityOf[attrs[e.SeverityBy].AsString()]; ok {
		level = by
	}
	return map[slog.Level]log.Severity{
		slog.LevelDebug: log.SeverityDebug, slog.LevelInfo: log.SeverityInfo, slog.LevelWarn: log.SeverityWarn,
	}[level]
}

// A retry storm must not push out of a span what its caller wrote there, nor what tells how the call ended.
func TestOnTheSpanOfAStormTerminalEventsAreNeverLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := everyEvent(t)
		samples := map[string]observe.Event{}
		for n, r := range all.logs.records {
			samples[r.EventName()] = all.told[n]
		}
		require.Len(t, samples, len(semconv.Events))
		for name, sample := range samples {
			l := newLab(t)
			p := l.pipeline("storm")
			_ = l.run(context.Background(), p, func(ctx context.Context) error {
				for n := range 100 {
					l.Observe(ctx, observe.Event{Kind: observe.Attempt, Policy: "retry", Attempt: n + 2, Err: errDown})
				}
				l.Observe(ctx, sample)
				return nil
			})
			events := l.spans.Ended()[0].Events()
			last := events[len(events)-1]
			if event(t, name).Terminal {
				assert.Len(t, events, 33, name)
				assert.Equal(t, name, last.Name)
			} else {
				assert.Len(t, events, 32, name)
			}
			assert.Zero(t, l.spans.Ended()[0].DroppedEvents(), name)
		}
	})
}
