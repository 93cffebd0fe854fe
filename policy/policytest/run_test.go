package policytest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

var (
	errDown = errors.New("down")
	errLost = errors.New("lost")
)

const ms = time.Millisecond

// again is a policy that runs fn up to three times, waits between, and tells.
func again(o observe.Observer) policy.Policy {
	return policy.PolicyFunc(func(ctx context.Context, fn policy.Func) (err error) {
		for n := range 3 {
			if n > 0 {
				o.Observe(ctx, observe.Event{Kind: observe.Attempt, Policy: "again", Name: "again", Attempt: n + 1, Delay: 10 * ms, Err: err})
				time.Sleep(10 * ms)
			}
			if err = fn(ctx); err == nil {
				return nil
			}
		}
		return err
	})
}

func fuse(o observe.Observer) policy.Policy {
	return breaker.New("fuse", breaker.Config{Consecutive: 2, Cooldown: time.Second, Growth: 1, Jitter: -1, Observer: o})
}

func limit1(o observe.Observer) policy.Policy {
	return bulkhead.New("one", bulkhead.Config{Max: 1, Observer: o})
}

func none(observe.Observer) policy.Policy { return plain }

func TestACaseThatHoldsSaysNothing(t *testing.T) {
	for _, c := range []Case{
		{Name: "nothing said", Policy: none},
		{Name: "errors", Policy: none, Script: Script{Fail(errors.Join(errDown, errLost))}, Calls: []Call{{Is: []error{errDown, errLost}, Not: []error{policy.ErrRejected}}}},
		{Name: "runs", Policy: again, Script: Script{Fail(errDown), Fail(errDown), OK}, Calls: []Call{{Runs: At(0, 10*ms, 20*ms), Takes: 20 * ms}}, Events: "retry → retry"},
		{Name: "any time", Policy: again, Script: Script{Fail(errDown), Fail(errDown), OK}, Calls: []Call{{Runs: At(0, Any, Any), Takes: Any}}, Events: "…"},
		{Name: "panic", Policy: none, Script: Script{Panic("boom")}, Calls: []Call{{Panics: "boom"}}},
		{Name: "Goexit", Policy: none, Script: Script{Goexit}, Calls: []Call{{Exits: true}}},
		{Name: "cancel", Policy: none, Script: Script{Hang}, Calls: []Call{{Cancel: 5 * ms, Takes: 5 * ms, Is: []error{context.Canceled}}}},
		{Name: "cancel, too late", Policy: none, Calls: []Call{{Cancel: 5 * ms}}},
		{Name: "deadline", Policy: none, Script: Script{Hang}, Calls: []Call{{Timeout: 5 * ms, Takes: 5 * ms, Is: []error{context.DeadlineExceeded}}}},
		{Name: "After heeds its context", Policy: none, Script: Script{After(time.Second, Fail(errDown))}, Calls: []Call{
			{Cancel: 5 * ms, Takes: 5 * ms, Is: []error{context.Canceled}},
			{Takes: time.Second, Is: []error{errDown}},
		}},
		{Name: "Deaf does not", Policy: none, Script: Script{Deaf(time.Second, OK)}, Calls: []Call{{Cancel: 5 * ms, Takes: time.Second}}},
		{Name: "Late", Policy: none, Script: Script{Late(7*ms, Fail(errDown))}, Calls: []Call{{Cancel: 5 * ms, Takes: 12 * ms, Is: []error{errDown}}}},
		{Name: "Outage", Policy: none, Script: Script{Outage(errDown, 10*ms, 20*ms)}, Calls: []Call{
			{At: 9 * ms}, {At: 10 * ms, Is: []error{errDown}}, {At: 20*ms - 1, Is: []error{errDown}}, {At: 20 * ms},
		}},
		{Name: "Times and Then", Policy: none, Script: Times(2, Fail(errDown)).Then(OK), Calls: []Call{{Times: 2, Is: []error{errDown}}, {Times: 3}}},
		{Name: "a script of its own", Policy: none, Script: Script{Fail(errDown), OK}, Calls: []Call{
			{Script: Script{Fail(errLost)}, Is: []error{errLost}}, {Is: []error{errDown}}, {},
		}},
		{Name: "calls in any order", Policy: none, Script: Script{Fail(errDown), OK}, Calls: []Call{{At: 10 * ms}, {Is: []error{errDown}}}},
		{Name: "together", Policy: limit1, Script: Script{After(10*ms, OK)}, Calls: []Call{
			{Takes: 10 * ms},
			{Times: 49, Runs: Never, Is: []error{bulkhead.ErrFull}},
			{At: 10 * ms, Takes: 10 * ms}, // the first has ended by then
		}, Events: "reject(bulkhead) ×49", Counts: map[string]int64{"bulkhead.calls(acquired)": 2, "switchgear.bulkhead.usage(one)": 0}},
		{Name: "states", Policy: fuse, Script: Script{Fail(errDown)}, Calls: []Call{{Times: 2, Is: []error{errDown}}}, Until: time.Second - 1, States: "open"},
		{Name: "states later", Policy: fuse, Script: Script{Fail(errDown)}, Calls: []Call{{Times: 2, Is: []error{errDown}}}, Until: time.Second, States: "fuse=half_open", Events: "open@0s"},
		{Name: "another way to call", Policy: fuse, Calls: []Call{
			{Runs: Never, Do: func(_ context.Context, p policy.Policy, _ policy.Func) error { p.(*breaker.Breaker).Trip(); return nil }},
			{Runs: Never, Is: []error{breaker.ErrCircuitOpen}},
		}, Events: "open(manual) → reject"},
		{Name: "check", Policy: fuse, Check: func(t *testing.T, r *Recorder) { assert.Equal(t, "closed", r.State("fuse")) }},
	} {
		t.Run(c.Name, func(t *testing.T) { assert.Empty(t, play(t, c, patience)) })
	}
}

func TestACaseThatFailsShowsATimeline(t *testing.T) {
	report := play(t, Case{
		Policy: again,
		Script: Script{Fail(errDown), Fail(errDown), After(5*ms, OK)},
		Calls:  []Call{{Runs: At(0, 10*ms), Takes: 20 * ms, Is: []error{errDown}}},
		Events: "retry(2) → open → retry(3)",
	}, patience)
	assert.Equal(t, strings.TrimSpace(`
the call returns nil, want an error that matches down
the call takes 25ms, want 20ms
the call runs fn at 0s, 10ms, 20ms, want at 0s, 10ms
events are  retry(again, 2, 10ms) → retry(again, 3, 10ms)
but wanted  retry(2) → open → retry(3)

  time  happened               wanted
    0s  the call starts
    0s  run 1 of fn starts     at 0s
    0s  run 1 returns down
    0s  retry(again, 2, 10ms)  retry(2)
  10ms  run 2 of fn starts     at 10ms
  10ms  run 2 returns down
✗ 10ms                         open
  10ms  retry(again, 3, 10ms)  retry(3)
✗ 20ms  run 3 of fn starts     no such run
  25ms  run 3 returns nil
✗ 25ms  the call returns nil   an error that matches down after 20ms
`), report)
}

func TestSeveralCallsAreToldApart(t *testing.T) {
	report := play(t, Case{
		Policy: limit1,
		Script: Script{After(10*ms, OK)},
		Calls: []Call{
			{Takes: 10 * ms},
			{At: 5 * ms, Times: 2, Cancel: ms, Is: []error{bulkhead.ErrFull}},
			{At: 7 * ms, Runs: At(0, 20*ms), Takes: 10 * ms},
		},
		Events: "reject → reject",
	}, patience)
	assert.Equal(t, strings.TrimSpace(`
call 2.1 runs fn never, want at 0s
call 2.2 runs fn never, want at 0s
call 3 returns bulkhead one: no permit free, want nil
call 3 takes 0s, want 10ms
call 3 runs fn never, want at 0s, 20ms
events are  reject(bulkhead, one, rejected) → reject(bulkhead, one, rejected) → reject(bulkhead, one, rejected)
but wanted  reject → reject

  time  happened                                       wanted
    0s  call 1 starts
    0s  call 1: run 1 of fn starts                     at 0s
   5ms  call 2.1 starts
   5ms  call 2.1: reject(bulkhead, one, rejected)      reject
✗  5ms                                                 call 2.1: run 1 of fn at 0s
   5ms  call 2.1 returns bulkhead one: no permit free  an error that matches no permit free after 0s
   5ms  call 2.2 starts
   5ms  call 2.2: reject(bulkhead, one, rejected)      reject
✗  5ms                                                 call 2.2: run 1 of fn at 0s
   5ms  call 2.2 returns bulkhead one: no permit free  an error that matches no permit free after 0s
   7ms  call 3 starts
✗  7ms  call 3: reject(bulkhead, one, rejected)        no such event
✗  7ms                                                 call 3: run 1 of fn at 0s
✗  7ms  call 3 returns bulkhead one: no permit free    nil after 10ms
  10ms  call 1: run 1 returns nil
  10ms  call 1 returns nil                             nil after 10ms
✗ 27ms                                                 call 3: run 2 of fn at 20ms
`), report)
}

func TestWhatACaseDoesNotSayMustNotHappen(t *testing.T) {
	cancelled := func(ctx context.Context, p policy.Policy, fn policy.Func) error { return nil }
	var mu sync.Mutex
	for _, tt := range []struct {
		Case
		says     string
		patience time.Duration
	}{
		{Case: Case{Name: "no policy"}, says: "the case has no Policy"},
		{Case: Case{Name: "nil policy", Policy: func(observe.Observer) policy.Policy { return nil }}, says: "Policy returned nil"},
		{Case: Case{Name: "an error", Policy: none, Script: Script{Fail(errDown)}}, says: "the call returns down, want nil"},
		{Case: Case{Name: "another error", Policy: none, Script: Script{Fail(errDown)}, Calls: []Call{{Is: []error{errLost}}}}, says: "the call returns down, which does not match lost"},
		{Case: Case{Name: "an error that must not match", Policy: none, Script: Script{Fail(errDown)}, Calls: []Call{{Is: []error{errDown}, Not: []error{errDown}}}}, says: "the call returns down, which must not match down"},
		{Case: Case{Name: "time", Policy: none, Script: Script{After(1, OK)}}, says: "the call takes 1ns, want 0s"},
		{Case: Case{Name: "a run", Policy: none, Calls: []Call{{Runs: Never}}}, says: "the call runs fn at 0s, want never"},
		{Case: Case{Name: "no run", Policy: none, Calls: []Call{{Do: cancelled}}}, says: "the call runs fn never, want at 0s"},
		{Case: Case{Name: "a panic", Policy: none, Script: Script{Panic("boom")}}, says: "the call panics with boom:\n\tgoroutine "},
		{Case: Case{Name: "another panic", Policy: none, Script: Script{Panic("boom")}, Calls: []Call{{Panics: "bang"}}}, says: "the call panics with boom, want bang"},
		{Case: Case{Name: "no panic", Policy: none, Calls: []Call{{Panics: "bang"}}}, says: "the call returns nil, want a panic with bang"},
		{Case: Case{Name: "Goexit", Policy: none, Script: Script{Goexit}}, says: "the call ends its goroutine, want nil"},
		{Case: Case{Name: "no Goexit", Policy: none, Script: Script{Panic("boom")}, Calls: []Call{{Exits: true}}}, says: "the call panics with boom, want the end of its goroutine"},
		{Case: Case{Name: "events", Policy: again, Script: Script{Fail(errDown), OK}, Calls: []Call{{Takes: 10 * ms, Runs: At(0, 10*ms)}}, Events: "none"}, says: "events are  retry(again, 2, 10ms)\nbut wanted  none"},
		{Case: Case{Name: "events that are not there", Policy: none, Events: "retry"}, says: "events are  none\nbut wanted  retry"},
		{Case: Case{Name: "a sequence that cannot be read", Policy: none, Events: "retry("}, says: `cannot read "retry("`},
		{Case: Case{Name: "a state", Policy: fuse, States: "open"}, says: "at the end fuse is closed, want open"},
		{Case: Case{Name: "a state of another", Policy: fuse, States: "fuze=closed"}, says: "no policy of that name reports a state to this observer"},
		{Case: Case{Name: "a state of none", Policy: none, States: "closed"}, says: "want state closed, but 0 policies report a state"},
		{Case: Case{Name: "a count", Policy: fuse, Counts: map[string]int64{"circuit_breaker.calls(success)": 2}}, says: "at the end circuit_breaker.calls(success) is 1, want 2"},
		{Case: Case{Name: "a count of nothing", Policy: fuse, Counts: map[string]int64{"circuit_breaker.cals": 1}}, says: `no row matches "circuit_breaker.cals"; there are:`},
		{Case: Case{Name: "a call without end", Policy: none, Script: Script{Hang}}, says: "not everything has ended 1h0m0s after it should"},
		{
			Case: Case{Name: "a call that waits for a lock", Policy: func(observe.Observer) policy.Policy {
				return policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
					mu.Lock()
					defer mu.Unlock()
					return fn(ctx)
				})
			}},
			says: "it hangs: in 100ms of real time it has not come to rest", patience: 100 * ms,
		},
	} {
		t.Run(tt.Name, func(t *testing.T) {
			if tt.patience == 0 {
				tt.patience = patience
			} else {
				mu.Lock()
				defer mu.Unlock()
			}
			report := play(t, tt.Case, tt.patience)
			assert.Contains(t, report, tt.says)
		})
	}
}

func TestAFailureInCheckShowsTheTimelineToo(t *testing.T) {
	s := newStage(Case{Policy: none, Check: func(*testing.T, *Recorder) {}})
	require.Empty(t, bubble(t, patience, s.perform))
	assert.Empty(t, s.report(""))
	assert.Contains(t, s.report("anything"), "the call returns nil")
}

func TestALongTimelineShowsWhatIsOff(t *testing.T) {
	calls := make([]Call, 200)
	for i := range calls {
		calls[i].At = time.Duration(i) * ms
	}
	calls[100].Is = []error{errDown}
	report := play(t, Case{Policy: none, Calls: calls}, patience)
	assert.Less(t, strings.Count(report, "\n"), 20, report)
	assert.Contains(t, report, "⋮\n")
	assert.Contains(t, report, "✗ 100ms  call 101 returns nil")
}

func TestATableOfThirtyCasesTakesMilliseconds(t *testing.T) {
	start := time.Now()
	for i := range 30 {
		report := play(t, Case{
			Name: fmt.Sprint(i), Policy: fuse, Script: Script{Outage(errDown, 0, time.Hour)},
			Calls:  []Call{{Times: 2, Is: []error{errDown}}, {At: time.Second - 1, Times: 10, Runs: Never, Is: []error{breaker.ErrCircuitOpen}}, {At: time.Hour, Times: 10}},
			Events: "open → reject×10 → half_open → closed",
		}, patience)
		assert.Empty(t, report)
	}
	assert.Less(t, time.Since(start), time.Second)
}
