// HTTP shows both sides of HTTP under policies.
//
//	go -C examples run ./http
//
// First a client asks two hosts, of which one gets into trouble: it fails, hangs, and cuts connections. Each host has a
// breaker of its own. Then a server gets ten times as many requests as it can answer, once with a limit around its handler and
// once without. The program prints both as tables and draws the second as http.svg. client.go and server.go are the files to
// read.
//
// The exit status is 1 if the policies did not do what they promise.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "http:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("http", flag.ContinueOnError)
	flags.SetOutput(stderr)
	file := flags.String("svg", "http.svg", "file for the picture, none if empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}

	fmt.Fprintf(stdout, "A client of two hosts, each with a breaker of its own. One is in trouble for a second.\n\n")
	well, bad, h := visit(ctx, 3*time.Second)
	printVisit(stdout, well, bad)

	fmt.Fprintf(stdout, "\nA server that can answer %d requests a second gets %d for three seconds. Clients wait for %v.\n\n", capacity, surge, patience)
	with := rush(ctx, protected(newDatabase()), time.Second)
	without := rush(ctx, newDatabase(), time.Second)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	printRush(stdout, with, without)
	if *file != "" {
		if err := os.WriteFile(*file, draw(with, without), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "\nThe picture is in %s.\n", *file)
	}
	return errors.Join(visited(well, bad, h), rushed(with, without, limits{served: .75, p99: 6 * query, refusal: time.Millisecond, quantile: .95}))
}
