package main

import (
	"fmt"
	"io"
	"time"
)

// printSummary compares the runs with each other and with what other libraries do: four Python ones, measured in the same
// scenario (50 clients, 2 s of outage, 5 failures open, 1 s of cooldown).
func printSummary(out io.Writer, paint painter, with, without *history, cost overhead) {
	const row = "  %-31s %13s %8s  %s\n"
	line := func(what, with, without, others string) {
		fmt.Fprintf(out, row, what, with, without, paint(dim, others))
	}
	fmt.Fprintf(out, "\n%s\n\n", paint(bold, "What the pipeline did"))
	line("", "with", "without", "Python libraries")

	made, refused := with.whileOpen()
	a, b := with.between(with.down, with.up), without.between(without.down, without.up) // the outage
	line("calls refused while open", count(refused)+" ("+percent(refused, made)+")", "–", "9,479–9,700; 1 never opens")
	line("opens after", measured(with.opened()), "never", "")
	line("requests to the failing server", count(a.reachedFailing), count(b.reachedFailing), "up to 4,850")
	line("  before it opens", count(with.beforeOpening()), "–", "")
	line("  at half-open, each time", count(with.halfOpenCalls()), "–", "50 of 50")
	line("opens when calls are cancelled", cancellation(with), "–", "1 of 4 opens")
	line("first answer after recovery", measured(with.recovery()), measured(without.recovery()), "41–42 ms")
	line("last error after recovery", short(with.lastError()), short(without.lastError()), "")
	line("calls answered in the outage", percent(a.calls-a.failed, a.calls), percent(b.calls-b.failed, b.calls), "")
	line("latency in the outage, p50", short(a.p50), short(b.p50), "")
	line("latency in the outage, p99", short(a.p99), short(b.p99), "")
	line("cost per call: breaker alone", costText(cost.breaker), "–", "0.35–0.63 µs")
	line("cost per call: whole pipeline", costText(cost.pipeline), "–", "")
	fmt.Fprintf(out, "%s\n\n", paint(dim, "  (four Python libraries, in the same scenario: 50 clients, 2s of outage, open at 5 failures, 1s of cooldown)"))

	for _, c := range with.claims() {
		mark := paint(green, "✓")
		if !c.ok {
			mark = paint(red, "✗")
		}
		fmt.Fprintf(out, "  %s %s\n", mark, c.text)
	}
}

func cancellation(h *history) string {
	if h.openedByCancellation() {
		return fmt.Sprintf("yes (%d)", h.canceled)
	}
	return fmt.Sprintf("no (%d)", h.canceled)
}

func measured(d time.Duration, ok bool) string {
	if !ok {
		return "never"
	}
	return short(d)
}

func costText(d time.Duration) string {
	return fmt.Sprintf("%.2f µs", float64(d)/float64(time.Microsecond))
}
