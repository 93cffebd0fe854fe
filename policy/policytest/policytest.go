// Package policytest tests policies and pipelines. Tests are tables of cases with exact times; they take milliseconds, since
// each case runs on the fake clock of a testing/synctest bubble.
//
// [Run] runs cases: fn follows a [Script], calls start at given times, and what happens is compared with what is wanted. A
// case that fails prints both side by side, as a timeline. [Conform] checks that a policy of your own does what every policy
// must. [Opens] checks that a breaker opens when a call fails the way it does in production. [Recorder] is an
// [observe.Observer] whose events and numbers tests can read, in tests of any kind.
package policytest

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// Case is one case of [Run]: what fn does, when calls start, and what must happen. Times are exact: in a bubble, only waiting
// takes time.
type Case struct {
	Name string // a sentence that says what holds

	// Policy builds the policy in the case's bubble. Give o to every policy that takes an Observer, and to Observed.
	Policy func(o observe.Observer) policy.Policy

	// Script is what fn does, run by run. If empty, it returns nil at once.
	Script Script

	// Calls are the calls and what each must bring. If empty, there is one, at the start, which has to succeed at once.
	Calls []Call

	// Until is how long the case lasts at least. It ends when every call has returned and no fn runs any more.
	Until time.Duration

	// Events is the sequence of events, such as "retry → open(api) → reject(breaker)"; "none" for none. See [Recorder.Match].
	// If empty, it is not checked.
	Events string

	// States are the states of breakers at the end, such as "open" if there is one, or "payments-api=open, mail-api=closed".
	// Breakers that are not named are not checked.
	States string

	// Counts are numbers at the end, by their row as in [Recorder.Count], such as "retry.calls(recovered)": 1. Rows that are
	// not named are not checked.
	Counts map[string]int64

	// Check looks at whatever else matters, at the end, in the case's bubble.
	Check func(t *testing.T, r *Recorder)
}

// Call is one call, or several equal ones, and what must happen in it. The zero Call starts at the start of the case, runs fn
// once and at once, and must return nil at once.
//
// Calls with the same At start in the order of the table, each once all goroutines of those before it are blocked or have
// ended. So a case always runs in the same order. [Conform] checks that a policy can be called in parallel.
type Call struct {
	At     time.Duration // when it starts, from the start of the case
	Times  int           // how many calls start then; if zero, 1
	Script Script        // what fn does in this call; if nil, fn takes the next steps of the case's Script

	// Cancel is how long after its start the caller cancels; if negative, before it. If zero, never.
	Cancel time.Duration

	// Timeout is how long after its start the deadline of the caller's context is; if negative, it has passed. If zero, there
	// is none.
	Timeout time.Duration

	// Do makes the call in another way than p.Do(ctx, fn): with policy.Get, say, or under a context with values. It may
	// also do something else at that time, such as tripping a breaker, and set Runs to Never.
	Do func(ctx context.Context, p policy.Policy, fn policy.Func) error

	Runs   []time.Duration // when fn starts, from the start of the call; if nil, once, at once; see [At] and [Never]
	Takes  time.Duration   // how long until it returns, or [Any]
	Is     []error         // what its error must match, by errors.Is; if empty, it must return nil
	Not    []error         // what its error must not match
	Panics any             // it must panic with this value
	Exits  bool            // it must end its goroutine by runtime.Goexit
}

// Any stands for a time that is not checked, such as a random one: Takes: Any, or Runs: At(0, Any, Any).
const Any time.Duration = -1 << 63

// Never is the [Call].Runs of a call in which fn does not run.
var Never = []time.Duration{}

// At returns its arguments: Runs: At(0, 100*time.Millisecond).
func At(times ...time.Duration) []time.Duration { return append(Never, times...) }

// Run runs each case as a subtest of t, in a testing/synctest bubble of its own.
func Run(t *testing.T, cases []Case) {
	t.Helper()
	for i, c := range cases {
		if c.Name == "" {
			c.Name = "case " + strconv.Itoa(i+1)
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Helper()
			if report := play(t, c, patience); report != "" {
				t.Error(report)
			}
		})
	}
}

// play plays a case and returns what is wrong with it, with a timeline; "" if nothing is.
func play(t *testing.T, c Case, patience time.Duration) (report string) {
	if c.Policy == nil {
		return "policytest: the case has no Policy"
	}
	s := newStage(c)
	trouble := bubble(t, patience, s.perform)
	return s.report(trouble)
}
