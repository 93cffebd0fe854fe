package observe_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// untimed drops what differs from run to run.
var untimed = &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}}

func ExampleSlog() {
	log := slog.New(slog.NewTextHandler(os.Stdout, untimed))
	db := breaker.New("db", breaker.Config{Observer: observe.Slog(log)})
	db.ForceOpen()
	// Output: level=WARN msg="circuit breaker db: closed → forced_open" policy=circuit_breaker name=db from=closed to=forced_open reason=manual
}

func ExampleFunc() {
	db := breaker.New("db", breaker.Config{Observer: observe.Func(func(_ context.Context, e observe.Event) {
		if e.Kind == observe.StateChange && e.To == "open" {
			fmt.Println("page somebody:", e.Name)
		}
	})})
	db.Trip()
	// Output: page somebody: db
}

// Telemetry as ever, and a line in the log.
func ExampleTee() {
	log := slog.New(slog.NewTextHandler(os.Stdout, untimed))
	db := breaker.New("db", breaker.Config{Observer: observe.Tee(observe.Discard, observe.Slog(log))})
	db.ForceClosed()
	// Output: level=INFO msg="circuit breaker db: closed → forced_closed" policy=circuit_breaker name=db from=closed to=forced_closed reason=manual
}

// counter is an observer that reads a policy's numbers, as one for another telemetry system would.
type counter struct{ source observe.Source }

func (c *counter) Observe(context.Context, observe.Event) {}

func (c *counter) Attach(s observe.Source) observe.Probe {
	c.source = s
	return nil // no durations
}

func ExampleAttach() {
	type door struct{ opened *[1]atomic.Int64 }
	counts := new([1]atomic.Int64)
	front := &door{counts}

	c := &counter{}
	observe.Attach(c, front, observe.Source{
		Policy: "door", Name: "front",
		Rows:   []observe.Row{{Metric: "door.opened"}},
		Counts: counts[:],
	}, nil)

	front.opened[0].Add(2)
	fmt.Println(c.source.Name, c.source.Rows[0].Metric, c.source.Counts[0].Load())
	// Output: front door.opened 2
}

func ExampleEvent_Level() {
	fmt.Println(observe.Event{Kind: observe.StateChange, To: "open", Time: time.Now()}.Level())
	// Output: WARN
}
