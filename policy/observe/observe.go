// Package observe defines how policies report what they do: the interface [Observer], and what is passed to it.
//
// What happens rarely, such as a change of state, a refusal or a retry, a policy reports at once as an [Event]. What happens
// on every call it only counts, in atomics that the Observer reads when its telemetry is collected. So a call that succeeds
// does not call the Observer.
//
// Most users need none of this, since policies report to OpenTelemetry by default (package otelx). [Slog] writes events to a
// log, [Func] turns a function into an Observer, [Tee] joins several, and [Discard] ignores everything.
package observe

import (
	"context"
	"log/slog"
	"math"
	"runtime"
	"sync/atomic"
	"time"
	"weak"
)

// Kind says what an [Event] is about.
type Kind int8

// The kinds of events.
const (
	StateChange Kind = iota // a circuit breaker changed its state
	Rejected                // a policy refused a call
	Attempt                 // a retry is about to wait and then make its next attempt
	Exhausted               // a retry gave up
	TimedOut                // a timeout's limit passed and fn failed
	Hedged                  // a hedge started another attempt, or was not allowed to
	FellBack                // a fallback ran
)

var kinds = [...]string{"state_change", "rejected", "attempt", "exhausted", "timed_out", "hedged", "fell_back"}

// String returns the kind's name in snake case.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kinds) {
		return "unknown"
	}
	return kinds[k]
}

// Event is something that happened in a policy. Fields that do not apply to its Kind are zero.
type Event struct {
	Kind     Kind
	Policy   string // the policy's type: circuit_breaker, retry, bulkhead, rate_limiter, timeout, hedge, fallback
	Name     string // the policy's name
	Pipeline string // the name of the pipeline that the call runs in, if any

	From string // StateChange: the state before. Rejected by a breaker: the state that refuses
	To   string // StateChange: the state after

	// Reason says why. StateChange: failure_ratio, cooldown_elapsed and so on. Rejected: rejected on arrival, or timeout after
	// a wait. Exhausted: the result of the call, such as budget_exhausted. Hedged: budget_exhausted if the attempt was not
	// allowed, panic if an attempt panicked, else empty.
	Reason string

	// Attempt is a number of attempts. Attempt, Hedged: the number of the attempt that follows, from 2; for the panic of one,
	// its own. Exhausted: how many were made.
	Attempt int

	// Delay is a duration. Attempt: the wait before the attempt. Exhausted: the wait that was too long or not paid for, if it
	// came to that. Hedged: how long the attempt before has run. StateChange to open: the cooldown. TimedOut: the limit.
	Delay time.Duration

	// Err is an error. StateChange: the failure that caused it, if one did. Rejected: the refusal. Exhausted: the error that
	// the retry returns. Attempt, TimedOut, Hedged, FellBack: the error of fn that led to it, if one did.
	Err error

	Time time.Time // when it took effect: for the end of a cooldown, that instant, even if it was noticed later

	Ratio      float64 // StateChange to open by a rule: the ratio that was judged
	Calls      int     // StateChange to open by a rule: the number of calls that were judged
	Reopenings int     // StateChange to open: how many steps of growth the cooldown has had; 0 for a first opening
}

// Level returns how severe the event is: Warn for a breaker that opens, a retry that gives up and a timeout; Debug for
// refusals and hedges, of which an outage brings many; Info for all others.
func (e Event) Level() slog.Level {
	switch e.Kind {
	case StateChange:
		if e.To == "open" || e.To == "forced_open" {
			return slog.LevelWarn
		}
	case Exhausted, TimedOut:
		return slog.LevelWarn
	case Rejected, Hedged:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// Observer watches policies. An implementation must be safe for concurrent use, and may call back into the policy that
// tells it something.
type Observer interface {
	// Observe is called for each event, with the context of the call that caused it and with no lock held. State changes of
	// one policy arrive one at a time and in order. The call waits for Observe, so it should be quick. A panic of Observe
	// is not recovered: it continues to the caller of the policy.
	Observe(ctx context.Context, e Event)
	// Attach is called for each new policy, with what can be read of it. It may keep s, which refers to the policy only
	// weakly, but no other reference to the policy, or the policy is never freed. It may return nil if it records no
	// durations. Policies do not call it themselves but the function [Attach].
	Attach(s Source) Probe
}

// Source is what an [Observer] can read of one policy when it collects telemetry.
type Source struct {
	Policy string // the policy's type, as in [Event]
	Name   string // the policy's name

	Rows   []Row          // what each number means; the same slice for every policy of a type
	Counts []atomic.Int64 // the values of Rows[:len(Counts)], which stay valid after the policy is gone

	// Live fills v with the values of Rows[len(Counts):], read together. It returns false once the policy is gone. [Attach]
	// sets it.
	Live func(v []int64) bool

	Durations []Row // what the rows of [Probe].Record mean
}

// Row says what one number means: the name of a metric and its attributes, other than the policy's name.
type Row struct {
	Metric string
	Attrs  []Attr
}

// Attr is one attribute of a [Row].
type Attr struct{ Key, Value string }

// None is the value of a row that is not to be reported, or not yet.
const None = math.MinInt64

// Probe is what an [Observer] keeps for one policy. It must be safe for concurrent use.
type Probe interface {
	// Enabled reports whether anybody reads what Record records. If not, the policy does not measure.
	Enabled(ctx context.Context) bool
	// Record records the duration d. row is an index of [Source].Durations.
	Record(ctx context.Context, row int, d time.Duration)
	// Detach is called once, after the policy is gone.
	Detach()
}

// Spanner is an optional interface of an [Observer], for tracing.
type Spanner interface {
	// Start is called at the start of each call of a pipeline, with attempt 0, and at the start of each attempt that a retry
	// or a hedge makes, with its number from 1. The call goes on under the context that Start returns. The function that it
	// returns is called at the end, with the error; that is [ErrPanicked] if fn panicked or called [runtime.Goexit].
	Start(ctx context.Context, pipeline string, attempt int) (context.Context, func(error))
}

// ErrPanicked stands for the error of a call in which fn panicked or called [runtime.Goexit].
var ErrPanicked error = panicked{}

type panicked struct{}

func (panicked) Error() string     { return "observe: fn panicked or left by runtime.Goexit" }
func (panicked) ErrorType() string { return "panic" }

// Attach makes the policy p known to o. It is for authors of policies, to call once for each policy.
//
// o holds p only weakly: once p is unreachable, Source.Live returns false and the Probe is detached. So neither s nor live
// may refer to p. live, unless it is nil, gets p as its argument and sets one value of v for each of
// s.Rows[len(s.Counts):]. Attach never returns nil.
func Attach[P any](o Observer, p *P, s Source, live func(p *P, v []int64)) Probe {
	ref := weak.Make(p)
	s.Live = func(v []int64) bool {
		p := ref.Value()
		if p == nil {
			return false
		}
		if live != nil {
			live(p, v)
		}
		runtime.KeepAlive(p)
		return true
	}
	probe := o.Attach(s)
	if probe == nil {
		return noProbe{}
	}
	if probe != Probe(noProbe{}) {
		runtime.AddCleanup(p, Probe.Detach, probe)
	}
	return probe
}

// Discard is an [Observer] that ignores everything.
var Discard Observer = discard{}

type discard struct{}

func (discard) Observe(context.Context, Event) {}
func (discard) Attach(Source) Probe            { return noProbe{} }

type noProbe struct{}

func (noProbe) Enabled(context.Context) bool               { return false }
func (noProbe) Record(context.Context, int, time.Duration) {}
func (noProbe) Detach()                                    {}

// Func is a function as an [Observer] that is told of events only.
type Func func(ctx context.Context, e Event)

// Observe calls f.
func (f Func) Observe(ctx context.Context, e Event) { f(ctx, e) }

// Attach does nothing.
func (f Func) Attach(Source) Probe { return noProbe{} }
