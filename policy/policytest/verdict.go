package policytest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// judge compares what happened with what is wanted. It runs in the case's bubble, since numbers and states depend on time.
func (s *stage) judge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.players {
		p.judge()
		for _, f := range p.faults {
			s.faults = append(s.faults, p.name+" "+f)
		}
	}
	if s.Events != "" {
		if _, over := align(s.eventsLocked(), s.seq); over > 0 {
			s.faults = append(s.faults,
				"events are  "+joined(s.eventsLocked()),
				"but wanted  "+s.Events)
		}
	}
	s.judgeStatesLocked()
	for _, row := range slices.Sorted(maps.Keys(s.Counts)) {
		got, err := s.recorder.count(row)
		switch {
		case err != nil:
			s.faults = append(s.faults, err.Error())
		case got != s.Counts[row]:
			s.faults = append(s.faults, fmt.Sprintf("at the end %s is %d, want %d", row, got, s.Counts[row]))
		}
	}
}

func (s *stage) judgeStatesLocked() {
	if s.States == "" {
		return
	}
	states := s.recorder.states()
	for want := range strings.SplitSeq(s.States, ",") {
		name, state, named := strings.Cut(strings.TrimSpace(want), "=")
		if !named {
			state = name
			if len(states) != 1 {
				s.faults = append(s.faults, fmt.Sprintf("want state %s, but %d policies report a state to this observer: %v", state, len(states), states))
				continue
			}
			for only := range states {
				name = only
			}
		}
		if got := states[name]; got == "" {
			s.faults = append(s.faults, fmt.Sprintf("want %s=%s, but no policy of that name reports a state to this observer", name, state))
		} else if got != state {
			s.faults = append(s.faults, fmt.Sprintf("at the end %s is %s, want %s", name, got, state))
		}
	}
}

func (s *stage) eventsLocked() (terms []term) {
	for _, e := range s.log {
		if e.kind == eventTold {
			terms = append(terms, e.event)
		}
	}
	return terms
}

func (p *player) judge() {
	fault := func(format string, args ...any) { p.faults = append(p.faults, fmt.Sprintf(format, args...)) }
	if !p.ended {
		fault("has not returned")
		return
	}
	switch {
	case p.Panics != nil:
		if p.panicked == nil {
			fault("%s, want %s", p.outcome(), p.wantOutcome())
		} else if !reflect.DeepEqual(p.panicked, p.Panics) {
			fault("panics with %v, want %v", p.panicked, p.Panics)
		}
	case p.Exits:
		if !p.exited {
			fault("%s, want %s", p.outcome(), p.wantOutcome())
		}
	case p.panicked != nil:
		fault("panics with %v:\n%s", p.panicked, indented(p.stack))
	case p.exited:
		fault("ends its goroutine, want %s", p.wantOutcome())
	default:
		p.judgeError(fault)
	}
	if p.Takes != Any && p.took != p.Takes {
		fault("takes %v, want %v", p.took, p.Takes)
	}
	if !p.ranAsWanted() {
		fault("runs fn %s, want %s", runsText(p.ran), runsText(p.wantRuns()))
	}
}

func (p *player) judgeError(fault func(string, ...any)) {
	if len(p.Is) == 0 && p.err != nil {
		fault("returns %s, want nil", oneLine(p.err))
	}
	if len(p.Is) > 0 && p.err == nil {
		fault("returns nil, want %s", p.wantOutcome())
	} else {
		for _, target := range unmatched(p.err, p.Is) {
			fault("returns %s, which does not match %s", oneLine(p.err), oneLine(target))
		}
	}
	for _, target := range p.Not {
		if errors.Is(p.err, target) {
			fault("returns %s, which must not match %s", oneLine(p.err), oneLine(target))
		}
	}
}

func (p *player) ranAsWanted() bool {
	want := p.wantRuns()
	if len(p.ran) != len(want) {
		return false
	}
	for i := range want {
		if !p.ranAt(i) {
			return false
		}
	}
	return true
}

// ranAt reports whether a wanted run started when it should.
func (p *player) ranAt(i int) bool {
	want := p.wantRuns()[i]
	return want == Any || p.ran[i] == want
}

func (p *player) wantRuns() []time.Duration {
	if p.Runs == nil {
		return []time.Duration{0}
	}
	return p.Runs
}

func (p *player) outcome() string {
	switch {
	case p.returned:
		return "returns " + oneLine(p.err)
	case p.exited:
		return "ends its goroutine"
	}
	return fmt.Sprintf("panics with %v", p.panicked)
}

func (p *player) wantOutcome() string {
	switch {
	case p.Panics != nil:
		return fmt.Sprintf("a panic with %v", p.Panics)
	case p.Exits:
		return "the end of its goroutine"
	case len(p.Is) == 0:
		return "nil"
	}
	texts := make([]string, len(p.Is))
	for i, err := range p.Is {
		texts[i] = oneLine(err)
	}
	return "an error that matches " + strings.Join(texts, " and ")
}

func runsText(times []time.Duration) string {
	if len(times) == 0 {
		return "never"
	}
	texts := make([]string, len(times))
	for i, t := range times {
		texts[i] = timeText(t)
	}
	return "at " + strings.Join(texts, ", ")
}

func timeText(d time.Duration) string {
	if d == Any {
		return "any time"
	}
	return d.String()
}
