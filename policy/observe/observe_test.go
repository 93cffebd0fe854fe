package observe_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy/observe"
)

// watcher remembers what an observer is told, under its name.
type watcher struct {
	name     string
	log      *[]string
	sources  []observe.Source
	enabled  bool
	detached atomic.Int32
}

func (w *watcher) say(what string) { *w.log = append(*w.log, w.name+" "+what) }

func (w *watcher) Observe(_ context.Context, e observe.Event) { w.say("told of " + e.Kind.String()) }

func (w *watcher) Attach(s observe.Source) observe.Probe {
	w.sources = append(w.sources, s)
	return w
}

func (w *watcher) Enabled(context.Context) bool { return w.enabled }
func (w *watcher) Record(_ context.Context, row int, d time.Duration) {
	w.say("recorded " + d.String())
}
func (w *watcher) Detach() { w.detached.Add(1) }

// startedBy is the key of a context that a tracer has passed on.
type startedBy string

// tracer is a watcher that traces.
type tracer struct{ *watcher }

func (t tracer) Start(ctx context.Context, pipeline string, _ int) (context.Context, func(error)) {
	t.say("started " + pipeline)
	return context.WithValue(ctx, startedBy(t.name), true), func(error) { t.say("ended " + pipeline) }
}

type policyWithState struct{ running int64 }

func TestAttachReadsThePolicyWhileThereIsOne(t *testing.T) {
	w := &watcher{log: new([]string), enabled: true}
	func() {
		p := &policyWithState{running: 3}
		probe := observe.Attach(w, p, observe.Source{Rows: []observe.Row{{Metric: "running"}}}, func(p *policyWithState, v []int64) { v[0] = p.running })
		require.Len(t, w.sources, 1)
		v := []int64{observe.None}
		assert.True(t, w.sources[0].Live(v))
		assert.Equal(t, []int64{3}, v)
		assert.True(t, probe.Enabled(t.Context()))
		runtime.KeepAlive(p)
	}()
	collect(t, func() bool { return w.detached.Load() == 1 })
	assert.False(t, w.sources[0].Live(nil), "the observer does not keep the policy")
}

func TestAttachWithoutLiveOnlyTellsThatThePolicyIsThere(t *testing.T) {
	w := &watcher{log: new([]string)}
	p := &policyWithState{}
	observe.Attach(w, p, observe.Source{}, nil)
	assert.True(t, w.sources[0].Live(nil))
	runtime.KeepAlive(p)
}

func TestAnObserverWithoutAProbeGetsOneThatDoesNothing(t *testing.T) {
	for _, o := range []observe.Observer{observe.Discard, observe.Func(func(context.Context, observe.Event) {}), noProbes{}, observe.Tee()} {
		probe := observe.Attach(o, &policyWithState{}, observe.Source{}, nil)
		require.NotNil(t, probe)
		assert.False(t, probe.Enabled(t.Context()))
		probe.Record(t.Context(), 0, 0)
		probe.Detach()
		o.Observe(t.Context(), observe.Event{})
	}
}

type noProbes struct{}

func (noProbes) Observe(context.Context, observe.Event) {}
func (noProbes) Attach(observe.Source) observe.Probe    { return nil }

// collect collects garbage until done says so: cleanups run when they like.
func collect(t *testing.T, done func() bool) {
	t.Helper()
	for range 1000 {
		runtime.GC()
		if done() {
			return
		}
		runtime.Gosched()
	}
	t.Fatal("it was never cleaned up")
}

func TestTeePassesEverythingOnInOrder(t *testing.T) {
	var log []string
	a, b := &watcher{name: "a", log: &log, enabled: true}, &watcher{name: "b", log: &log}
	o := observe.Tee(a, nil, b, observe.Discard)
	_, traces := o.(observe.Spanner)
	assert.False(t, traces)
	o.Observe(t.Context(), observe.Event{Kind: observe.Rejected})
	probe := o.Attach(observe.Source{Name: "x"})
	assert.Equal(t, "x", b.sources[0].Name)
	assert.True(t, probe.Enabled(t.Context()), "one of them is")
	probe.Record(t.Context(), 1, time.Second)
	probe.Detach()
	assert.Equal(t, []string{"a told of rejected", "b told of rejected", "a recorded 1s"}, log)
	assert.EqualValues(t, 1, a.detached.Load())
	assert.EqualValues(t, 1, b.detached.Load())
	assert.Same(t, a, observe.Tee(nil, a), "one alone needs no tee")
}

func TestATeeTracesIfOneOfThemDoes(t *testing.T) {
	var log []string
	a, b := tracer{&watcher{name: "a", log: &log}}, tracer{&watcher{name: "b", log: &log}}
	o := observe.Tee(a, observe.Discard, b)
	s, ok := o.(observe.Spanner)
	require.True(t, ok)
	ctx, end := s.Start(t.Context(), "charge", 0)
	assert.Equal(t, true, ctx.Value(startedBy("a")))
	assert.Equal(t, true, ctx.Value(startedBy("b")))
	end(nil)
	assert.Equal(t, []string{"a started charge", "b started charge", "b ended charge", "a ended charge"}, log)
	o.Observe(t.Context(), observe.Event{})
	assert.Len(t, log, 6)
}

func TestLevels(t *testing.T) {
	for _, tt := range []struct {
		e    observe.Event
		want slog.Level
	}{
		{observe.Event{Kind: observe.StateChange, To: "open"}, slog.LevelWarn},
		{observe.Event{Kind: observe.StateChange, To: "forced_open"}, slog.LevelWarn},
		{observe.Event{Kind: observe.StateChange, To: "half_open"}, slog.LevelInfo},
		{observe.Event{Kind: observe.StateChange, To: "closed"}, slog.LevelInfo},
		{observe.Event{Kind: observe.Rejected}, slog.LevelDebug},
		{observe.Event{Kind: observe.Attempt}, slog.LevelInfo},
		{observe.Event{Kind: observe.Exhausted}, slog.LevelWarn},
		{observe.Event{Kind: observe.TimedOut}, slog.LevelWarn},
		{observe.Event{Kind: observe.Hedged}, slog.LevelDebug},
		{observe.Event{Kind: observe.FellBack}, slog.LevelInfo},
	} {
		assert.Equal(t, tt.want, tt.e.Level(), "%v to %s", tt.e.Kind, tt.e.To)
	}
	assert.Equal(t, "unknown", observe.Kind(-1).String())
	assert.Equal(t, "unknown", observe.Kind(99).String())
}

func TestSlogWritesEachEventAsOneLine(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		e    observe.Event
		want string
	}{
		{
			observe.Event{
				Kind: observe.StateChange, Policy: "circuit_breaker", Name: "db", Pipeline: "find", From: "closed", To: "open",
				Reason: "failure_ratio", Ratio: 0.5, Calls: 20, Delay: 5 * time.Second, Err: errors.New("refused"),
			},
			`level=WARN msg="circuit breaker db: closed → open" policy=circuit_breaker name=db pipeline=find from=closed to=open reason=failure_ratio ratio=0.5 calls=20 delay=5s error=refused`,
		},
		{observe.Event{Kind: observe.Rejected, Policy: "bulkhead", Name: "db", Reason: "rejected"}, `level=DEBUG msg="bulkhead db refused a call" policy=bulkhead name=db reason=rejected`},
		{observe.Event{Kind: observe.Attempt, Policy: "retry", Name: "find", Attempt: 2}, `level=INFO msg="retry find tries again" policy=retry name=find attempt=2 delay=0s`},
		{observe.Event{Kind: observe.Exhausted, Policy: "retry", Attempt: 3}, `level=WARN msg="retry gave up" policy=retry name="" attempt=3`},
		{observe.Event{Kind: observe.TimedOut, Policy: "timeout", Name: "find", Delay: time.Second}, `level=WARN msg="timeout find exceeded" policy=timeout name=find delay=1s`},
		{observe.Event{Kind: observe.Hedged, Policy: "hedge", Name: "find", Attempt: 2}, `level=DEBUG msg="hedge find sent another attempt" policy=hedge name=find attempt=2`},
		{observe.Event{Kind: observe.Hedged, Policy: "hedge", Name: "find", Attempt: 2, Reason: "budget_exhausted"}, `level=DEBUG msg="hedge find may not send another attempt" policy=hedge name=find reason=budget_exhausted attempt=2`},
		{observe.Event{Kind: observe.Hedged, Policy: "hedge", Name: "find", Attempt: 2, Reason: "panic"}, `level=DEBUG msg="hedge find: an attempt panicked" policy=hedge name=find reason=panic attempt=2`},
		{observe.Event{Kind: observe.FellBack, Policy: "fallback", Name: "find"}, `level=INFO msg="fallback find used" policy=fallback name=find`},
		{observe.Event{Kind: 42, Policy: "mine", Name: "x"}, `level=INFO msg="mine x: unknown" policy=mine name=x`},
	} {
		var out bytes.Buffer
		tt.e.Time = at
		observe.Slog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))).Observe(t.Context(), tt.e)
		assert.Equal(t, "time=2026-01-02T03:04:05.000Z "+tt.want+"\n", out.String())
	}
}

func TestSlogHeedsTheLevelAndTheDefaultLogger(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	o := observe.Slog(nil)
	slog.SetDefault(slog.New(slog.NewJSONHandler(&out, nil)))
	o.Observe(t.Context(), observe.Event{Kind: observe.Rejected})
	assert.Empty(t, out.String())
	o.Observe(t.Context(), observe.Event{Kind: observe.StateChange, Policy: "circuit_breaker", Name: "db", To: "open", Time: time.Now()})
	assert.Equal(t, 1, strings.Count(out.String(), "\n"))
}

func TestNothingIsAllocatedForALineThatIsNotWritten(t *testing.T) {
	o := observe.Slog(slog.New(slog.DiscardHandler))
	ctx, e := t.Context(), observe.Event{Kind: observe.Rejected}
	assert.Zero(t, testing.AllocsPerRun(100, func() { o.Observe(ctx, e) }))
}
