package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// printTable prints how many attempts each call of the outage made.
func printTable(w io.Writer, outage time.Duration, results []result) {
	fmt.Fprintf(w, "A dependency is down for %v. Each call makes up to 3 attempts; how many reach the dependency?\n", outage)
	rate := 0
	for _, r := range results {
		if r.perSecond != rate {
			rate = r.perSecond
			fmt.Fprintf(w, "\n%-24s%8s %10s %10s %22s\n", fmt.Sprintf("%d calls per second", rate), "calls", "attempts", "per call", "retries work again")
		}
		fmt.Fprintf(w, "  %-22s%8d %10d %9.2f× %22s  %s\n", r.name, r.calls, r.attempts, r.ratio(), recovery(r.recovery), bar(r.ratio()))
	}
}

func recovery(d time.Duration) string {
	if d < 100*time.Millisecond {
		return "at once"
	}
	return fmt.Sprintf("after %.1fs", d.Seconds())
}

// bar draws a ratio, four blocks to one attempt per call.
func bar(ratio float64) string {
	const perAttempt = 4
	return strings.Repeat("█", perAttempt) + strings.Repeat("▒", max(0, int(ratio*perAttempt+.5)-perAttempt))
}
