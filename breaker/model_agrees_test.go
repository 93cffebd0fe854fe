package breaker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// twin is a breaker beside its model.
type twin struct {
	*bed
	model   *model
	permits []twinPermit
	refused int
}

type twinPermit struct {
	permit *Permit
	cancel context.CancelFunc
	model  *modelPermit
}

func drawTwin(t *rapid.T) *twin {
	m := &model{counts: map[string]int64{}}
	draw := func(name string, from ...int) int { return rapid.SampledFrom(from).Draw(t, name) }
	if draw("window of", 0, 1) == 0 {
		m.window = draw("window", 10, 20)
	} else {
		m.lastCalls = draw("calls", 2, 4, 6)
	}
	m.minCalls = draw("min calls", 1, 2, 4)
	if m.lastCalls > 0 {
		m.minCalls = min(m.minCalls, m.lastCalls)
	}
	m.failureQuarters = draw("failure ratio", 0, 2, 3, 4)
	m.failures = draw("failures", 0, 0, 2)
	m.consecutive = draw("consecutive", 0, 0, 3)
	m.slowCall = draw("slow call", 0, 0, 3)
	m.slowQuarters = draw("slow ratio", 2, 4)
	m.cooldown = draw("cooldown", 1, 2, 4)
	m.maxCooldown = draw("max cooldown", 4, 7, 9)
	m.growth = draw("growth", 1, 2, 3)
	m.probes = draw("probes", 1, 1, 2, 3)
	m.probeSuccesses = draw("probe successes", 1, 1, 2)
	m.probeTimeout = draw("probe timeout", 2, 6)
	m.shadow = draw("shadow", 0, 0, 0, 1) == 1
	return &twin{bed: newBed(m.config()), model: m}
}

// reopen brings both half-open, where most of the interesting things happen.
func (w *twin) reopen(*rapid.T) {
	w.Trip()
	w.model.operate(Open, Closed, HalfOpen)
	if w.model.state == Open {
		w.wait(w.model.until - w.model.now)
	}
}

func (w *twin) wait(seconds int) {
	for range seconds {
		w.model.pass()
	}
	w.advance(time.Duration(seconds) * time.Second)
}

func (w *twin) allow(t *rapid.T) {
	ctx, cancel := context.WithCancel(context.Background())
	p, err := w.Allow(ctx)
	q, ok := w.model.admit()
	w.compareRefusal(t, err, ok)
	if !ok {
		cancel()
		return
	}
	w.permits = append(w.permits, twinPermit{p, cancel, q})
}

// done ends a random call, the oldest or newest rather than one between.
func (w *twin) done(t *rapid.T) {
	if len(w.permits) == 0 {
		t.Skip("none runs")
	}
	i := rapid.IntRange(0, len(w.permits)-1).Draw(t, "which")
	p := w.permits[i]
	w.permits = append(w.permits[:i:i], w.permits[i+1:]...)
	r := rapid.SampledFrom([]struct {
		err     error
		outcome policy.Outcome
	}{
		{nil, policy.Success},
		{policy.Healthy(errDown), policy.Success},
		{errDown, policy.Failure},
		{errHint, policy.Failure},
		{errHintOfNothing, policy.Failure},
		{policy.ErrRejected, policy.Ignored},
		{errGivenUp, policy.Ignored},
	}).Draw(t, "result")
	if r.err == errGivenUp { //nolint:errorlint // this very one
		p.cancel()
	}
	p.permit.Done(r.err)
	w.model.finish(p.model, r.outcome, r.err)
	p.permit.Done(errDown) // once is enough
	p.cancel()
}

// do makes a call from start to end.
func (w *twin) do(t *rapid.T) {
	how := rapid.SampledFrom([]string{"success", "failure", "panic", "done ctx"}).Draw(t, "how")
	ctx, ran, err := context.Background(), false, error(nil)
	if how == "done ctx" {
		ctx = canceled()
	}
	func() {
		defer func() { _ = recover() }()
		err = w.Do(ctx, func(context.Context) error {
			ran = true
			switch how {
			case "failure":
				return errDown
			case "panic":
				panic("ouch")
			}
			return nil
		})
	}()
	if how == "done ctx" {
		require.Equal(t, context.Canceled, err)
		return // nothing ran, nothing was counted
	}
	p, ok := w.model.admit()
	require.Equal(t, ok, ran, "ran")
	if !ok {
		w.compareRefusal(t, err, ok)
		return
	}
	switch how {
	case "success":
		w.model.finish(p, policy.Success, nil)
	case "failure":
		w.model.finish(p, policy.Failure, errDown)
	case "panic":
		w.model.finish(p, policy.Failure, observe.ErrPanicked)
	}
}

func (w *twin) compareRefusal(t *rapid.T, err error, admitted bool) {
	if admitted {
		require.NoError(t, err)
		return
	}
	w.refused++
	var refusal *policy.RejectedError
	require.ErrorAs(t, err, &refusal)
	require.ErrorIs(t, err, ErrCircuitOpen)
	require.ErrorIs(t, err, policy.ErrRejected)
	retryAt := time.Time{}
	if w.model.state == Open {
		retryAt = start.Add(time.Duration(w.model.until) * time.Second)
	}
	require.Equal(t, policy.RejectedError{
		Policy: "circuit_breaker", Name: "payments-api", Reason: ErrCircuitOpen, RetryAt: retryAt, Why: w.model.why, Cause: w.model.cause,
	}, policy.RejectedError{
		Policy: refusal.Policy, Name: refusal.Name, Reason: refusal.Reason, RetryAt: refusal.RetryAt, Why: refusal.Why, Cause: refusal.Cause,
	})
}

// compare compares all that can be seen.
func (w *twin) compare(t *rapid.T) {
	m := w.model
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	calls, failed, slow := m.inWindow()
	want := Stats{
		State: m.state, Since: at(m.since), Calls: calls, Failed: failed, Slow: slow + m.slowRunning(),
		Rejected: int64(w.refused), Opened: int64(m.opened), Late: m.counts[semconv.BreakerLateResults],
		OpenFor: time.Duration(m.spent[Open]) * time.Second, Cooldown: time.Duration(m.wait) * time.Second,
		Reopenings: max(0, m.openings-1), LastFailure: m.lastFailure,
	}
	if m.state == Closed {
		want.Reopenings = max(0, m.remembered()-1)
	}
	if calls > 0 {
		want.Ratio = float64(failed) / float64(calls)
	}
	if m.state == Open {
		want.Until = at(m.until)
	}
	if m.state == HalfOpen {
		want.Probing = len(m.running)
	}
	if m.lastFailure != nil {
		want.LastFailureAt = at(m.lastFailureAt)
	}
	require.Equal(t, m.state, w.State())
	require.Equal(t, want, w.Stats())
	require.Equal(t, m.state != Closed, w.InUse())

	refusals, told := 0, []string(nil)
	for _, e := range w.events {
		require.Equal(t, "circuit_breaker payments-api", e.Policy+" "+e.Name)
		if e.Kind == observe.Rejected {
			refusals++
			require.Equal(t, "rejected", e.Reason)
			continue
		}
		text := fmt.Sprintf("%ds %s→%s %s %v %.2f %d", e.Time.Sub(start)/time.Second, e.From, e.To, e.Reason, e.Err, e.Ratio, e.Calls)
		if e.To == "open" {
			text += fmt.Sprintf(" for %ds, reopening %d", e.Delay/time.Second, e.Reopenings)
		}
		told = append(told, text)
	}
	require.Equal(t, m.told, told, "changes told")
	require.Equal(t, w.refused, refusals, "refusals told")

	counted := map[string]int64{}
	for i := range w.source.Counts {
		if n := w.source.Counts[i].Load(); n > 0 {
			r := w.source.Rows[i]
			key := r.Metric
			for _, a := range r.Attrs {
				key += " " + a.Value
			}
			counted[key] = n
		}
	}
	require.Equal(t, m.counts, counted, "counts")
	live := make([]int64, 2*states)
	require.True(t, w.source.Live(live))
	for s := range State(states) {
		status, spent := int64(0), time.Duration(m.spent[s])*time.Second
		if s == m.state {
			status = 1
		}
		require.Equal(t, status, max(0, live[s]), "status %v", s)
		require.Equal(t, int64(spent), max(0, live[states+s]), "time in %v", s)
	}
}

func TestABreakerAgreesWithItsModel(t *testing.T) {
	rapid.Check(t, modelAgrees)
}

func FuzzABreakerAgreesWithItsModel(f *testing.F) {
	for seed := range byte(8) {
		data := make([]byte, 1<<14)
		_, _ = rand.NewChaCha8([32]byte{seed}).Read(data)
		f.Add(data)
	}
	f.Fuzz(rapid.MakeFuzz(modelAgrees))
}

func modelAgrees(t *rapid.T) {
	w := drawTwin(t)
	t.Repeat(map[string]func(*rapid.T){
		"":           w.compare,
		"allow":      w.allow,
		"allow too":  w.allow,
		"done":       w.done,
		"done too":   w.done,
		"do":         w.do,
		"do too":     w.do,
		"clock":      func(t *rapid.T) { w.wait(rapid.IntRange(1, 5).Draw(t, "seconds")) },
		"long clock": func(t *rapid.T) { w.wait(rapid.IntRange(0, 50).Draw(t, "seconds")) },
		"reopen":     w.reopen,
		"trip":       func(*rapid.T) { w.Trip(); w.model.operate(Open, Closed, HalfOpen) },
		"probe":      func(*rapid.T) { w.Probe(); w.model.operate(HalfOpen, Open, ForcedOpen) },
		"force open": func(*rapid.T) {
			w.ForceOpen()
			w.model.operate(ForcedOpen, Closed, HalfOpen, Open, ForcedClosed)
		},
		"force closed": func(*rapid.T) {
			w.ForceClosed()
			w.model.operate(ForcedClosed, Closed, HalfOpen, Open, ForcedOpen)
		},
		"reset": func(*rapid.T) { w.Reset(); w.model.reset() },
	})
	for _, p := range w.permits {
		p.cancel()
	}
}
