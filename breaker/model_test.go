package breaker

import (
	"context"
	"errors"
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

// model is a breaker as one would explain it: it keeps every call, counts when asked, and lives from second to second. All
// its times are in whole seconds.
type model struct {
	window, lastCalls, minCalls, failures, consecutive, slowCall int
	failureQuarters, slowQuarters                                int // ratios, in quarters; 0: off
	cooldown, maxCooldown, growth                                int
	probes, probeSuccesses, probeTimeout                         int
	shadow                                                       bool

	now, since, until int
	state             State
	generation        int
	log               []modelCall // since the window was cleared
	cleared           int
	openings          int
	wait              int // of the latest opening
	successes         int
	running           []*modelPermit // of this generation, the oldest first; half-open: the probes
	lastFailure       error
	lastFailureAt     int
	why               string
	cause             error

	spent   [states]int
	pending []modelChange // made by time, to be told with the next operation
	told    []string
	counts  map[string]int64
	opened  int
}

type modelCall struct {
	at           int
	failed, slow bool
}

type modelPermit struct {
	generation, start int
	bystander         bool
}

type modelChange struct {
	from, to State
	text     string
}

func (m *model) config() Config {
	second := func(n int) time.Duration { return time.Duration(n) * time.Second }
	cfg := Config{
		Window: second(m.window), Calls: m.lastCalls, MinCalls: m.minCalls, Failures: m.failures, Consecutive: m.consecutive,
		FailureRatio: float64(m.failureQuarters) / 4, SlowCall: second(m.slowCall), SlowRatio: float64(m.slowQuarters) / 4,
		Cooldown: second(m.cooldown), MaxCooldown: second(m.maxCooldown), Growth: float64(m.growth), Jitter: -1,
		Probes: m.probes, ProbeSuccesses: m.probeSuccesses, ProbeTimeout: second(m.probeTimeout), Shadow: m.shadow,
		TripOn: func(err error) (time.Duration, bool) {
			if errors.Is(err, errHint) {
				return 3 * time.Second, true
			}
			return 0, errors.Is(err, errHintOfNothing)
		},
	}
	if m.failureQuarters == 0 {
		cfg.FailureRatio = -1
	}
	return cfg
}

var (
	errHint          = errors.New("come back in 3s")
	errHintOfNothing = errors.New("come back at your leisure")
	errGivenUp       = errors.New("the caller has gone")
)

// pass lets one second pass.
func (m *model) pass() {
	m.spent[m.state]++
	m.now++
	switch {
	case m.state == Open && m.now >= m.until:
		m.pending = append(m.pending, m.change(HalfOpen, reasonCooldownElapsed, nil, 0, "0.00 0"))
	case m.state == HalfOpen && len(m.running) > 0 && m.now >= m.running[0].start+m.probeTimeout:
		m.pending = append(m.pending, m.change(Open, reasonProbeTimeout, nil, 0, "0.00 0"))
	}
}

func (m *model) change(to State, reason string, cause error, wait int, judged string) modelChange {
	c := modelChange{from: m.state, to: to}
	c.text = fmt.Sprintf("%ds %s→%s %s %v %s", m.now, m.state, to, reason, cause, judged)
	if m.state == Closed {
		m.openings = m.remembered()
	}
	switch to {
	case Open:
		if wait == 0 {
			wait = m.cooldown
			for range m.openings {
				wait = min(wait*m.growth, m.maxCooldown)
			}
		}
		wait = min(wait, m.maxCooldown)
		m.wait, m.until = wait, m.now+wait
		c.text += fmt.Sprintf(" for %ds, reopening %d", wait, m.openings)
		m.openings++
	case Closed, ForcedClosed:
		m.clear()
	}
	if to != HalfOpen {
		m.why, m.cause = reason, cause
	}
	m.state, m.since, m.running, m.successes = to, m.now, nil, 0
	m.generation++
	return c
}

func (m *model) clear() { m.log, m.cleared = nil, m.now }

// remembered returns the number of openings that are not forgotten: one is for each MaxCooldown in closed, counting only
// those that made the wait longer.
func (m *model) remembered() int {
	forget := (m.now - m.since) / m.maxCooldown
	if forget == 0 {
		return m.openings
	}
	steps := 0
	for wait := m.cooldown; wait < m.maxCooldown && m.growth > 1; wait *= m.growth {
		steps++
	}
	return max(0, min(m.openings, steps)-forget)
}

// tell tells a change.
func (m *model) tell(c modelChange) {
	m.told = append(m.told, c.text)
	m.counts[fmt.Sprintf("%s %v %v", semconv.BreakerTransitions, c.from, c.to)]++
	if c.to == Open {
		m.opened++
	}
}

// catchUp tells what time has changed.
func (m *model) catchUp() {
	for _, c := range m.pending {
		m.tell(c)
	}
	m.pending = nil
}

func (m *model) admit() (*modelPermit, bool) {
	m.catchUp()
	if m.state == Closed && m.slowCall > 0 {
		if judged, trips := m.tooSlow(); trips {
			m.tell(m.change(Open, reasonSlowRatio, nil, 0, judged))
		}
	}
	p := &modelPermit{generation: m.generation, start: m.now}
	if m.state == Open || m.state == ForcedOpen || m.state == HalfOpen && len(m.running) == m.probes {
		if !m.shadow {
			m.counts[fmt.Sprintf("%s %v %v", semconv.BreakerCalls, m.state, semconv.OutcomeRejected)]++
			return nil, false
		}
		m.counts[semconv.BreakerWouldReject]++
		p.bystander = true
		return p, true
	}
	m.running = append(m.running, p)
	return p, true
}

func (m *model) finish(p *modelPermit, outcome policy.Outcome, err error) {
	m.catchUp()
	if p.generation != m.generation {
		m.counts[semconv.BreakerLateResults]++
		return
	}
	m.counts[fmt.Sprintf("%s %v %v", semconv.BreakerCalls, m.state, outcome)]++
	for i, q := range m.running {
		if q == p {
			m.running = append(m.running[:i:i], m.running[i+1:]...)
			break
		}
	}
	if outcome == policy.Ignored || p.bystander {
		return
	}
	failed, slow := outcome == policy.Failure, m.slowCall > 0 && m.now-p.start >= m.slowCall
	if slow {
		m.counts[semconv.BreakerSlowCalls]++
	}
	if failed {
		m.lastFailure, m.lastFailureAt = err, m.now
	}
	hint, hinted := m.config().TripOn(err)
	switch {
	case m.state == HalfOpen && (failed || slow):
		reason := reasonProbeFailed
		if hinted {
			reason = reasonHint
		}
		m.tell(m.change(Open, reason, err, int(hint/time.Second), "0.00 0"))
	case m.state == HalfOpen:
		if m.successes++; m.successes == m.probeSuccesses {
			m.tell(m.change(Closed, reasonProbeSucceeded, nil, 0, "0.00 0"))
		}
	default:
		m.log = append(m.log, modelCall{m.now, failed, slow})
		switch reason, judged := m.rules(failed); {
		case m.state == ForcedClosed:
		case failed && hinted:
			m.tell(m.change(Open, reasonHint, err, int(hint/time.Second), "0.00 0"))
		case reason == reasonSlowRatio:
			m.tell(m.change(Open, reason, nil, 0, judged))
		case reason != "":
			m.tell(m.change(Open, reason, m.lastFailure, 0, judged))
		}
	}
}

// rules returns the reason to open the breaker, or "".
func (m *model) rules(failed bool) (reason, judged string) {
	calls, bad, _ := m.inWindow()
	judged = fmt.Sprintf("%.2f %d", float64(bad)/float64(calls), calls)
	row := 0
	for _, c := range m.log {
		if row++; !c.failed {
			row = 0
		}
	}
	var failures []int
	for _, c := range m.log {
		if c.failed {
			failures = append(failures, c.at)
		}
	}
	many := m.lastCalls > 0 && bad >= m.failures
	if n := len(failures); m.lastCalls == 0 && n >= m.failures && m.failures > 0 {
		many = failures[n-1]-failures[n-m.failures] < m.window
	}
	switch {
	case m.consecutive > 0 && row >= m.consecutive:
		return reasonConsecutive, judged
	case m.failures > 0 && many:
		return reasonFailureCount, judged
	case m.failureQuarters > 0 && calls >= m.minCalls && 4*bad >= m.failureQuarters*calls:
		return reasonFailureRatio, judged
	}
	if judged, slow := m.tooSlow(); m.slowCall > 0 && slow {
		return reasonSlowRatio, judged
	}
	return "", ""
}

func (m *model) tooSlow() (judged string, trips bool) {
	calls, _, slow := m.inWindow()
	calls, slow = calls+m.slowRunning(), slow+m.slowRunning()
	return fmt.Sprintf("%.2f %d", float64(slow)/float64(calls), calls), calls > 0 && calls >= m.minCalls && 4*slow >= m.slowQuarters*calls
}

func (m *model) slowRunning() (n int) {
	for _, p := range m.running {
		if m.slowCall > 0 && m.now-p.start >= m.slowCall && (m.state == Closed || m.state == ForcedClosed) {
			n++
		}
	}
	return n
}

// inWindow counts the calls in the window.
func (m *model) inWindow() (calls, failed, slow int) {
	bucket := func(at int) int { return (at - m.cleared) * 10 / max(m.window, 1) }
	for i, c := range m.log {
		if m.lastCalls > 0 && i < len(m.log)-m.lastCalls || m.lastCalls == 0 && bucket(c.at) <= bucket(m.now)-10 {
			continue
		}
		calls++
		if c.failed {
			failed++
		}
		if c.slow {
			slow++
		}
	}
	return calls, failed, slow
}

// operate does what an operator's method does.
func (m *model) operate(to State, from ...State) {
	m.catchUp()
	for _, s := range from {
		if m.state == s {
			m.tell(m.change(to, reasonManual, nil, 0, "0.00 0"))
			return
		}
	}
}

func (m *model) reset() {
	m.operate(Closed, HalfOpen, Open, ForcedOpen, ForcedClosed)
	m.clear()
	m.openings, m.running, m.successes = 0, nil, 0
	m.generation++
}

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
