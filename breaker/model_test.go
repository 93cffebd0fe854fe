package breaker

import (
	"errors"
	"fmt"
	"time"

	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/policy"
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
