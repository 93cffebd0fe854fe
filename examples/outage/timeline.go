package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// timeline prints a run while it happens: a line for each tick, and one for each turn of events.
type timeline struct {
	out   io.Writer
	paint painter
	told  time.Duration // what happened before is printed
	turns []turn        // printed
}

// start prints the heading.
func (t *timeline) start(title, text string) {
	t.told, t.turns = 0, nil
	fmt.Fprintf(t.out, "\n%s\n%s\n\n", t.paint(bold, title), t.paint(dim, text))
	const columns = "%6s  %-7s  %-9s  %-14s  %7s %6s %6s  %-13s"
	fmt.Fprintln(t.out, t.paint(dim, fmt.Sprintf(columns, "", "", "", "requests", "", "", "", " latency of calls")))
	fmt.Fprintln(t.out, t.paint(dim, fmt.Sprintf(columns, "time", "server", "breaker", "that reach it", "refused", "stale", "errors", "   p50    p99")))
}

// guarded prints what is new in the history of a run with a breaker.
func (t *timeline) guarded(h *history) {
	state := h.stateAt(h.end)
	t.tick(h, t.paint(stateColors[state], fmt.Sprintf("%-9s", state)))
}

// bare prints what is new in the history of a run without one.
func (t *timeline) bare(h *history) { t.tick(h, fmt.Sprintf("%-9s", "none")) }

func (t *timeline) tick(h *history, breaker string) {
	for _, turn := range turnsOf(h) {
		if turn.at <= h.end && !slices.Contains(t.turns, turn) {
			t.turns = append(t.turns, turn)
			fmt.Fprintf(t.out, "%5.2fs  %s\n", turn.at.Seconds(), t.paint(turn.color, "── "+turn.text))
		}
	}
	i := h.between(t.told, h.end)
	t.told = h.end
	server, color := "up", green
	if h.failingAt(h.end) {
		server, color = "FAILING", red
	}
	const busy = clients * int(tick/(20*time.Millisecond)) // requests that clients make in a tick when all is well
	fmt.Fprintf(t.out, "%5.2fs  %s  %s  %s %5s  %7s %6s %s  %6s %6s\n",
		h.end.Seconds(),
		t.paint(color, fmt.Sprintf("%-7s", server)),
		breaker,
		t.paint(color, bar(i.reached, busy, 8)), count(i.reached),
		count(i.refused), count(i.stale), t.errors(i.failed), short(i.p50), short(i.p99))
}

func (t *timeline) errors(n int) string {
	text := fmt.Sprintf("%6s", count(n))
	if n > 0 {
		return t.paint(red, text)
	}
	return text
}

// turn is a line between those of the ticks.
type turn struct {
	at    time.Duration
	text  string
	color color
}

func turnsOf(h *history) []turn {
	var turns []turn
	if h.down > 0 {
		turns = append(turns, turn{h.down, "the server starts to fail: most requests get a 500, some no answer", red})
	}
	if h.up > 0 {
		turns = append(turns, turn{h.up, "the server is back", green})
	}
	for _, c := range h.changes {
		text := fmt.Sprintf("breaker %s → %s: %s", c.from, c.to, strings.ReplaceAll(c.reason, "_", " "))
		if c.cooldown > 0 {
			text += fmt.Sprintf(", cooldown %v", c.cooldown)
		}
		turns = append(turns, turn{c.at, text, stateColors[c.to]})
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	return turns
}

var stateColors = map[string]color{closed: green, halfOpen: yellow, open: red}

// bar returns n as a bar of at most width cells, which is full at full.
func bar(n, full, width int) string {
	eighths := min(n*width*8/full, width*8)
	if n > 0 {
		eighths = max(eighths, 1)
	}
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text + strings.Repeat(" ", width-len([]rune(text)))
}
