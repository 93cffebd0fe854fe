package badday

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/comparison.md")

const page = "../../docs/comparison.md"

func TestThePageTellsWhatHappens(t *testing.T) {
	if raceEnabled {
		t.Skip("the peers run without the race detector only")
	}
	text := write(t)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(text), 0o644))
		return
	}
	old, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Equal(t, string(old), text, "write it anew with go -C bench test ./badday -update")
}

// write returns the page.
func write(t *testing.T) string {
	all, version := rows(), versions(t)
	verdicts := map[string]map[string]verdict{} // by library and row
	for _, l := range libraries() {
		verdicts[l.name] = map[string]verdict{}
		for _, r := range all {
			verdicts[l.name][r.id] = judge(t, r, l)
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, opening, len(all), len(libraries())-1)
	out.WriteString(summary(verdicts, version))
	out.WriteString(howToRun)
	out.WriteString(aboutOutages)
	out.WriteString(outages(t))
	out.WriteString(reading)
	for _, table := range []string{breakers, retries, limits, races} {
		out.WriteString(tableOf(table, all, verdicts))
	}
	out.WriteString(elsewhere)
	return out.String()
}

const opening = `<!-- Written by go -C bench test ./badday -update; do not edit. -->
# What happens on a bad day

Libraries for resilience look alike until something goes wrong: a probe that hangs, a caller who gives up, a panic, an answer that
comes too late. Here this one and %[2]d others are held to %[1]d such behaviours, most of which have hurt somebody enough to report them.

`

const howToRun = `
Each row is a test that you can run. The page is what they print:

` + "```sh" + `
go -C bench test ./badday            # in CI: this library passes every row, and the page is up to date
go -C bench test ./badday -update    # writes this page
` + "```" + `
`

// summary counts the verdicts.
func summary(verdicts map[string]map[string]verdict, version map[string]string) string {
	var out strings.Builder
	out.WriteString("| | rows that concern it | hold as it comes | hold with a setting | do not hold |\n|---|--:|--:|--:|--:|\n")
	for _, l := range libraries() {
		var n [4]int
		for _, v := range verdicts[l.name] {
			n[v.kind]++
		}
		name := fmt.Sprintf("[%s](https://pkg.go.dev/%s)", l.name, l.module)
		switch l.name {
		case switchgear().name:
			name = "**" + l.name + "**"
		case extended().name:
			name += fmt.Sprintf(" %s, %s", version["golang.org/x/sync"], version["golang.org/x/time"])
		default:
			name += " " + version[l.module]
		}
		fmt.Fprintf(&out, "| %s | %d | %d | %d | %d |\n", name, n[holds]+n[holdsWith]+n[fails], n[holds], n[holdsWith], n[fails])
	}
	return out.String()
}

const aboutOutages = `
## An outage of two seconds

50 clients call, 10 ms each, and pause for about as long. The dependency fails for two seconds, then it is well. Every breaker opens
at five failures in a row and probes after one second. (In simulated time, so the numbers are the same on every machine.)

`

// outages tells how an outage goes with each library that has a breaker.
func outages(t *testing.T) string {
	var out strings.Builder
	out.WriteString("| | refused while it lasted | under way when it opened | reached the failing dependency at half-open | first success after it | opens when ten callers cancel |\n|---|--:|--:|--:|--:|---|\n")
	for _, l := range libraries() {
		if l.breaker == nil {
			continue
		}
		o, cancellations := outageOf(t, l)
		opens := "no"
		if cancellations {
			opens = "yes"
		}
		fmt.Fprintf(&out, "| %s | %d | %d | **%d** | %v | %s |\n", l.name, o.refused, o.inFlight, o.later, o.recovery.Round(time.Millisecond), opens)
	}
	return out.String()
}

const reading = `
How soon each of them recovers is a matter of when its last cooldown began. With its default growth this library's second cooldown would be
twice as long: fewer probes, a later recovery.

## How to read the tables

- ✓ holds as the library comes, set up as its documentation says.
- ✓ with ` + "`Setting`" + `: does not, but does with that.
- ✗ does not hold, and no setting was found that helps. What was seen stands beside it.
- – the library has no such policy, or the policy no such rule.

Where a library leaves it to its user to give a permit back, the user did so in a ` + "`defer`" + `. What a retry alone does around a breaker
is tried with gobreaker's. A row that names a report links to it; it need not be one about a library of the table.
`

func tableOf(table string, all []row, verdicts map[string]map[string]verdict) string {
	var columns []string
	for _, l := range libraries() {
		if slices.ContainsFunc(all, func(r row) bool { return r.table == table && verdicts[l.name][r.id].kind != absent }) {
			columns = append(columns, l.name)
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "\n## %s\n\n| | %s |\n|---|%s\n", table, strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, r := range all {
		if r.table != table {
			continue
		}
		fmt.Fprintf(&out, "| **%s.** %s%s |", r.text, r.hurts, link(r.report))
		for _, name := range columns {
			fmt.Fprintf(&out, " %s |", verdicts[name][r.id])
		}
		out.WriteString("\n")
	}
	return out.String()
}

func (v verdict) String() string {
	switch v.kind {
	case holds:
		return "✓"
	case holdsWith:
		return "✓ with " + v.seen
	case fails:
		return "✗ " + v.seen
	}
	return "–"
}

func link(report string) string {
	if report == "" {
		return ""
	}
	repository, number, _ := strings.Cut(report, "#")
	return fmt.Sprintf(" ([%s](https://github.com/%s/issues/%s))", report, repository, number)
}

const elsewhere = `
## Where others are ahead

- **Adaptive limits.** failsafe-go has concurrency limits and throttles that find their own size, with priorities. The limits here are numbers that
  you set, or change while running.
- **State across processes.** gobreaker can keep a breaker's state in Redis. Here every process has its own, on purpose: a breaker says what
  this process sees.
- **Leaving a function behind.** go-resiliency's deadline returns at its limit even if the function does not. Here a timeout is cooperative: it waits for a
  function that ignores its context, so that permits, panics and goroutines stay where they belong.
- **Judging results.** failsafe-go judges values as well as errors. Here an answer that is a failure has to be an error.
- **More than one token.** x/time/rate reserves and takes many at once, x/sync/semaphore has weights. Here a call is a call.
- **Caching, and calls that return a future.** failsafe-go has both. Here neither is planned.
- **Old toolchains, few dependencies.** gobreaker, go-resiliency, backoff and retry-go build with Go versions from 1.13 to 1.23 and need nothing
  else. This one needs Go 1.26, the OpenTelemetry API, backoff/v4 and x/time.
- **Price.** What each costs a call is [measured](benchmarks.md) in the same way, with the rows in which others are cheaper.
`
