package policytest

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// line is a line of a timeline: what happened at a time, beside what was wanted.
type line struct {
	at             time.Duration
	happened, want string
	off            bool // the two differ
}

// report returns what is wrong with the case, and its timeline; "" if nothing is.
func (s *stage) report(trouble string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	faults := slices.Clone(s.faults)
	if trouble != "" {
		faults = append(faults, trouble)
	}
	if len(faults) == 0 {
		return ""
	}
	var b strings.Builder
	for _, f := range faults {
		b.WriteString(f + "\n")
	}
	if len(s.log) > 0 {
		b.WriteString("\n" + render(s.linesLocked()))
	}
	return strings.TrimRight(b.String(), "\n")
}

func (s *stage) linesLocked() []line {
	var lines, missing []line
	pairs, checked := s.eventPairsLocked()
	for _, e := range s.log {
		l := line{at: e.at, happened: e.text}
		switch e.kind {
		case runStarts:
			l.want, l.off = e.player.wantRun(e.run)
		case callEnds:
			lines = append(lines, e.player.missingRuns(func(at time.Duration) bool { return at <= e.at })...)
			l.want = fmt.Sprintf("%s after %s", e.player.wantOutcome(), timeText(e.player.Takes))
			l.off = slices.ContainsFunc(e.player.faults, func(f string) bool { return !strings.HasPrefix(f, "runs fn") })
		case eventTold:
			if !checked {
				break
			}
			for len(pairs) > 0 && pairs[0].got < 0 { // wanted before it, and missing
				lines = append(lines, s.missingEvent(pairs[0].want, e.at))
				pairs = pairs[1:]
			}
			if w := pairs[0].want; w >= 0 {
				l.want = s.seq[w].text
			} else {
				l.want, l.off = "no such event", true
			}
			pairs = pairs[1:]
		}
		lines = append(lines, l)
	}
	end := s.log[len(s.log)-1].at
	for _, left := range pairs {
		missing = append(missing, s.missingEvent(left.want, end))
	}
	for _, p := range s.players {
		if !p.started {
			continue
		}
		missing = append(missing, p.missingRuns(func(at time.Duration) bool { return !p.ended || at > p.began+p.took })...)
		if !p.ended {
			missing = append(missing, line{at: end, want: fmt.Sprintf("%s%s after %s", p.prefix, p.wantOutcome(), timeText(p.Takes)), off: true})
		}
	}
	return merged(lines, missing)
}

// eventPairsLocked sets the events against those wanted. checked reports whether any are.
func (s *stage) eventPairsLocked() (pairs []pair, checked bool) {
	if s.Events == "" {
		return nil, false
	}
	pairs, _ = align(s.eventsLocked(), s.seq)
	return pairs, true
}

func (s *stage) missingEvent(i int, at time.Duration) line {
	return line{at: at, want: s.seq[i].text, off: true}
}

// wantRun returns what was wanted of a run that happened.
func (p *player) wantRun(i int) (text string, off bool) {
	want := p.wantRuns()
	if i >= len(want) {
		return "no such run", true
	}
	return "at " + timeText(want[i]), !p.ranAt(i)
}

// missingRuns returns the runs that were wanted and did not happen, of those at times that are asked for.
func (p *player) missingRuns(asked func(at time.Duration) bool) (lines []line) {
	for i, want := range p.wantRuns()[min(len(p.ran), len(p.wantRuns())):] {
		if at := p.began + max(0, want); asked(at) {
			lines = append(lines, line{at: at, want: fmt.Sprintf("%srun %d of fn at %s", p.prefix, len(p.ran)+i+1, timeText(want)), off: true})
		}
	}
	return lines
}

// merged returns lines, which are in order, with what is missing put before what happened later.
func merged(lines, missing []line) []line {
	for _, m := range missing {
		i := slices.IndexFunc(lines, func(l line) bool { return l.at > m.at })
		if i < 0 {
			i = len(lines)
		}
		lines = slices.Insert(lines, i, m)
	}
	return lines
}

const (
	longest = 120 // lines of a timeline that are all shown
	around  = 3   // lines shown around one that is off, in a longer one
	widest  = 64  // characters of a column
)

func render(lines []line) string {
	width, times := len("happened"), len("time")
	for i := range lines {
		lines[i].happened = clipped(lines[i].happened)
		width = max(width, utf8.RuneCountInString(lines[i].happened))
		times = max(times, utf8.RuneCountInString(lines[i].at.String()))
	}
	var b strings.Builder
	row := func(mark, at, happened, want string) {
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("%s %*s  %-*s  %s", mark, times, at, width, happened, clipped(want)), " "))
	}
	row(" ", "time", "happened", "wanted")
	skipped := false
	for i, l := range lines {
		if len(lines) > longest && !nearOff(lines, i) {
			if !skipped {
				row(" ", "⋮", "", "")
			}
			skipped = true
			continue
		}
		skipped = false
		mark := " "
		if l.off {
			mark = "✗"
		}
		row(mark, l.at.String(), l.happened, l.want)
	}
	return b.String()
}

func nearOff(lines []line, i int) bool {
	near := lines[max(0, i-around):min(len(lines), i+around+1)]
	return slices.ContainsFunc(near, func(l line) bool { return l.off })
}

func clipped(text string) string {
	if runes := []rune(text); len(runes) > widest {
		return string(runes[:widest-1]) + "…"
	}
	return text
}
