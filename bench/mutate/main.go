// Command mutate breaks the library on purpose, one line at a time, and shows which test notices. Each rule that keeps the
// policies from making an outage worse has its mutations. It fails where one survives:
//
//	go -C bench run ./mutate            # all of them
//	go -C bench run ./mutate -only probe
//
// The source is never touched: go test -overlay puts the broken file in the place of the real one.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"sync"
	"time"
)

func main() {
	root := flag.String("root", "..", "the library's folder")
	only := flag.String("only", "", "a regular expression: mutations whose name or file it matches")
	workers := flag.Int("workers", runtime.GOMAXPROCS(0), "how many are tried at once")
	flag.Parse()
	survivors, err := run(*root, *only, *workers)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
	if survivors > 0 {
		fmt.Fprintf(os.Stderr, "mutate: %d survived: a test is missing, or the line is not needed\n", survivors)
		os.Exit(1)
	}
}

// run tries the mutations that only matches, and returns how many no test has noticed.
func run(root, only string, workers int) (survivors int, err error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is temporary anyway

	var chosen []mutation
	for _, m := range mutations() {
		if match.MatchString(m.name) || match.MatchString(m.file) {
			chosen = append(chosen, m)
		}
	}
	if err := unbroken(root, dir, chosen); err != nil {
		return 0, err
	}
	begin := time.Now()
	verdicts := make([]verdict, len(chosen))
	slots, all := make(chan struct{}, max(1, workers)), sync.WaitGroup{}
	for i, m := range chosen {
		slots <- struct{}{}
		all.Go(func() {
			verdicts[i] = m.try(root, dir, i)
			<-slots
		})
	}
	all.Wait()
	rule := ""
	for i, m := range chosen {
		if m.rule != rule {
			rule = m.rule
			fmt.Printf("\n%s\n", rule)
		}
		v := verdicts[i]
		switch {
		case v.err != nil:
			err = fmt.Errorf("%s: %w", m.name, v.err)
			fmt.Printf("  ?? %s (%s): %v\n", m.name, m.file, v.err)
		case v.caughtBy == "":
			survivors++
			fmt.Printf("  !! %s (%s): SURVIVED\n", m.name, m.file)
		default:
			fmt.Printf("     %s: %s\n", m.name, v.caughtBy)
		}
	}
	fmt.Printf("\n%d mutations, %d caught, %d survived, in %v\n", len(chosen), len(chosen)-survivors, survivors, time.Since(begin).Round(time.Second))
	return survivors, err
}
