package breaker

import (
	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

const policyType = "circuit_breaker"

// outcomes are the outcomes of a call: the values of [policy.Outcome], then rejected.
var outcomes = [...]string{
	policy.Success: semconv.OutcomeSuccess,
	policy.Failure: semconv.OutcomeFailure,
	policy.Ignored: semconv.OutcomeIgnored,
	rejected:       semconv.OutcomeRejected,
}

const rejected = 3

// table gives each number its row. Rows of counts come first, then the live ones: status of each state, time of each state.
var table = makeTable()

type rowTable struct {
	rows  []observe.Row
	calls [states][len(outcomes)]int // the row of calls by state and outcome
	moves [states][states]int        // the row of changes from one state to another; 0 if there is no such change
	later []int                      // counts that are not reported before their first use

	late, slow, wouldReject int
	counts                  int // how many rows are counts
}

func makeTable() rowTable {
	var t rowTable
	attr := func(key, value string) observe.Attr { return observe.Attr{Key: key, Value: value} }
	add := func(later bool, metric string, attrs ...observe.Attr) int {
		row := len(t.rows)
		t.rows = append(t.rows, observe.Row{Metric: metric, Attrs: attrs})
		if later {
			t.later = append(t.later, row)
		}
		return row
	}
	for s := range State(states) {
		for o, outcome := range outcomes {
			ordinary := s == Closed || s == HalfOpen || s == Open && o == rejected
			t.calls[s][o] = add(!ordinary, semconv.BreakerCalls, attr(semconv.BreakerState, s.String()), attr(semconv.CallOutcome, outcome))
		}
	}
	for from := range State(states) {
		for _, to := range movesFrom(from) {
			t.moves[from][to.state] = add(to.manual, semconv.BreakerTransitions,
				attr(semconv.BreakerPrevious, from.String()), attr(semconv.BreakerState, to.state.String()))
		}
	}
	t.late = add(false, semconv.BreakerLateResults)
	t.slow = add(true, semconv.BreakerSlowCalls)
	t.wouldReject = add(true, semconv.BreakerWouldReject)
	t.counts = len(t.rows)
	for s := range State(states) {
		add(false, semconv.BreakerStatus, attr(semconv.BreakerState, s.String()))
	}
	for s := range State(states) {
		add(false, semconv.BreakerTime, attr(semconv.BreakerState, s.String()))
	}
	return t
}

type target struct {
	state  State
	manual bool // only an operator's method leads there
}

// movesFrom returns every state that can follow from.
func movesFrom(from State) []target {
	forcedOpen, forcedClosed := target{ForcedOpen, true}, target{ForcedClosed, true}
	switch from {
	case Closed:
		return []target{{Open, false}, forcedOpen, forcedClosed}
	case HalfOpen:
		return []target{{Closed, false}, {Open, false}, forcedOpen, forcedClosed}
	case Open:
		return []target{{HalfOpen, false}, {Closed, true}, forcedOpen, forcedClosed}
	case ForcedOpen:
		return []target{{Closed, true}, {HalfOpen, true}, forcedClosed}
	case ForcedClosed:
		return []target{{Closed, true}, forcedOpen}
	}
	return nil
}

// startCounts makes the counts start at zero that every breaker reports, and those that the Config asks for. The others are
// reported from their first use.
func (b *Breaker) startCounts() {
	for _, row := range table.later {
		b.counts[row].Store(observe.None)
	}
	if b.config.SlowCall > 0 {
		b.begin(table.slow)
	}
	if b.config.Shadow {
		b.begin(table.wouldReject)
	}
	for _, s := range [...]State{Closed, HalfOpen, Open} {
		b.used[s] = true
		b.beginState(s)
	}
}

// beginState starts to report the outcomes that calls in state s can have.
func (b *Breaker) beginState(s State) {
	for o, row := range table.calls[s] {
		refuses, runs := s != ForcedClosed && !b.config.Shadow, s != Open && s != ForcedOpen || b.config.Shadow
		if o == rejected && refuses || o != rejected && runs {
			b.begin(row)
		}
	}
}

// begin starts to report a count, at zero. The caller makes sure that nothing is added to it at the same time.
func (b *Breaker) begin(row int) {
	if b.counts[row].Load() == observe.None {
		b.counts[row].Store(0)
	}
}

func (b *Breaker) countMoveLocked(from, to State) {
	if !b.used[to] {
		b.used[to] = true
		b.beginState(to)
	}
	row := table.moves[from][to]
	b.begin(row)
	b.counts[row].Add(1)
}

// attach makes the breaker known to its observer. Neither Source nor live may refer to b: the observer holds it only weakly,
// through the pointer that observe.Attach makes.
func (b *Breaker) attach() {
	observe.Attach(b.config.Observer, b, observe.Source{
		Policy: policyType, Name: b.name, Rows: table.rows, Counts: b.counts,
	}, (*Breaker).live)
}

// live fills in the rows of status and time, read under one lock.
func (b *Breaker) live(v []int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.lookLocked()
	for s := range State(states) {
		status, spent := &v[s], &v[states+int(s)]
		*status, *spent = 0, int64(now.spent[s])
		switch {
		case !b.used[s]:
			*status, *spent = observe.None, observe.None
		case s == now.phase.state:
			*status = 1
		}
	}
}
