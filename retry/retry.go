// Package retry repeats failed calls without making an outage worse.
//
// A [Retry] makes another attempt after one that failed. A [Hedge] makes another attempt beside one that is slow. Both take
// their extra attempts from a [Budget], which limits them to a share of the traffic.
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

// Retry is a [policy.Policy] that runs fn again after a failure, up to a number of attempts, with a wait before each retry.
//
// It gives up early if another attempt would be wasted: on an error that is not retryable, such as the refusal of an open
// circuit breaker inside it; on a wait that would not end before ctx's deadline; and when its [Budget] is spent.
//
// If it gives up on a retryable failure, Do returns an [ExhaustedError], even with Attempts set to 1. An error that is not
// retryable is returned as it is, except that the mark of [backoff.Permanent] is removed. A refusal or a cancellation does
// not hide an earlier failure of the same call: it becomes the Reason of an ExhaustedError that holds that failure.
//
// Attempts of nested retries do not multiply: from the outer retry's second attempt on, an inner retry makes a single
// attempt; and an outer retry does not repeat a call on which an inner one gave up. Config.Nested on the inner retry turns
// both off.
//
// Create a Retry with [New]; it is safe for concurrent use.
type Retry struct {
	cfg   Config
	once  sync.Once
	alone *boundRetry // for calls outside any pipeline
}

// New returns a Retry. It panics with the error of [Config.Validate] if cfg is not valid.
func New(cfg Config) *Retry {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	return &Retry{cfg: cfg.withDefaults()}
}

// Do runs fn until it succeeds or the retry gives up. [policy.Attempt] returns the number of the attempt to fn.
func (r *Retry) Do(ctx context.Context, fn policy.Func) error {
	r.once.Do(func() { r.alone = bindRetry(r.cfg, "retry", otelx.Default()) })
	return r.alone.Do(ctx, fn)
}

// Name returns Config.Name.
func (r *Retry) Name() string { return r.cfg.Name }

// String returns the retry with its number of attempts, such as retry(3) or retry(unlimited).
func (r *Retry) String() string {
	if r.cfg.Attempts < 0 {
		return "retry(unlimited)"
	}
	return "retry(" + strconv.Itoa(r.cfg.Attempts) + ")"
}

// Bind makes Retry a [policy.Binder], for [policy.NewPipeline].
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
	deposits bool // it counts calls in the budget; false if a policy outside it in the pipeline does
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

// pick returns the first observer that is not nil: a policy's own, its pipeline's, OpenTelemetry.
func pick(own, pipelines observe.Observer) observe.Observer {
	switch {
	case own != nil:
		return own
	case pipelines != nil:
		return pipelines
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

// DoAt handles the calls that succeed at once, without an allocation. A call whose first attempt fails goes on in retried.
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

// first makes the first attempt. Marking its context as an attempt would cost an allocation on every call, so it does that
// only where fn would otherwise see the mark of an outer retry.
func (r *boundRetry) first(ctx context.Context, fn policy.Func) error {
	if !r.Nested && r.spanner == nil {
		return fn(ctx)
	}
	if insideRetry(ctx) {
		if !r.Nested {
			return fn(ctx) // the only attempt in here: the outer retry has made its span
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
	defer func() { call.EndSpan(end, err) }()
	err = fn(spanned)
	return err
}

// check panics if Do was called with a nil context or a nil fn.
func check(who string, ctx context.Context, fn policy.Func) {
	if ctx == nil {
		panic("retry: " + who + ": nil context")
	}
	if fn == nil {
		panic("retry: " + who + ": nil fn")
	}
}
