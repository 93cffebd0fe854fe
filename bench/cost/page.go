package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
)

// table tells a result: for each way and number of callers the time, its spread, and how this library compares.
func (r result) table() string {
	var out strings.Builder
	fmt.Fprintf(&out, "### %s\n\n%s\n\n| |", r.name, r.about)
	for _, n := range r.side {
		callers := "callers"
		if n == 1 {
			callers = "caller"
		}
		fmt.Fprintf(&out, " %d %s: ns | Switchgear ÷ it |", n, callers)
	}
	out.WriteString(" allocations |\n|---|" + strings.Repeat("--:|--:|", len(r.side)) + "--:|\n")
	for i, w := range r.ways {
		fmt.Fprintf(&out, "| %s |", w.name)
		for n := range r.side {
			f := r.figures[n][i]
			fmt.Fprintf(&out, " %s ± %.0f%% |", nanoseconds(f.ns), 100*f.spread)
			switch {
			case i == 0 || w.own:
				out.WriteString(" |")
			default:
				fmt.Fprintf(&out, " %s |", share(f.ratio))
			}
		}
		fmt.Fprintf(&out, " %.0f |\n", r.allocations[i])
	}
	return out.String()
}

func nanoseconds(ns float64) string {
	if ns < 10 {
		return fmt.Sprintf("%.1f", ns)
	}
	return fmt.Sprintf("%.0f", ns)
}

func share(ratio float64) string {
	switch {
	case ratio >= 10:
		return fmt.Sprintf("%.0f", ratio)
	case ratio < .2:
		return fmt.Sprintf("%.3f", ratio)
	}
	return fmt.Sprintf("%.2f", ratio)
}

// page returns docs/benchmarks.md.
func page(results []result, requests []requestResult, rounds int) (string, error) {
	telemetry, err := telemetryTable()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, opening, headline(results), goalTable(results), scaling(results))
	fmt.Fprintf(&out, setting, machine(), versions(), rounds)
	out.WriteString("\n## Jobs\n\n")
	for _, r := range results {
		out.WriteString(r.table() + "\n")
	}
	fmt.Fprintf(&out, network, requestTable(requests))
	fmt.Fprintf(&out, observed, telemetry)
	return out.String(), nil
}

const opening = `<!-- Written by make bench; do not edit. -->
# What it costs

%s
## Goals

What the project set out to reach, as shares of what others cost in the same run:

%s
What is far from its goal is so for a reason: a refusal is told to the observer with its time, and one reading of the clock costs more than all
else in it. A TryAcquire tells nobody.

And a call among parallel ones should cost no more, beside one alone, than it does with the best of the others. These are factors: 1.0 is a
call that does not notice the others. A tenth more or less is noise.

%s`

const setting = `
## How it is measured

On %s. Numbers from another machine will differ, ratios less so: run ` + "`make bench`" + ` on yours.

Compared are %s.

All ways to do a job take turns in one process, in %d rounds of 4 ms each, and the jobs take turns in each round. Times are processors' time for a call, the median of the rounds,
± half of what the middle half of them covers: what other programs do meanwhile is not in it, nor is a goroutine's sleep. A ratio is the
median of the ratios within rounds. The function that is called does nothing: beside any real call, all of this is small. With several
callers, all processors are busy with the same policy at once, which is the worst case for what they share.
`

const network = `## Requests over HTTP

GET requests to a server in the same process, over the loopback, in the same way: what an HTTP client notices. Times and allocations are those of
client and server.

%s
`

const observed = `## Telemetry

What the telemetry of a pipeline costs a call that succeeds, against the same pipeline in silence, and against silence with a histogram recorded by hand.
What is measured more finely here (` + "`go -C bench run ./telemetry`" + `) comes from several processes, so it need not equal the times above.

%s`

// headline is what the results amount to.
func headline(results []result) string {
	find := func(job, than string) (ns, ratio, allocations float64) {
		for _, r := range results {
			for i, w := range r.ways {
				if r.name == job && w.name == than {
					return r.figures[0][0].ns, r.figures[0][i].ratio, r.allocations[0]
				}
			}
		}
		return 0, 0, 0
	}
	layers, hand, allocations := find("Four layers", byHand)
	_, peer, _ := find("Four layers", failsafe)
	_, watching, _ := find("Four layers, and the call watches its context", byHand)
	_, watchingPeer, _ := find("Four layers, and the call watches its context", failsafe)
	closed, gobreaker, free := find("Breaker, closed", "gobreaker")
	open, refusing, _ := find("Breaker, open", failsafe)
	return fmt.Sprintf(`Four policies around a call (timeout, retry, breaker, bulkhead) cost **%.2f of one `+"`context.WithTimeout`"+`** and **%.2f of the same four of
failsafe-go**, with %.0f allocations. Around a call that watches its context, as one over a network does, they need a timer too: then it is %.2f and
%.2f. A closed breaker costs %.2f of gobreaker's and a refusal %.2f of failsafe-go's, with %.0f allocations. On the machine below that is %s ns for
the four, %s for the breaker and %s for the refusal.
`, hand, peer, allocations, watching, watchingPeer, gobreaker, refusing, free, nanoseconds(layers), nanoseconds(closed), nanoseconds(open))
}

// machine describes what this runs on.
func machine() string {
	model := "an unknown processor"
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		for s := bufio.NewScanner(f); s.Scan(); {
			if name, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
		_ = f.Close() // it was only read
	}
	return fmt.Sprintf("%s/%s, %d processors (%s; a virtual machine that others use too), %s", runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), model, runtime.Version())
}

// versions names the peers with their versions.
func versions() string {
	peers := []string{
		"github.com/failsafe-go/failsafe-go", "github.com/sony/gobreaker/v2", "github.com/eapache/go-resiliency", "github.com/cenkalti/backoff/v4",
		"github.com/cenkalti/backoff/v5", "github.com/avast/retry-go/v5", "golang.org/x/sync", "golang.org/x/time",
	}
	info, _ := debug.ReadBuildInfo()
	var names []string
	for _, p := range peers {
		for _, d := range info.Deps {
			if d.Path == p {
				names = append(names, strings.TrimPrefix(p, "github.com/")+" "+d.Version)
			}
		}
	}
	return strings.Join(names, ", ")
}

// telemetryTable runs the program that measures telemetry.
func telemetryTable() (string, error) {
	cmd := exec.Command("go", "run", "./telemetry")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		if out.Len() == 0 {
			return "", err
		}
		fmt.Fprintf(&out, "\nNot all of these bars were met in this run.\n") // it says which on standard error
	}
	return out.String(), nil
}
