// Package retry repeats calls that failed, without making an outage worse.
//
// [Retry] makes further attempts after a failure, [Hedge] beside an attempt that is slow. Both spend from a [Budget], which
// limits what they add to the traffic to a share of it.
package retry

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/internal/instant"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// Retry is a [policy.Policy] that runs fn again after a failure, up to a number of attempts, with a wait before each.
//
// It gives up early rather than waste work: on an error that is not retryable, such as a refusal by a circuit breaker
// further in, on a wait that the deadline would cut short, and when its [Budget] is spent.
//
// A failure that it gives up on comes back in an [ExhaustedError], also where Attempts is 1. What is not retryable comes
// back as it is, without the mark of backoff.Permanent; but a refusal or a cancellation that ends a call which had really
// failed before becomes the Reason of an ExhaustedError, beside that failure.
//
// Attempts of a Retry inside another one would multiply. So from the outer one's second attempt on the inner one makes a
// single attempt, and the outer one takes an inner ExhaustedError for final. Config.Nested on the inner one lifts both.
//
// A Retry is safe for concurrent use; make it with [New].
type Retry struct {
	cfg   Config
	once  sync.Once
	alone *boundRetry // for calls outside any pipeline
}

// New returns a Retry. It panics if cfg is not valid.
func New(cfg Config) *Retry {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	return &Retry{cfg: cfg.withDefaults()}
}

// Do runs fn until it succeeds or there is a reason to stop. From the second attempt on, [policy.Attempt] tells fn which one
// it is.
func (r *Retry) Do(ctx context.Context, fn policy.Func) error {
	r.once.Do(func() { r.alone = bindRetry(r.cfg, "retry", otelx.Default()) })
	return r.alone.Do(ctx, fn)
}

// Name returns the name that Config gave it, or "".
func (r *Retry) Name() string { return r.cfg.Name }

// String returns the retry with its number of attempts.
func (r *Retry) String() string {
	if r.cfg.Attempts < 0 {
		return "retry(unlimited)"
	}
	return "retry(" + strconv.Itoa(r.cfg.Attempts) + ")"
}

// Bind returns the retry as a pipeline of that name runs it.
func (r *Retry) Bind(name string, o observe.Observer) policy.Policy {
	return bindRetry(r.cfg, name, o)
}

// boundRetry is a Retry that has a name to report under.
type boundRetry struct {
	Config   // with defaults
	name     string
	observer observe.Observer
	spanner  observe.Spanner // nil if the observer does not trace
	probe    observe.Probe
	counts   []atomic.Int64
	deposits bool // calls in the budget
}

func bindRetry(cfg Config, name string, o observe.Observer) *boundRetry {
	r := &boundRetry{Config: cfg, name: name, observer: o, counts: make([]atomic.Int64, len(retryRows)), deposits: true}
	if cfg.Name != "" {
		r.name = cfg.Name
	}
	r.observer = pick(cfg.Observer, o)
	r.spanner, _ = r.observer.(observe.Spanner)
	r.Budget.bind(r.name, r.observer)
	r.probe = observe.Attach(r.observer, r, observe.Source{
		Policy: "retry", Name: r.name, Rows: retryRows, Counts: r.counts, Durations: retryDurations,
	}, nil)
	return r
}

// pick returns a policy's own observer, else that of what binds it, else OpenTelemetry.
func pick(own, binder observe.Observer) observe.Observer {
	switch {
	case own != nil:
		return own
	case binder != nil:
		return binder
	}
	return otelx.Default()
}

func (r *boundRetry) SharedBudget() any {
	if r.Budget == Unlimited {
		return nil
	}
	return r.Budget
}

func (r *boundRetry) LeaveDeposits() { r.deposits = false }

func (r *boundRetry) Do(ctx context.Context, fn policy.Func) error {
	check("retry", ctx, fn)
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.DoAt(ctx, call.Instant(instant.Now()), fn)
}

// DoAt is all there is to a call that succeeds at once; the rest is retried's.
func (r *boundRetry) DoAt(ctx context.Context, now call.Instant, fn policy.Func) error {
	if r.deposits {
		r.Budget.deposit(time.Duration(now))
	}
	returned := false
	defer func() {
		if !returned {
			r.counts[originalFailure].Add(1)
			r.counts[callNotRetryable].Add(1)
		}
	}()
	err := r.first(ctx, fn)
	returned = true
	if err == nil {
		r.counts[originalSuccess].Add(1)
		r.counts[callFirstTry].Add(1)
		return nil
	}
	return r.failed(ctx, now, fn, err)
}

// first makes the first attempt. It carries no mark, which would cost an allocation on every call, but where an outer
// retry's would be taken for it.
func (r *boundRetry) first(ctx context.Context, fn policy.Func) error {
	if !r.Nested && r.spanner == nil {
		return fn(ctx)
	}
	if insideRetry(ctx) {
		if !r.Nested {
			return fn(ctx) // stands aside: the attempt is the outer retry's, and so is its span
		}
		ctx = &call.Attempt{Context: ctx, Number: 1, Start: call.Start(ctx), Retry: true}
	}
	return traced(ctx, r.spanner, 1, fn)
}

// traced runs fn in a span of its own, if there is a spanner.
func traced(ctx context.Context, s observe.Spanner, attempt int, fn policy.Func) error {
	if s == nil {
		return fn(ctx)
	}
	err := observe.ErrPanicked
	spanned, end := s.Start(ctx, call.Pipeline(ctx), attempt)
	defer func() { end(err) }()
	err = fn(spanned)
	return err
}

// check panics for a misuse of Do.
func check(who string, ctx context.Context, fn policy.Func) {
	if ctx == nil {
		panic("retry: " + who + ": nil context")
	}
	if fn == nil {
		panic("retry: " + who + ": nil fn")
	}
}
