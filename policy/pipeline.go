package policy

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/internal/errtree"
	"github.com/switchgear-go/switchgear/internal/instant"
	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// Pipeline is a [Policy] that runs a function under several others, the outermost first, and measures the whole call. Create
// one per kind of call with [NewPipeline] and keep it: creating one is expensive compared to a call. It is safe for
// concurrent use.
type Pipeline struct {
	name     string
	given    []Policy // as passed to NewPipeline
	bound    []Policy // as they run: the result of Bind for Binders
	chain    Func     // runs bound, the outermost first, around innermost
	observer observe.Observer
	spanner  observe.Spanner // nil if the observer does not trace
	probe    observe.Probe
	counts   []atomic.Int64
}

// NewPipeline returns a pipeline of policies, outermost first. Nil policies are skipped, so an optional one may be left out;
// with none at all, Do just runs fn.
//
// Policies without a name of their own (timeouts, retries, fallbacks and hedges) report under the pipeline's name; the second
// one of the same type reports under name#2, and so on. The pipeline reports to OpenTelemetry; [Pipeline.Observed] changes
// that.
func NewPipeline(name string, policies ...Policy) *Pipeline {
	given := make([]Policy, 0, len(policies))
	for _, p := range policies {
		if !isNil(p) {
			given = append(given, p)
		}
	}
	return compile(name, given, otelx.Default())
}

// Observed returns a copy of the pipeline that reports to o; if o is nil, to OpenTelemetry. So do its timeouts, retries,
// fallbacks and hedges, unless they have an Observer of their own. Shared policies, such as breakers, keep their observer.
func (p *Pipeline) Observed(o observe.Observer) *Pipeline {
	if o == nil {
		o = otelx.Default()
	}
	return compile(p.name, p.given, o)
}

// compile builds the chain of next functions once, so that a call allocates no closures: what differs from call to call
// travels in its context.
func compile(name string, given []Policy, o observe.Observer) *Pipeline {
	p := &Pipeline{
		name:     name,
		given:    given,
		bound:    bind(name, given, o),
		observer: o,
		counts:   make([]atomic.Int64, len(pipelineRows)),
	}
	p.spanner, _ = o.(observe.Spanner)
	p.chain = p.innermost
	timed := 0 // how many of the outermost policies, without a gap, can be given the start of the call
	for timed < len(p.bound) {
		if _, ok := p.bound[timed].(call.Timed); !ok {
			break
		}
		timed++
	}
	for i := len(p.bound) - 1; i >= 0; i-- {
		q, next := p.bound[i], p.chain
		if i < timed {
			q := q.(call.Timed) // the loop above has checked that
			p.chain = func(ctx context.Context) error { return q.DoAt(ctx, call.Start(ctx), next) }
		} else {
			p.chain = func(ctx context.Context) error { return q.Do(ctx, next) }
		}
	}
	p.probe = observe.Attach(o, p, observe.Source{
		Policy: "pipeline", Name: name, Rows: pipelineRows, Counts: p.counts, Durations: pipelineDurations,
	}, nil)
	return p
}

// Do runs fn under the policies and returns the outermost one's error. If ctx is already done, Do returns ctx's error and
// counts nothing.
func (p *Pipeline) Do(ctx context.Context, fn Func) error {
	if fn == nil {
		panic("policy: pipeline " + p.name + ": nil fn")
	}
	return p.do(ctx, fn, nil)
}

// do is Do, which runs get in place of fn if get is not nil.
func (p *Pipeline) do(ctx context.Context, fn Func, get runner) (err error) {
	if ctx == nil {
		panic("policy: pipeline " + p.name + ": nil context")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &pipelineCall{Node: call.Node{Context: ctx, Pipeline: p.name}, pipeline: p, fn: fn, get: get, start: call.Instant(instant.Now())}
	p.counts[rowActive].Add(1)
	returned := false
	defer func() { p.settle(c, err, returned) }()
	if p.spanner != nil {
		err = p.traced(c)
	} else {
		err = p.chain(c)
	}
	returned = true
	return err
}

func (p *Pipeline) settle(c *pipelineCall, err error, returned bool) {
	p.counts[rowActive].Add(-1)
	defer call.Hush(returned)
	if p.probe.Enabled(c.Context) {
		p.probe.Record(c.Context, durationRow(c.Context, err, returned), instant.Now()-time.Duration(c.start))
	}
}

func (p *Pipeline) traced(c *pipelineCall) error {
	err := observe.ErrPanicked
	ctx, end := p.spanner.Start(c, p.name, 0)
	defer func() { call.EndSpan(end, err) }()
	err = p.chain(ctx)
	return err
}

// innermost runs the function of the call that ctx belongs to.
func (p *Pipeline) innermost(ctx context.Context) error {
	c, ok := ctx.Value(p).(*pipelineCall)
	if !ok {
		panic("policy: pipeline " + p.name + ": a policy ran its function under a context that is not derived from its own")
	}
	if c.get != nil {
		return c.get.run(ctx)
	}
	return c.fn(ctx)
}

// Name returns the pipeline's name.
func (p *Pipeline) Name() string { return p.name }

// String returns the pipeline's name and its policies, such as "charge: timeout(5s) → retry(3) → breaker(payments-api)". A
// policy without a String method is described by its Go type.
func (p *Pipeline) String() string {
	layers := make([]string, len(p.given))
	for i, q := range p.given {
		layers[i] = describe(q)
	}
	return p.name + ": " + strings.Join(layers, " → ")
}

// InUse reports whether a call runs in the pipeline, or one of its policies has a method InUse() bool that returns true. A
// [Group] then keeps the pipeline.
func (p *Pipeline) InUse() bool {
	if p.counts[rowActive].Load() > 0 {
		return true
	}
	for _, q := range p.bound {
		if q, ok := q.(interface{ InUse() bool }); ok && q.InUse() {
			return true
		}
	}
	return false
}

func describe(p Policy) string {
	if s, ok := p.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("%T", p)
}

// isNil reports whether p is nil or holds a nil pointer or function, as an optional policy that was left out may.
func isNil(p Policy) bool {
	v := reflect.ValueOf(p)
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		return v.IsNil()
	}
	return false
}

// pipelineCall is the context of one call, with what the compiled chain needs. Its context key is the pipeline itself, so
// that nested pipelines do not find each other's calls.
type pipelineCall struct {
	call.Node // with the caller's context
	pipeline  *Pipeline
	fn        Func
	get       runner
	start     call.Instant
}

func (c *pipelineCall) Value(key any) any {
	switch key := key.(type) {
	case *Pipeline:
		if key == c.pipeline {
			return c
		}
	case call.StartKey:
		return &c.start
	case call.NodeKey:
		return &c.Node
	}
	return c.Context.Value(key)
}

func (c *pipelineCall) Life() (context.Context, call.Instant) { return c.Context, call.Never }

const rowActive = 0

var pipelineRows = []observe.Row{rowActive: {Metric: semconv.PipelineActive}}

// The rows of the duration histogram are success, then each of pipelineOutcomes with each error type.
var (
	pipelineOutcomes  = [...]string{semconv.OutcomeCanceled, semconv.OutcomeRejected, semconv.OutcomeTimeout, semconv.OutcomeFailure}
	pipelineDurations = durationRows()
)

func durationRows() []observe.Row {
	rows := []observe.Row{{Metric: semconv.PipelineDuration, Attrs: []observe.Attr{{Key: semconv.CallOutcome, Value: semconv.OutcomeSuccess}}}}
	for _, outcome := range pipelineOutcomes {
		for _, kind := range errtree.Types {
			rows = append(rows, observe.Row{Metric: semconv.PipelineDuration, Attrs: []observe.Attr{
				{Key: semconv.CallOutcome, Value: outcome},
				{Key: semconv.ErrorType, Value: kind},
			}})
		}
	}
	return rows
}

// durationRow returns the row of a call's duration.
func durationRow(ctx context.Context, err error, returned bool) int {
	outcome, kind := semconv.OutcomeFailure, "panic"
	if returned {
		sorted := errtree.Sort(err)
		if sorted == errtree.None || sorted == errtree.Healthy {
			return 0 // before errtree.Type, which allocates
		}
		kind = errtree.Type(err)
		switch {
		case ctx.Err() == context.Canceled:
			outcome = semconv.OutcomeCanceled
		case sorted == errtree.Refusal:
			outcome = semconv.OutcomeRejected
		case errors.Is(err, context.DeadlineExceeded):
			outcome = semconv.OutcomeTimeout
		}
	}
	o, t := slices.Index(pipelineOutcomes[:], outcome), slices.Index(errtree.Types[:], kind)
	return 1 + o*len(errtree.Types) + t
}
