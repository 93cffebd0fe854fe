// Command telemetry measures what telemetry costs a call that succeeds: nothing at all, the default without an SDK, an SDK
// that reads metrics, and the same in a sampled span. It prints medians and ratios, and fails where a promise is broken.
//
// Machines are noisy, so the ways take turns in short rounds, each ratio is taken within a round, and several processes do
// that one after another: what stands in the table is the median of the processes' medians.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel"
)

func main() {
	processes := flag.Int("processes", 7, "how many processes measure, one after another")
	rounds := flag.Int("rounds", 25, "rounds in each")
	child := flag.Bool("child", false, "measure in this process and print JSON")
	flag.Parse()
	if *child {
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {})) // of the SDK's limit of series, which is lifted here
		if err := json.NewEncoder(os.Stdout).Encode(measure(*rounds)); err != nil {
			fail(err)
		}
		return
	}
	var all []result
	for range *processes {
		r, err := inProcess(*rounds)
		if err != nil {
			fail(err)
		}
		all = append(all, r)
	}
	total := medianOf(all)
	fmt.Print(total.markdown())
	if broken := total.broken(); len(broken) > 0 {
		fail(fmt.Errorf("broken: %q", broken))
	}
}

func inProcess(rounds int) (r result, err error) {
	cmd := exec.Command(os.Args[0], "-child", "-rounds", strconv.Itoa(rounds))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "telemetry:", err)
	os.Exit(1)
}

// median returns the middle of values, which it sorts.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
