// Amplification shows what retries do to a dependency that is down. Clients call at a steady rate; for a minute every call
// fails. It counts the attempts that reach the dependency with retry's budget, without it, and with two layers of retries.
//
//	go -C examples run ./amplification
//
// The policies stand in simulate.go. The minute is simulated: timers run on a clock that jumps, so it takes seconds. It also
// draws amplification.svg.
//
// The exit status is 1 if a claim does not hold: with a budget, at most 1.2 attempts per call and 10 per second, and once
// what a budget gathers in its window; three per call without; nine in two layers; and retries that work again within 10 seconds of the recovery.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"testing"
	"time"
)

// main runs the simulation as a test: a clock that jumps, package synctest's, is to be had for tests only.
func main() {
	testing.Init()
	_ = flag.CommandLine.Parse(nil) // what is on the command line is for run
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "amplification", F: func(t *testing.T) {
		os.Exit(run(t, os.Args[1:], os.Stdout, os.Stderr))
	}}}, nil, nil)
}

// run is main without the process around it.
func run(t *testing.T, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("amplification", flag.ContinueOnError)
	flags.SetOutput(stderr)
	outage := flags.Duration("duration", time.Minute, "length of the outage")
	picture := flags.String("svg", "amplification.svg", `file to draw the picture to; "" for none`)
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *outage < time.Second {
		fmt.Fprintf(stderr, "amplification: -duration is %v, must be at least 1s\n", *outage)
		return 2
	}

	var results []result
	for _, perSecond := range []int{10, 100, 1000} {
		for _, v := range variants {
			results = append(results, simulate(t, v, perSecond, *outage))
		}
	}
	printTable(stdout, *outage, results)
	if *picture != "" {
		if err := os.WriteFile(*picture, draw(*outage, results), 0o644); err != nil {
			fmt.Fprintln(stderr, "amplification:", err)
			return 1
		}
		fmt.Fprintln(stdout, "\npicture:", *picture)
	}
	status := 0
	for _, r := range results {
		if err := r.check(*outage); err != nil {
			fmt.Fprintln(stderr, "amplification:", err)
			status = 1
		}
	}
	return status
}
