// Trace shows what an outage leaves in OpenTelemetry: the trace of the call that opened the circuit breaker, and the metrics
// around it.
//
//	go -C examples run ./trace
//
// Eight clients call a service that fails for a while. The program prints the trace of one call and draws both as trace.svg.
// The exit status is 1 if the telemetry is not what docs/telemetry.md says.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "trace:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("trace", flag.ContinueOnError)
	flags.SetOutput(stderr)
	file := flags.String("svg", "trace.svg", "file for the picture, none if empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	seen, err := outage(ctx)
	if err != nil {
		return err
	}
	opening, ok := seen.opening()
	if !ok {
		return errors.New("no call opened the circuit breaker")
	}
	opening.print(stdout)
	if *file != "" {
		if err := os.WriteFile(*file, draw(opening, seen.samples), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "\nThe picture is in %s.\n", *file)
	}
	return errors.Join(opening.broken(), seen.broken())
}
