// Grpc puts policies around a gRPC client and a gRPC server, beside OpenTelemetry's own instrumentation.
//
//	go -C examples run ./grpc
//
// A client calls a server that fails at first: the program prints the trace of a unary call and of a stream, in which each
// attempt is a client span and our events are on the caller's. Then ten times as many callers as it has room for ask a
// server that a bulkhead protects. The exit status is 1 if any of it is not as docs/grpc.md says.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "grpc:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	traces, err := traced(ctx)
	if err != nil {
		return err
	}
	for _, t := range traces {
		t.print(out)
		err = errors.Join(err, t.broken())
	}
	l, failed := overload(ctx)
	if failed != nil {
		return errors.Join(err, failed)
	}
	l.print(out)
	return errors.Join(err, l.broken())
}
