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

// HedgeConfig configures a [Hedge]. Either Delay or Percentile is needed.
type HedgeConfig struct {
	// Name is what the hedge reports under. If empty, its pipeline's name; hedge, if it is used alone.
	Name string

	// Delay is how long an attempt runs before another one joins it.
	Delay time.Duration

	// Percentile sets that time to a share of the recent latencies instead, such as 0.95: the slowest 5% are hedged. It is
	// learned from the last 20 to 30 seconds and needs 20 successes in them; while there are fewer, nothing is hedged.
	Percentile float64

	// MaxHedges is how many attempts may join the first one. If zero, 1.
	MaxHedges int

	// Retryable reports whether another attempt may follow one that failed with err; ctx is the call's. If not, no more
	// are started. If nil, [DefaultRetryable].
	Retryable func(ctx context.Context, err error) bool

	// Budget limits hedges to a share of the calls, together with all that share it. If nil, the hedge has one of its own,
	// with the defaults of [BudgetConfig]. [Unlimited] is none.
	Budget *Budget

	// Observer is told what the hedge does. If nil, its pipeline's; OpenTelemetry (otelx.Default), if it is used alone.
	Observer observe.Observer
}

// Validate returns an error that names each field with a value that is not allowed.
func (c HedgeConfig) Validate() error {
	var faults []error
	if c.Delay < 0 {
		faults = append(faults, fmt.Errorf("retry: hedge: Delay is %v, must be above 0, or 0 with a Percentile", c.Delay))
	}
	if math.IsNaN(c.Percentile) || c.Percentile < 0 || c.Percentile >= 1 {
		faults = append(faults, fmt.Errorf("retry: hedge: Percentile is %v, must be above 0 and below 1, or 0 with a Delay", c.Percentile))
	}
	if (c.Delay == 0) == (c.Percentile == 0) {
		faults = append(faults, fmt.Errorf("retry: hedge: Delay is %v and Percentile %v, one of them must be set", c.Delay, c.Percentile))
	}
	if c.MaxHedges < 0 {
		faults = append(faults, fmt.Errorf("retry: hedge: MaxHedges is %d, must be 0 (1) or more", c.MaxHedges))
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

// ErrHedgeLost is the cause with which the contexts of attempts are cancelled that another one has overtaken.
var ErrHedgeLost error = errtree.Reason("retry: another attempt of the hedge was first")

// Hedge is a [policy.Policy] that starts a second attempt beside one that is slow, and takes the first success. It trades a
// little more traffic, which its [Budget] limits, for a shorter tail of latencies. fn must be safe to run twice at once.
//
// When an attempt has run for the delay, the next one joins it; when one fails before that, the next one starts at once.
// The first success returns immediately; so does an answer marked [policy.Healthy]. The attempts that lost are cancelled
// with the cause [ErrHedgeLost], and what they return is dropped: under [policy.Get] their values are closed. When all
// attempts fail, their errors return joined, the first attempt's first, beside the first attempt's value.
//
// Attempts run on goroutines of their own, so that a slow first one does not hold the call up; while a Percentile is being
// learned there is only one, and it runs on the caller's. A panic of an attempt, or its [runtime.Goexit], reaches the
// caller's goroutine with the same value; a panic after Do has returned is recovered, and told as an event.
//
// Once the caller's context is done nothing new starts, and Do waits for what runs, as fn alone would. Every attempt's
// context is done once Do has returned, the winner's too: fn must be through with it, so a response's body has to be read
// inside fn, unless an adapter sees to it.
//
// A Hedge is safe for concurrent use; make it with [NewHedge].
type Hedge struct {
	cfg   HedgeConfig
	once  sync.Once
	alone *boundHedge // for calls outside any pipeline
}

// NewHedge returns a Hedge. It panics if cfg is not valid.
func NewHedge(cfg HedgeConfig) *Hedge {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	return &Hedge{cfg: cfg.withDefaults()}
}

// Do runs fn, and again beside it if it is slow, until one run succeeds or all have failed.
func (h *Hedge) Do(ctx context.Context, fn policy.Func) error {
	h.once.Do(func() { h.alone = bindHedge(h.cfg, "hedge", otelx.Default()) })
	return h.alone.Do(ctx, fn)
}

// Name returns the name that HedgeConfig gave it, or "".
func (h *Hedge) Name() string { return h.cfg.Name }

// String returns the hedge with its delay or percentile.
func (h *Hedge) String() string {
	if h.cfg.Delay > 0 {
		return "hedge(" + h.cfg.Delay.String() + ")"
	}
	return "hedge(p" + strconv.FormatFloat(100*h.cfg.Percentile, 'g', 6, 64) + ")"
}

// Bind returns the hedge as a pipeline of that name runs it. Each pipeline has latencies of its own.
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
	deposits    bool       // calls in the budget
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

// learn runs fn once, to see how long it takes.
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
