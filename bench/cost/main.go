// Command cost measures what policies cost a call, beside what other libraries cost and what the same job costs by hand. It
// prints tables, and writes docs/benchmarks.md with -write.
//
// Machines are noisy, and a number from one says little about another. So the ways to do a job take turns in short rounds,
// a ratio is taken within a round, where both sides had the same machine, and what is told is the median of the rounds.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
)

func main() {
	rounds := flag.Int("rounds", 41, "how many rounds")
	only := flag.String("only", "", "a regular expression: the jobs to measure")
	write := flag.String("write", "", "the page to write")
	flag.Parse()
	if err := run(*rounds, *only, *write); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func run(rounds int, only, write string) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(jobs(), func(j job) bool { return !match.MatchString(j.name) })
	results := measure(chosen, rounds)
	for _, r := range results {
		fmt.Println(r.table())
	}
	var requests []requestResult
	if match.MatchString("net/http") {
		if requests, err = measureRequests(rounds); err != nil {
			return err
		}
		fmt.Println(requestTable(requests))
	}
	fmt.Println(goalTable(results))
	if write == "" {
		return nil
	}
	text, err := page(results, requests, rounds)
	if err != nil {
		return err
	}
	return os.WriteFile(write, []byte(text), 0o644) //nolint:gosec // a page of the documentation
}
