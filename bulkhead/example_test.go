package bulkhead_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/policy"
)

var ctx = context.Background()

func charge(context.Context) error { return nil }

func Example() {
	payments := bulkhead.New("payments", bulkhead.Config{Max: 1}) // once, at start
	release, _ := payments.Acquire(ctx)                           // a call that still runs
	err := payments.Do(ctx, charge)
	release()
	fmt.Println(err)
	fmt.Println(errors.Is(err, bulkhead.ErrFull), errors.Is(err, policy.ErrRejected))
	// Output:
	// bulkhead payments: no permit free
	// true true
}

// A short queue takes up bursts; MaxWait keeps it from turning a slow dependency into slow callers.
func ExampleNew_queue() {
	reports := bulkhead.New("reports", bulkhead.Config{Max: 2, Queue: 10})
	results := make(chan error)
	for range 12 {
		go func() { results <- reports.Do(ctx, charge) }()
	}
	for range 12 {
		if err := <-results; err != nil {
			fmt.Println(err)
		}
	}
	fmt.Printf("%+v\n", reports.Stats())
	// Output: {Max:2 Running:0 Queue:10 Waiting:0 Acquired:12 Rejected:0 TimedOut:0 Canceled:0 WouldReject:0}
}

func ExampleBulkhead_Do() {
	payments := bulkhead.New("payments", bulkhead.Config{Max: 50})
	charging := policy.NewPipeline("charge", payments) // the same bulkhead in all pipelines that need payments
	refunding := policy.NewPipeline("refund", payments)
	fmt.Println(charging.Do(ctx, charge), refunding.Do(ctx, charge), payments.Stats().Acquired)
	// Output: <nil> <nil> 2
}

// The permit of a stream is held as long as the stream is open.
func ExampleBulkhead_Acquire() {
	streams := bulkhead.New("streams", bulkhead.Config{Max: 1})
	read := func() error {
		release, err := streams.Acquire(ctx)
		if err != nil {
			return err
		}
		defer release()
		fmt.Println("reading,", streams.Stats().Running, "open")
		return nil
	}
	fmt.Println(read(), read())
	// Output:
	// reading, 1 open
	// reading, 1 open
	// <nil> <nil>
}

func ExampleBulkhead_Resize() {
	payments := bulkhead.New("payments", bulkhead.Config{Max: 10})
	payments.Resize(20) // from a reloaded configuration, say
	fmt.Println(payments.Stats().Max)
	// Output: 20
}

func ExampleBulkhead_Stats() {
	payments := bulkhead.New("payments", bulkhead.Config{Max: 2})
	_ = payments.Do(ctx, func(context.Context) error {
		s := payments.Stats()
		fmt.Println(s.Running, "of", s.Max)
		return nil
	})
	// Output: 1 of 2
}

// A rehearsal: how many would be refused by a limit of 1?
func ExampleConfig_shadow() {
	payments := bulkhead.New("payments", bulkhead.Config{Max: 1, Shadow: true})
	release, _ := payments.Acquire(ctx)
	_ = payments.Do(ctx, charge)
	release()
	fmt.Println(payments.Stats().Rejected, "refused,", payments.Stats().WouldReject, "would be")
	// Output: 0 refused, 1 would be
}

func ExampleConfig_Validate() {
	fmt.Println(bulkhead.Config{Queue: -1}.Validate())
	// Output:
	// bulkhead: Config.Max is 0, must be from 1 to 2147483647
	// bulkhead: Config.Queue is -1, must be from 0 (none) to 2147483647
}

// A group does not drop a bulkhead whose calls still run.
func ExampleBulkhead_InUse() {
	streams := bulkhead.New("streams", bulkhead.Config{Max: 10})
	release, _ := streams.Acquire(ctx)
	fmt.Println(streams.InUse())
	release()
	fmt.Println(streams.InUse())
	// Output:
	// true
	// false
}
