// Package observe is the seam between policies and whoever watches them.
//
// A policy tells two kinds of things. What happens rarely, a transition, a refusal, a retry, it tells at once as an
// [Event]. What happens on every call it only counts, in atomics that an [Observer] reads when it is asked for numbers; a
// call that succeeds tells nobody anything.
//
// Most users need none of this: policies report through OpenTelemetry by default (package otelx). [Slog] writes events to
// a log, [Func] turns a function into an Observer, [Tee] joins several, and [Discard] is silence.
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
	FellBack                // a fallback answered, or tried to
)

var kinds = [...]string{"state_change", "rejected", "attempt", "exhausted", "timed_out", "hedged", "fell_back"}

// String returns the kind's name in snake case.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kinds) {
		return "unknown"
	}
	return kinds[k]
}

// Event is something rare that happened to a policy. Fields that do not apply to its Kind are zero.
type Event struct {
	Kind     Kind
	Policy   string // the policy's type: circuit_breaker, retry, bulkhead, rate_limiter, timeout, hedge, fallback
	Name     string // the policy's name
	Pipeline string // the pipeline the call runs in, if any

	From string // StateChange: the state before. Rejected by a breaker: the state that refuses
	To   string // StateChange: the state after

	// Reason is why. StateChange: failure_ratio, cooldown_elapsed, … Rejected: the result of asking (rejected, timeout).
	// Exhausted: the result of the call. Hedged: budget_exhausted if no attempt was allowed, panic if one ended in one.
	Reason string

	Attempt int // Attempt, Hedged: the attempt that comes, from 2. Exhausted: the attempts made

	// Delay is a time that matters. Attempt: the wait before it. Exhausted: the wait that was refused, if one was. Hedged:
	// how long the attempt before has run. StateChange to open: the wait drawn. TimedOut: the limit.
	Delay time.Duration

	Err  error     // what the call had failed with
	Time time.Time // when it took effect: the end of a cooldown, say, not the moment somebody found it

	Ratio      float64 // StateChange on a ratio: the ratio judged
	Calls      int     // StateChange on a ratio or count: the calls judged
	Reopenings int     // StateChange to open: how often it has reopened since it was last at ease
}

// Level returns how severe the event is: Warn when protection starts to cost callers something (a breaker opens, a retry
// gives up, a timeout passes), Debug for what may come with every call of an outage, else Info.
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
	// Observe is told of an event, on the goroutine and with the context of the call that set it off, outside every lock.
	// State changes of one policy arrive one at a time and in order. A call waits for Observe, so it should be quick; a
	// panic in it leaves on the goroutine that was telling.
	Observe(ctx context.Context, e Event)
	// Attach is told of a new policy and what can be read of it. It must not keep anything that leads to the policy other
	// than s, or the policy is never freed. Policies call it through [Attach].
	Attach(s Source) Probe
}

// Source is what an [Observer] can read of one policy when numbers are collected.
type Source struct {
	Policy, Name string
	Rows         []Row                // what the numbers are: one static table per type of policy
	Counts       []atomic.Int64       // the values of Rows[:len(Counts)]; they outlive the policy
	Live         func(v []int64) bool // fills v with the values of the other rows, all of one moment; false once the policy is gone
	Durations    []Row                // what the row of [Probe].Record means
}

// Row names one number: a metric and its attributes. The policy's name is implied.
type Row struct {
	Metric string
	Attrs  []Attr
}

// Attr is one attribute of a [Row].
type Attr struct{ Key, Value string }

// None is the value of a row that is not reported, or not yet.
const None = math.MinInt64

// Probe is an observer's side of one policy.
type Probe interface {
	// Enabled reports whether Record is worth reading the clock for.
	Enabled(ctx context.Context) bool
	// Record records a duration under a row of [Source].Durations.
	Record(ctx context.Context, row int, d time.Duration)
	// Detach is called once, after the policy is gone.
	Detach()
}

// Spanner is an optional interface of an [Observer] that traces: Start is called at the start of a pipeline's call, with
// attempt 0, and of each attempt that a retry in it makes, from 1. The function it returns ends the span with the result;
// it is called with [ErrPanicked] where fn panicked or left by [runtime.Goexit].
type Spanner interface {
	Start(ctx context.Context, pipeline string, attempt int) (context.Context, func(error))
}

// ErrPanicked is what a span ends with when fn did not return.
var ErrPanicked error = panicked{}

type panicked struct{}

func (panicked) Error() string     { return "observe: fn panicked or left by runtime.Goexit" }
func (panicked) ErrorType() string { return "panic" }

// Attach tells o of the policy p. The observer holds p only weakly: once p is unreachable, Source.Live reports false and
// the probe is detached. So neither s nor live may lead to p; live, if not nil, gets it as an argument and fills one value
// for each row of s.Rows after the first len(s.Counts).
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

// Discard is the Observer that ignores everything.
var Discard Observer = discard{}

type discard struct{}

func (discard) Observe(context.Context, Event) {}
func (discard) Attach(Source) Probe            { return noProbe{} }

type noProbe struct{}

func (noProbe) Enabled(context.Context) bool               { return false }
func (noProbe) Record(context.Context, int, time.Duration) {}
func (noProbe) Detach()                                    {}

// Func is an [Observer] of events alone.
type Func func(ctx context.Context, e Event)

// Observe calls f.
func (f Func) Observe(ctx context.Context, e Event) { f(ctx, e) }

// Attach does nothing.
func (f Func) Attach(Source) Probe { return noProbe{} }
