package policy

import (
	"context"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/internal/errtree"
	"github.com/switchgear-go/switchgear/policy/observe"
)

func trace(name string, log *[]string) Policy {
	return PolicyFunc(func(ctx context.Context, fn Func) error {
		*log = append(*log, name+"(")
		defer func() { *log = append(*log, ")"+name) }()
		return fn(ctx)
	})
}

func TestAPipelineRunsItsPoliciesOutermostFirst(t *testing.T) {
	var log []string
	var none *timeout
	p := NewPipeline("charge", nil, trace("a", &log), none, PolicyFunc(nil), trace("b", &log))
	require.NoError(t, p.Do(t.Context(), func(context.Context) error { log = append(log, "fn"); return nil }))
	assert.Equal(t, []string{"a(", "b(", "fn", ")b", ")a"}, log, "nil policies are skipped")
	assert.Equal(t, "charge", p.Name())
	assert.Equal(t, "charge: policy.PolicyFunc → policy.PolicyFunc", p.String())
	assert.Equal(t, "p: timeout(5s) → fallback", NewPipeline("p", Timeout(5*time.Second), Fallback(func(context.Context, error) error { return nil })).String())
}

func TestPipelinesNestInThemselvesAndEachOther(t *testing.T) {
	var log []string
	a := NewPipeline("a", trace("a", &log))
	b := NewPipeline("b", a, trace("b", &log), a)
	inFn := func(ctx context.Context) error {
		if len(log) < 20 && ctx.Value(parityKey{}) == nil {
			return a.Do(context.WithValue(ctx, parityKey{}, 1), func(context.Context) error { log = append(log, "inner fn"); return io.EOF })
		}
		return nil
	}
	assert.Equal(t, io.EOF, NewPipeline("c", b, b).Do(t.Context(), inFn))
	assert.Equal(t, []string{
		"a(", "b(", "a(", "a(", "b(", "a(", "a(", "inner fn", ")a", ")a", ")b", ")a", ")a", ")b", ")a",
	}, log)
}

func TestAContextThatIsNotDerivedIsAPanicThatNamesThePipeline(t *testing.T) {
	lost := PolicyFunc(func(_ context.Context, fn Func) error { return fn(context.Background()) })
	const want = "a policy ran its function under a context that is not derived from its own"
	assert.PanicsWithValue(t, "policy: pipeline charge: "+want, func() {
		_ = NewPipeline("charge", lost).Do(t.Context(), func(context.Context) error { return nil })
	})
	assert.PanicsWithValue(t, "policy: Get: "+want, func() {
		_, _ = Get(t.Context(), lost, func(context.Context) (int, error) { return 0, nil })
	})
}

// Panics and Goexit must look the same whatever is around fn (kitex#942).
func TestPanicsAndGoexitPassThroughEverySubset(t *testing.T) {
	all := []Policy{Timeout(time.Hour), Fallback(func(context.Context, error) error { return nil }), NewPipeline("inner", Timeout(time.Minute)), PolicyFunc(direct)}
	for set := range 1 << len(all) {
		var policies []Policy
		for i, p := range all {
			if set>>i&1 == 1 {
				policies = append(policies, p)
			}
		}
		p := NewPipeline("p", policies...)
		value := fmt.Errorf("set %d", set)
		assert.PanicsWithValue(t, value, func() { _ = p.Do(t.Context(), func(context.Context) error { panic(value) }) })
		returned, done := false, make(chan struct{})
		go func() {
			defer close(done)
			_ = p.Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
			returned = true
		}()
		<-done
		assert.False(t, returned)
		assert.Zero(t, p.counts[rowActive].Load())
		assert.False(t, p.InUse())
	}
}

func TestAPipelineIsInUseWhileACallRunsOrAPolicySaysSo(t *testing.T) {
	p := NewPipeline("p")
	require.NoError(t, p.Do(t.Context(), func(context.Context) error { assert.True(t, p.InUse()); return nil }))
	assert.False(t, p.InUse())
	assert.True(t, NewPipeline("q", busy{}).InUse())
}

type busy struct{}

func (busy) Do(ctx context.Context, fn Func) error { return fn(ctx) }
func (busy) InUse() bool                           { return true }

// named records what NewPipeline binds it to.
type named struct {
	name  string
	bound *[]string
}

func (n named) Do(ctx context.Context, fn Func) error { return fn(ctx) }
func (n named) Name() string                          { return n.name }
func (n named) Bind(name string, _ observe.Observer) Policy {
	*n.bound = append(*n.bound, name)
	return n
}

func TestUnnamedPoliciesReportUnderThePipelinesName(t *testing.T) {
	var bound []string
	n := named{bound: &bound}
	p := NewPipeline("charge", n, Timeout(1), n, Timeout(2), n)
	assert.Equal(t, []string{"charge", "charge#2", "charge#3"}, bound)
	for i, want := range map[int]string{1: "charge", 3: "charge#2"} {
		assert.Equal(t, want, p.bound[i].(*boundTimeout).name)
	}
	seen := &events{}
	require.Error(t, p.Observed(seen).Do(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }))
	require.NotEmpty(t, seen.all)
	assert.Equal(t, "charge", seen.all[0].Pipeline)
}

func TestTheStartOfACallIsHandedToPoliciesThatNothingHoldsUp(t *testing.T) {
	var at []call.Instant
	timed := timedPolicy{&at}
	p := NewPipeline("p", timed, Timeout(time.Hour), timed, PolicyFunc(direct), timed)
	require.NoError(t, p.Do(t.Context(), func(context.Context) error { return nil }))
	require.Len(t, at, 3)
	assert.Equal(t, at[0], at[1])
	assert.Zero(t, at[2], "behind a stranger, who may have waited, the clock is read again")
}

type timedPolicy struct{ at *[]call.Instant }

func (p timedPolicy) Do(ctx context.Context, fn Func) error { return p.DoAt(ctx, 0, fn) }
func (p timedPolicy) DoAt(ctx context.Context, now call.Instant, fn func(context.Context) error) error {
	*p.at = append(*p.at, now)
	return fn(ctx)
}

func TestAPipelineCostsTwoAllocationsWithATimeout(t *testing.T) {
	p := NewPipeline("p", Timeout(time.Hour), Timeout(time.Hour))
	fn := func(context.Context) error { return nil }
	get := func(context.Context) (string, error) { return "a value", nil }
	ctx := t.Context()
	assert.Equal(t, 3, int(testing.AllocsPerRun(100, func() { _ = p.Do(ctx, fn) })), "one for the call, one for each timeout")
	assert.Equal(t, 4, int(testing.AllocsPerRun(100, func() { _, _ = Get(ctx, p, get) })), "one more for the value")
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { _, _ = Get(ctx, PolicyFunc(direct), get) }), 2.0)
}

func TestDurationsAreRecordedUnderTheirOutcome(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	refused := Rejection("circuit_breaker", "b", errtree.Reason("open"), time.Time{}, nil)
	for _, tt := range []struct {
		ctx      context.Context
		err      error
		panicked bool
		outcome  string
		kind     string
	}{
		{err: nil, outcome: "success"},
		{err: Healthy(io.EOF), outcome: "success"},
		{ctx: canceled, err: Healthy(io.EOF), outcome: "success"},
		{ctx: canceled, err: io.EOF, outcome: "canceled", kind: "_OTHER"},
		{ctx: canceled, err: context.Canceled, outcome: "canceled", kind: "canceled"},
		{err: refused, outcome: "rejected", kind: "rejected"},
		{err: fmt.Errorf("wrapped: %w", refused), outcome: "rejected", kind: "rejected"},
		{err: errors.Join(refused, io.EOF), outcome: "failure", kind: "rejected"},
		{err: context.DeadlineExceeded, outcome: "timeout", kind: "timeout"},
		{err: &TimeoutError{Err: refused}, outcome: "timeout", kind: "timeout"},
		{err: statusError("503"), outcome: "failure", kind: "503"},
		{err: statusError("418"), outcome: "failure", kind: "_OTHER"},
		{err: io.EOF, outcome: "failure", kind: "_OTHER"},
		{panicked: true, outcome: "failure", kind: "panic"},
	} {
		ctx := tt.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		row := pipelineDurations[durationRow(ctx, tt.err, !tt.panicked)]
		assert.Equal(t, tt.outcome, row.Attrs[0].Value, "%v", tt.err)
		if tt.kind == "" {
			assert.Len(t, row.Attrs, 1, "%v", tt.err)
		} else {
			assert.Equal(t, tt.kind, row.Attrs[1].Value, "%v", tt.err)
		}
	}
}

type statusError string

func (e statusError) Error() string     { return string(e) }
func (e statusError) ErrorType() string { return string(e) }

// The golden table of docs/concepts.md.
func TestHowErrorsAreJudged(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	refused := Rejection("bulkhead", "b", errtree.Reason("full"), time.Time{}, nil)
	for _, tt := range []struct {
		name     string
		ctx      context.Context
		err      error
		want     Outcome
		fallback bool
	}{
		{"nil", nil, nil, Success, false},
		{"io.EOF", nil, io.EOF, Failure, true},
		{"refused connection", nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, Failure, true},
		{"no such host", nil, &net.DNSError{Err: "no such host", IsNotFound: true}, Failure, true},
		{"bad certificate", nil, x509.UnknownAuthorityError{}, Failure, true},
		{"deadline of a connection", nil, os.ErrDeadlineExceeded, Failure, true},
		{"driver.ErrBadConn", nil, driver.ErrBadConn, Failure, true},
		{"sql.ErrNoRows", nil, sql.ErrNoRows, Failure, true},
		{"sql.ErrNoRows, Healthy", nil, Healthy(sql.ErrNoRows), Success, false},
		{"Healthy, wrapped", nil, fmt.Errorf("find user: %w", Healthy(sql.ErrNoRows)), Success, false},
		{"Canceled that was asked for", canceled, context.Canceled, Ignored, false},
		{"any error of a caller who left", canceled, io.EOF, Ignored, false},
		{"Canceled that nobody asked for", nil, context.Canceled, Failure, true},
		{"our timeout", nil, &TimeoutError{Limit: time.Second, Err: context.DeadlineExceeded}, Failure, true},
		{"our timeout around a refusal", nil, &TimeoutError{Limit: time.Second, Err: refused}, Failure, true},
		{"the caller's deadline", nil, context.DeadlineExceeded, Failure, true},
		{"a refusal", nil, refused, Ignored, true},
		{"a refusal, wrapped", nil, fmt.Errorf("charge: %w", refused), Ignored, true},
		{"a refusal beside a failure", nil, errors.Join(refused, io.EOF), Failure, true},
		{"two refusals", nil, errors.Join(refused, refused), Ignored, true},
		{"a refusal beside the reason to give up", nil, errors.Join(errtree.Reason("exhausted"), refused), Ignored, true},
		{"a healthy answer beside a failure", nil, errors.Join(Healthy(io.EOF), io.EOF), Failure, true},
		{"a healthy answer beside a refusal", nil, errors.Join(Healthy(io.EOF), refused), Ignored, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := tt.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			assert.Equal(t, tt.want, Classify(ctx, tt.err))
			ran := false
			f := Fallback(func(context.Context, error) error { ran = true; return nil })
			call, leave := context.WithCancel(t.Context())
			defer leave()
			_ = f.Do(call, func(context.Context) error {
				if tt.ctx != nil {
					leave()
				}
				return tt.err
			})
			assert.Equal(t, tt.fallback, ran)
		})
	}
}

func TestHealthyIsSeenThrough(t *testing.T) {
	err := Healthy(fmt.Errorf("find: %w", sql.ErrNoRows))
	assert.ErrorIs(t, err, sql.ErrNoRows)
	assert.Equal(t, "find: sql: no rows in result set", err.Error())
	assert.NoError(t, Healthy(nil))
}

func TestRejectedError(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	reason := errtree.Reason("circuit open")
	e := Rejection("circuit_breaker", "payments", reason, now.Add(time.Second), clock)
	assert.ErrorIs(t, e, ErrRejected)
	assert.ErrorIs(t, e, reason)
	assert.Equal(t, "circuit_breaker payments: circuit open", e.Error())
	e.Why, e.Cause = "failure_ratio", io.EOF
	assert.Equal(t, "circuit_breaker payments: circuit open (failure_ratio: EOF)", e.Error())
	assert.NotErrorIs(t, e, io.EOF, "the cause is told but not part of the tree")
	assert.Equal(t, "rejected", e.ErrorType())
	wait, ok := RetryAfter(fmt.Errorf("x: %w", errors.Join(io.EOF, e)))
	assert.True(t, ok)
	assert.Equal(t, time.Second, wait)
	now = now.Add(2 * time.Second)
	assert.Zero(t, e.RetryAfter(), "it has passed")
	_, ok = RetryAfter(e)
	assert.False(t, ok)
	assert.Zero(t, (&RejectedError{}).RetryAfter(), "nobody knows")
	assert.Equal(t, "http: call rejected", (&RejectedError{Policy: "http"}).Error())
	wait, ok = RetryAfter(errors.Join(e, hint(0), hint(-1), hint(time.Minute), hint(time.Hour)))
	assert.True(t, ok)
	assert.Equal(t, time.Minute, wait, "the first above 0")
}

type hint time.Duration

func (h hint) Error() string             { return "hint" }
func (h hint) RetryAfter() time.Duration { return time.Duration(h) }

func TestFallback(t *testing.T) {
	own := errors.New("own")
	for _, tt := range []struct {
		name  string
		f     func(ctx context.Context, err error) error
		is    []error
		count string
	}{
		{"an answer", func(context.Context, error) error { return nil }, nil, "1 0"},
		{"an error of its own", func(context.Context, error) error { return own }, []error{own, io.EOF}, "0 1"},
		{"the original", func(_ context.Context, err error) error { return err }, []error{io.EOF}, "0 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seen := &events{}
			p := Fallback(tt.f).(*fallback).Bind("charge", seen).(*boundFallback)
			err := p.Do(t.Context(), func(context.Context) error { return io.EOF })
			if tt.is == nil {
				require.NoError(t, err)
			}
			for _, want := range tt.is {
				assert.ErrorIs(t, err, want)
			}
			assert.Equal(t, tt.count, fmt.Sprint(p.counts[0].Load(), p.counts[1].Load()))
			require.Len(t, seen.all, 1)
			assert.Equal(t, io.EOF, seen.all[0].Err)
		})
	}
	t.Run("a panic counts as a failure and passes", func(t *testing.T) {
		p := Fallback(func(context.Context, error) error { panic(own) }).(*fallback).Bind("x", observe.Func(func(context.Context, observe.Event) { panic("observer") })).(*boundFallback)
		assert.PanicsWithValue(t, own, func() { _ = p.Do(t.Context(), func(context.Context) error { return io.EOF }) })
		assert.EqualValues(t, 1, p.counts[fallbackFailure].Load())
	})
}

// oddError has a type that can be compared and values that cannot.
type oddError struct{ detail any }

func (oddError) Error() string { return "odd" }

func TestAFallbackBearsErrorsThatCannotBeCompared(t *testing.T) {
	p := NewPipeline("p", Fallback(func(context.Context, error) error { return oddError{[]int{2}} })).Observed(observe.Discard)
	err := p.Do(t.Context(), func(context.Context) error { return oddError{[]int{1}} })
	require.EqualError(t, err, "policy: fallback: odd (after: odd)")
}

// A fallback outside a timeout gets the caller's context, which that timeout has not ended (hystrix-go#42, heimdall#128).
func TestAFallbackIsNotCutByATimeoutInside(t *testing.T) {
	runs := 0
	p := NewPipeline("p", Fallback(func(ctx context.Context, err error) error {
		runs++
		assert.NoError(t, ctx.Err())
		assert.ErrorIs(t, err, ErrTimeout)
		assert.NotErrorIs(t, err, ErrRejected)
		assert.Equal(t, "v", ctx.Value(parityKey{}))
		return nil
	}), Timeout(time.Millisecond))
	ctx := context.WithValue(t.Context(), parityKey{}, "v")
	require.NoError(t, p.Do(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }))
	assert.Equal(t, 1, runs)
}
