package policytest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/policy/policytest"
)

var errRefused = errors.New("connection refused")

// second is a policy to play scripts with: a timeout of a second.
func second(o observe.Observer) policy.Policy {
	return policy.NewPipeline("charge", policy.Timeout(time.Second)).Observed(o)
}

func TestExamplesOfScripts(tt *testing.T) {
	for _, example := range []func(){
		ExampleFail, ExampleHang, ExamplePanic, ExampleGoexit, ExampleAfter, ExampleDeaf, ExampleLate, ExampleOutage, ExampleTimes, ExampleAt,
	} {
		tt.Run("", func(tt *testing.T) {
			t = tt
			example()
		})
	}
}

func ExampleFail() {
	policytest.Run(t, []policytest.Case{{
		Name: "a failure comes back", Policy: second,
		Script: policytest.Script{policytest.Fail(errRefused), policytest.OK},
		Calls:  []policytest.Call{{Is: []error{errRefused}}, {}},
	}})
}

func ExampleHang() {
	policytest.Run(t, []policytest.Case{{
		Name: "a call that hangs ends with the timeout", Policy: second,
		Script: policytest.Script{policytest.Hang},
		Calls:  []policytest.Call{{Takes: time.Second, Is: []error{policy.ErrTimeout}}},
	}})
}

func ExamplePanic() {
	policytest.Run(t, []policytest.Case{{
		Name: "a panic reaches the caller", Policy: second,
		Script: policytest.Script{policytest.Panic("out of paper")},
		Calls:  []policytest.Call{{Panics: "out of paper"}},
	}})
}

func ExampleGoexit() {
	policytest.Run(t, []policytest.Case{{
		Name: "Goexit ends the caller's goroutine", Policy: second,
		Script: policytest.Script{policytest.Goexit},
		Calls:  []policytest.Call{{Exits: true}},
	}})
}

// A call that takes a while, and returns early if its context ends.
func ExampleAfter() {
	policytest.Run(t, []policytest.Case{{
		Name: "only calls of less than a second succeed", Policy: second,
		Script: policytest.Script{
			policytest.After(900*time.Millisecond, policytest.OK),
			policytest.After(1100*time.Millisecond, policytest.OK),
		},
		Calls: []policytest.Call{
			{Takes: 900 * time.Millisecond},
			{At: 2 * time.Second, Takes: time.Second, Is: []error{policy.ErrTimeout}},
		},
	}})
}

// A call that ignores its context holds its caller up.
func ExampleDeaf() {
	policytest.Run(t, []policytest.Case{{
		Name: "a timeout waits for the function, and takes its late success", Policy: second,
		Script: policytest.Script{policytest.Deaf(time.Minute, policytest.OK)},
		Calls:  []policytest.Call{{Takes: time.Minute}},
		Counts: map[string]int64{"timeout.calls(late)": 1},
	}})
}

// A call that takes some time to clean up after its context has ended.
func ExampleLate() {
	policytest.Run(t, []policytest.Case{{
		Name: "a timeout waits for the function to clean up", Policy: second,
		Script: policytest.Script{policytest.Late(100*time.Millisecond, policytest.Fail(errRefused))},
		Calls:  []policytest.Call{{Takes: 1100 * time.Millisecond, Is: []error{policy.ErrTimeout, errRefused}}},
	}})
}

func ExampleOutage() {
	policytest.Run(t, []policytest.Case{{
		Name: "calls fail from the second to the fifth minute", Policy: second,
		Script: policytest.Script{policytest.Outage(errRefused, 2*time.Minute, 5*time.Minute)},
		Calls: []policytest.Call{
			{At: time.Minute},
			{At: 2 * time.Minute, Is: []error{errRefused}},
			{At: 5 * time.Minute},
		},
	}})
}

func ExampleTimes() {
	policytest.Run(t, []policytest.Case{{
		Name: "three calls fail, and then all succeed", Policy: second,
		Script: policytest.Times(3, policytest.Fail(errRefused)).Then(policytest.OK),
		Calls:  []policytest.Call{{Times: 3, Is: []error{errRefused}}, {Times: 10}},
	}})
}

// A policy of your own that runs its function twice, a second apart.
func ExampleAt() {
	policytest.Run(t, []policytest.Case{{
		Name: "the function runs at once and again after a second",
		Policy: func(observe.Observer) policy.Policy {
			return policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
				_ = fn(ctx)
				time.Sleep(time.Second)
				return fn(ctx)
			})
		},
		Calls: []policytest.Call{{Runs: policytest.At(0, time.Second), Takes: time.Second}},
	}})
}
