package retry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchgear-go/switchgear/internal/errtree"
	"github.com/switchgear-go/switchgear/internal/instant"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// HedgeConfig configures a [Hedge]. Exactly one of Delay and Percentile must be set.
type HedgeConfig struct {
	// Name is what the hedge reports under. If empty, the name of its pipeline, or "hedge" if it is used alone.
	Name string

	// Delay is how long an attempt runs before the next one is started beside it.
	Delay time.Duration

	// Percentile derives that delay from recent latencies: with 0.95 the slowest 5% of the calls are hedged. It is above 0
	// and below 1. Latencies are taken from the last 20 to 30 seconds; with fewer than 20 successes in that time nothing is
	// hedged.
	Percentile float64

	// MaxHedges is how many attempts may be started beside the first one. If zero, 1.
	MaxHedges int

	// Retryable reports whether another attempt may be started after one that failed with err; ctx is the call's. Once it
	// returns false no more are started. If nil, [DefaultRetryable].
	Retryable func(ctx context.Context, err error) bool

	// Budget limits hedges to a share of the calls. Policies with the same Budget share its limit. If nil, the hedge has a
	// budget of its own with the defaults of [BudgetConfig]. Use [Unlimited] for no limit.
	Budget *Budget

	// Observer is told of hedges. If nil, the pipeline's observer, or OpenTelemetry ([otelx.Default]) if the hedge is used
	// alone.
	Observer observe.Observer
}

// Validate returns an error that names each invalid field, its value and what is allowed; nil if c is valid.
func (c HedgeConfig) Validate() error {
	var faults []error
	if c.Delay < 0 {
		faults = append(faults, fmt.Errorf("retry: HedgeConfig.Delay is %v, must be above 0, or 0 with a Percentile", c.Delay))
	}
	if math.IsNaN(c.Percentile) || c.Percentile < 0 || c.Percentile >= 1 {
		faults = append(faults, fmt.Errorf("retry: HedgeConfig.Percentile is %v, must be above 0 and below 1, or 0 with a Delay", c.Percentile))
	}
	if (c.Delay == 0) == (c.Percentile == 0) {
		faults = append(faults, fmt.Errorf("retry: HedgeConfig.Delay is %v and Percentile %v, one of them must be set", c.Delay, c.Percentile))
	}
	if c.MaxHedges < 0 {
		faults = append(faults, fmt.Errorf("retry: HedgeConfig.MaxHedges is %d, must be 0 (1) or more", c.MaxHedges))
	}
	faults = append(faults, c.Budget.validate())
	return errors.Join(faults...)
}

func (c HedgeConfig) withDefaults() HedgeConfig {
	if c.MaxHedges == 0 {
		c.MaxHedges = 1
	}
	if c.Retryable == nil {
		c.Retryable = DefaultRetryable
	}
	if c.Budget == nil {
		c.Budget = NewBudget("", BudgetConfig{})
	}
	return c
}

// ErrHedgeLost is the [context.Cause] of an attempt that was cancelled because another attempt won.
var ErrHedgeLost error = errtree.Reason("retry: another attempt of the hedge was first")

// Hedge is a [policy.Policy] that starts a second attempt beside a slow one and takes the first success. It shortens the
// tail of the latencies for a little more traffic, which its [Budget] limits. fn must be safe to run twice at the same time.
//
// The next attempt starts when the one before has run for the delay, or at once if one fails earlier. The first success is
// returned immediately, as is an error marked with [policy.Healthy]. The other attempts are then cancelled with the cause
// [ErrHedgeLost]. What they return is dropped; under [policy.Get], their values are closed. If all attempts fail, Do returns
// their errors joined, the first attempt's first, and [policy.Get] the first attempt's value.
//
// Attempts run on goroutines of their own. Only while a Percentile lacks successes does the single attempt run on the
// caller's. If an attempt panics or calls [runtime.Goexit], Do does the same on the caller's goroutine, with the same value.
// A panic after Do has returned is recovered and reported as an event.
//
// Once the caller's context is done no attempt starts, and Do waits for those that run. When Do returns, every attempt's
// context is cancelled, the winner's too. So fn must be finished with it: a response's body has to be read inside fn, unless
// an adapter such as httpx takes care of it.
//
// Create a Hedge with [NewHedge]; it is safe for concurrent use.
type Hedge struct {
	cfg   HedgeConfig
	once  sync.Once
	alone *boundHedge // for calls outside any pipeline
}

// NewHedge returns a Hedge. It panics with the error of [HedgeConfig.Validate] if cfg is not valid.
func NewHedge(cfg HedgeConfig) *Hedge {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	return &Hedge{cfg: cfg.withDefaults()}
}

// Do runs fn, starting more runs of it while they are slow, until one succeeds or all have failed.
func (h *Hedge) Do(ctx context.Context, fn policy.Func) error {
	h.once.Do(func() { h.alone = bindHedge(h.cfg, "hedge", otelx.Default()) })
	return h.alone.Do(ctx, fn)
}

// Name returns HedgeConfig.Name.
func (h *Hedge) Name() string { return h.cfg.Name }

// String returns the hedge with its delay or percentile, such as hedge(50ms) or hedge(p95).
func (h *Hedge) String() string {
	if h.cfg.Delay > 0 {
		return "hedge(" + h.cfg.Delay.String() + ")"
	}
	return "hedge(p" + strconv.FormatFloat(100*h.cfg.Percentile, 'g', 6, 64) + ")"
}

// Bind makes Hedge a [policy.Binder], for [policy.NewPipeline]. Each pipeline learns latencies of its own.
func (h *Hedge) Bind(name string, o observe.Observer) policy.Policy {
	return bindHedge(h.cfg, name, o)
}

// boundHedge is a Hedge that has a name to report under.
type boundHedge struct {
	HedgeConfig // with defaults
	name        string
	observer    observe.Observer
	spanner     observe.Spanner // nil if the observer does not trace
	counts      []atomic.Int64
	deposits    bool       // it counts calls in the budget; false if a policy outside it in the pipeline does
	latencies   *latencies // nil where Delay is set
}

func bindHedge(cfg HedgeConfig, name string, o observe.Observer) *boundHedge {
	h := &boundHedge{HedgeConfig: cfg, name: name, counts: make([]atomic.Int64, len(hedgeRows)), deposits: true}
	if cfg.Name != "" {
		h.name = cfg.Name
	}
	h.observer = pick(cfg.Observer, o)
	h.spanner, _ = h.observer.(observe.Spanner)
	if cfg.Percentile > 0 {
		h.latencies = newLatencies()
	}
	h.Budget.bind(h.name, h.observer)
	observe.Attach(h.observer, h, observe.Source{Policy: "hedge", Name: h.name, Rows: hedgeRows, Counts: h.counts}, nil)
	return h
}

func (h *boundHedge) SharedBudget() any {
	if h.Budget == Unlimited {
		return nil
	}
	return h.Budget
}

func (h *boundHedge) LeaveDeposits() { h.deposits = false }

func (h *boundHedge) Do(ctx context.Context, fn policy.Func) error {
	check("hedge", ctx, fn)
	if err := ctx.Err(); err != nil {
		return err
	}
	now := instant.Now()
	if h.deposits {
		h.Budget.deposit(now)
	}
	delay := h.Delay
	if h.latencies != nil {
		var learned bool
		if delay, learned = h.latencies.percentile(now, h.Percentile); !learned {
			return h.learn(ctx, now, fn)
		}
	}
	r := &race{boundHedge: h, ctx: ctx, fn: fn, wake: make(chan struct{}, 1)}
	defer r.close()
	return r.run(now, delay)
}

// learn runs fn once, on the caller's goroutine, and records how long it takes.
func (h *boundHedge) learn(ctx context.Context, now time.Duration, fn policy.Func) error {
	own, cancel := context.WithCancelCause(ctx)
	row := originalFailed
	defer func() {
		cancel(nil)
		h.counts[row].Add(1)
	}()
	err := traced(own, h.spanner, 1, fn)
	row = attemptOutcome(ctx, err, originalWon, originalFailed, originalLost)
	if row == originalWon {
		end := instant.Now()
		h.latencies.record(end, end-now, true)
	}
	return err
}
