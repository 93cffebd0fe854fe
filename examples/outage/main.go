// Outage shows what a resilience pipeline is for. Fifty clients call an HTTP server that works, fails for some seconds and
// works again, once through timeout → retry → circuit breaker → bulkhead with a fallback, once with nothing but a timeout.
//
//	go -C examples run ./outage
//
// It prints both runs as they happen, compares them, shows the telemetry that the first one left, and draws outage.svg.
// The policies stand in pipeline.go, which is the file to read first.
//
// The exit status is 1 if the pipeline did not do what it promises: one call at half-open, refusals while open, and a
// recovery as soon as the cooldown is over. With OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_METRICS_EXPORTER or
// OTEL_TRACES_EXPORTER set, telemetry also goes where they say.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// The exit statuses.
const (
	statusOK          = 0
	statusFailed      = 1
	statusUsage       = 2
	statusInterrupted = 130
)

// run is main without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	demo, err := parse(args, stdout, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return statusOK
	case err != nil:
		return statusUsage // flag has told
	}
	reader, stopTelemetry, err := startTelemetry(ctx, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "outage:", err)
		return statusFailed
	}
	demo.reader, demo.observer = reader, otelx.Default()

	err = demo.play(ctx)
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := stopTelemetry(stopCtx); err != nil {
		fmt.Fprintln(stderr, "outage: telemetry was not sent:", err) // says nothing about the pipeline
	}
	runtime.KeepAlive(demo.pipeline) // until all is sent: what is current of a policy leaves the telemetry with it
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "outage: interrupted")
		return statusInterrupted
	case err != nil:
		fmt.Fprintln(stderr, "outage:", err)
		return statusFailed
	}
	return statusOK
}

// demo is what the program does.
type demo struct {
	outage   time.Duration
	picture  string // file to draw to, if any
	json     bool
	stdout   io.Writer
	network  network
	reader   *metric.ManualReader // of what observer reports
	observer observe.Observer
	pipeline *policy.Pipeline
}

func parse(args []string, stdout, stderr io.Writer) (*demo, error) {
	d := &demo{stdout: stdout, network: loopback}
	flags := flag.NewFlagSet("outage", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&d.outage, "duration", 2*time.Second, "how long the server fails; above 2s each cooldown is twice the one before")
	flags.StringVar(&d.picture, "svg", "outage.svg", "file for the picture, none if empty")
	flags.BoolVar(&d.json, "json", false, "print one JSON object instead of the timeline")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case d.outage < 100*time.Millisecond || d.outage > time.Minute:
		err = fmt.Errorf("-duration is %v, must be from 100ms to 1m", d.outage)
	}
	if err != nil {
		fmt.Fprintln(stderr, "outage:", err)
	}
	return d, err
}

// play makes both runs and tells about them. The error says which claims did not hold.
func (d *demo) play(ctx context.Context) error {
	terminal := d.stdout
	if d.json {
		terminal = io.Discard
	}
	paint := painterFor(terminal)
	view := &timeline{out: terminal, paint: paint}

	recorded := newRecorder()
	d.pipeline = newPipeline(growthFor(d.outage), observe.Tee(d.observer, observe.Func(recorded.observe)))
	view.start("With the pipeline", d.pipeline.String())
	with, err := trial{network: d.network, outage: d.outage, watch: view.guarded}.run(ctx, recorded, withPipeline(d.pipeline))
	if err != nil {
		return err
	}
	metrics, err := collect(ctx, d.reader)
	if err != nil {
		return err
	}

	view.start("Without it", fmt.Sprintf("a client with a timeout of %v", callLimit))
	without, err := trial{network: d.network, outage: d.outage, length: with.end, watch: view.bare}.run(ctx, newRecorder(), withoutPipeline)
	if err != nil {
		return err
	}

	if d.json {
		err = json.NewEncoder(d.stdout).Encode(report{with.result(), without.result()})
	} else {
		printSummary(terminal, paint, &with, &without, measureOverhead(ctx))
		printMetrics(terminal, paint, metrics)
	}
	if d.picture != "" {
		if e := os.WriteFile(d.picture, draw(&with, &without), 0o644); e != nil {
			err = errors.Join(err, e)
		} else {
			fmt.Fprintf(terminal, "\nThe picture is in %s.\n", d.picture)
		}
	}
	return errors.Join(err, with.broken())
}

// growthFor returns how much longer each cooldown is than the one before: the same in an outage of two cooldowns, which
// is what other libraries were measured in, and twice as long where the growth has time to show.
func growthFor(outage time.Duration) float64 {
	if outage > 2*cooldown {
		return 2
	}
	return 1
}
