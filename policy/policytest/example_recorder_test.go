package policytest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/policy/policytest"
)

func ExampleRecorder_Match() {
	var seen policytest.Recorder
	api := breaker.New("payments-api", breaker.Config{Observer: &seen})
	api.Trip()
	api.Probe()
	api.Reset()
	fmt.Println(seen.Match("open → half_open → closed"))
	fmt.Println(seen.Match("open(manual) → …"))
	// Output:
	// <nil>
	// <nil>
}

func ExampleRecorder_Events() {
	var seen policytest.Recorder
	api := breaker.New("payments-api", breaker.Config{Observer: &seen})
	api.ForceOpen()
	for _, e := range seen.Events() {
		fmt.Println(e.Kind, e.From, e.To)
	}
	// Output: state_change closed forced_open
}

func ExampleRecorder_Count() {
	var seen policytest.Recorder
	db := bulkhead.New("db", bulkhead.Config{Max: 1, Observer: &seen})
	release, _ := db.Acquire(context.Background())
	_, err := db.Acquire(context.Background())
	fmt.Println(err)
	fmt.Println(seen.Count("bulkhead.usage"), seen.Count("bulkhead.calls(rejected)"))
	release()
	fmt.Println(seen.Count("bulkhead.usage"))
	// Output:
	// bulkhead db: no permit free
	// 1 1
	// 0
}

func ExampleRecorder_Rows() {
	var seen policytest.Recorder
	db := bulkhead.New("db", bulkhead.Config{Max: 1, Observer: &seen})
	_ = db.Do(context.Background(), func(context.Context) error { return nil })
	rows := seen.Rows()
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		fmt.Println(row, rows[row])
	}
	// Output:
	// bulkhead.calls(db, acquired) 1
	// bulkhead.calls(db, canceled) 0
	// bulkhead.calls(db, rejected) 0
	// bulkhead.calls(db, timeout) 0
	// bulkhead.limit(db) 1
	// bulkhead.usage(db) 0
}

func ExampleRecorder_State() {
	var seen policytest.Recorder
	api := breaker.New("payments-api", breaker.Config{Observer: &seen})
	fmt.Println(seen.State("payments-api"))
	api.Trip()
	fmt.Println(seen.State("payments-api"))
	// Output:
	// closed
	// open
}

func ExampleRecorder_Durations() {
	var seen policytest.Recorder
	db := bulkhead.New("db", bulkhead.Config{Max: 1, Queue: 1, MaxWait: time.Millisecond, Observer: &seen})
	release, _ := db.Acquire(context.Background())
	defer release()
	_ = db.Do(context.Background(), func(context.Context) error { return nil })
	waits := seen.Durations("bulkhead.wait.duration(timeout)")
	fmt.Println(len(waits), waits[0] >= time.Millisecond)
	// Output: 1 true
}

func ExampleRecorder_Reset() {
	var seen policytest.Recorder
	api := breaker.New("payments-api", breaker.Config{Observer: &seen})
	api.Trip()
	seen.Reset()
	fmt.Println(&seen, seen.Count("circuit_breaker.transitions(closed, open)"))
	// Output: none 1
}
