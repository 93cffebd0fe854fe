package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// statusError is how a client of the tests tells an HTTP status.
type statusError int

func (e statusError) Error() string { return http.StatusText(int(e)) }

// answer turns a status into what a client returns: 4xx answers are the caller's fault, and healthy.
func answer(status int) error {
	switch {
	case status < 400:
		return nil
	case status < 500:
		return policy.Healthy(statusError(status))
	}
	return statusError(status)
}

func TestOnlyWhatSpeaksAgainstTheDependencyCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, cancel := context.WithCancel(t.Context())
		tests := []struct {
			name  string
			ctx   context.Context
			fn    policy.Func
			count bool
		}{
			{"404", t.Context(), func(context.Context) error { return answer(404) }, false},
			{"422", t.Context(), func(context.Context) error { return answer(422) }, false},
			{"500", t.Context(), func(context.Context) error { return answer(500) }, true},
			{"our timeout", t.Context(), func(ctx context.Context) error {
				return policy.Timeout(time.Second).Do(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			}, true},
			{"a refused dial", t.Context(), func(context.Context) error {
				return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
			}, true},
			{"a timeout of the network", t.Context(), func(context.Context) error {
				return &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
			}, true},
			{"cancellation", gone, func(ctx context.Context) error { cancel(); return ctx.Err() }, false},
		}
		for _, tt := range tests {
			b := breaker.New("payments-api", breaker.Config{Consecutive: 5, Observer: observe.Discard})
			for range 5 {
				_ = b.Do(tt.ctx, tt.fn)
			}
			want := breaker.Closed
			if tt.count {
				want = breaker.Open
			}
			assert.Equal(t, want, b.State(), tt.name)
		}
	})
}

func TestAFifthOf404sLeavesItClosedThroughout(t *testing.T) {
	b := breaker.New("payments-api", breaker.Config{MinCalls: 5, FailureRatio: .1, Observer: observe.Discard})
	for i := range 1000 {
		status := 200
		if i%5 == 0 {
			status = 404
		}
		_ = b.Do(t.Context(), func(context.Context) error { return answer(status) })
		require.Equal(t, breaker.Closed, b.State())
	}
	assert.Zero(t, b.Stats().Failed)
}

// repeat makes three attempts.
var repeat = policy.PolicyFunc(func(ctx context.Context, fn policy.Func) (err error) {
	for range 3 {
		if err = fn(ctx); err == nil {
			return nil
		}
	}
	return err
})

// The report: failsafe-lib/failsafe#96.
func TestABreakerJudgesWhatItIsPutAround(t *testing.T) {
	down := func(context.Context) error { return errors.New("down") }
	outside := breaker.New("outside", breaker.Config{Observer: observe.Discard})
	inside := breaker.New("inside", breaker.Config{Observer: observe.Discard})
	p := policy.NewPipeline("charge", outside, repeat, inside)
	require.Error(t, p.Do(t.Context(), down))
	assert.Equal(t, 1, outside.Stats().Failed)
	assert.Equal(t, 3, inside.Stats().Failed)
}

// The report: go-zero#4070.
func TestACallersOwnDeadlineCanBeLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		leaveOut := func(ctx context.Context, err error) policy.Outcome {
			if ctx.Err() != nil {
				return policy.Ignored // the caller's deadline has passed: it may have been too short
			}
			return policy.Classify(ctx, err)
		}
		for _, tt := range []struct {
			classify func(context.Context, error) policy.Outcome
			want     breaker.State
		}{{nil, breaker.Open}, {leaveOut, breaker.Closed}} {
			b := breaker.New("payments-api", breaker.Config{Consecutive: 50, Classify: tt.classify, Observer: observe.Discard})
			p := policy.NewPipeline("charge", b, policy.Timeout(time.Minute))
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				require.ErrorIs(t, p.Do(ctx, hang), context.DeadlineExceeded)
				cancel()
			}
			assert.Equal(t, tt.want, b.State())
		}
	})
}

// The report: go-zero#4008.
func TestPermitsCountAsCallsDo(t *testing.T) {
	b := breaker.New("payments-api", breaker.Config{MinCalls: 5, Observer: observe.Discard})
	for i := range 5 {
		assert.Equal(t, i, b.Stats().Failed)
		permit, err := b.Allow(t.Context())
		require.NoError(t, err)
		permit.Done(errors.New("down"))
		permit.Done(errors.New("twice counts once"))
	}
	assert.Equal(t, breaker.Open, b.State())
	_, err := b.Allow(t.Context())
	assert.ErrorIs(t, err, breaker.ErrCircuitOpen)
}

func TestWithItOpenAFallbackAnswersAtItsOwnCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("quotes", breaker.Config{Consecutive: 5, Cooldown: 30 * time.Second, Growth: 1, Jitter: -1, Observer: observe.Discard})
		p := policy.NewPipeline("quote",
			policy.Fallback(func(context.Context, error) error { return nil }),
			b, policy.Timeout(1500*time.Millisecond),
		)
		reached := 0
		hang := func(ctx context.Context) error { reached++; <-ctx.Done(); return ctx.Err() }
		slow, fast := 0, 0
		for begin := time.Now(); time.Since(begin) < 5*time.Minute; {
			at := time.Now()
			require.NoError(t, p.Do(t.Context(), hang))
			switch time.Since(at) {
			case 0:
				fast++
			case 1500 * time.Millisecond:
				slow++
			default:
				t.Errorf("a call took %v", time.Since(at))
			}
			time.Sleep(time.Second)
		}
		assert.Equal(t, 5+9, slow, "five before it opened, then one probe each 30s and the second its loop takes")
		assert.Equal(t, slow, reached)
		assert.Greater(t, fast, 250)
		assert.Equal(t, breaker.Open, b.State())
	})
}

func TestAPipelineIsNamedInEvents(t *testing.T) {
	var events []observe.Event
	var now atomic.Int64
	b := breaker.New("payments-api", breaker.Config{
		Consecutive: 1, Jitter: -1,
		Clock:    func() time.Time { return time.Unix(now.Load(), 0) },
		Observer: observe.Func(func(_ context.Context, e observe.Event) { events = append(events, e) }),
	})
	p := policy.NewPipeline("charge", policy.Timeout(time.Minute), b)
	nothing := func(context.Context) error { return nil }
	require.Error(t, p.Do(t.Context(), func(context.Context) error { return errors.New("down") }))
	require.ErrorIs(t, p.Do(t.Context(), nothing), breaker.ErrCircuitOpen)
	now.Add(3600) // its own clock rules in a pipeline too
	require.NoError(t, p.Do(t.Context(), nothing))
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprintf("%d %s %s %s→%s", e.Time.Unix(), e.Pipeline, e.Kind, e.From, e.To))
	}
	assert.Equal(t, []string{
		"0 charge state_change closed→open",
		"0 charge rejected open→",
		"5 charge state_change open→half_open",
		"3600 charge state_change half_open→closed",
	}, got)
}

func TestARefusalOfAnInnerPolicySaysNothingAboutTheDependency(t *testing.T) {
	outer := breaker.New("outer", breaker.Config{Consecutive: 1, Observer: observe.Discard})
	inner := breaker.New("inner", breaker.Config{Observer: observe.Discard})
	inner.ForceOpen()
	p := policy.NewPipeline("charge", outer, inner)
	for range 100 {
		require.ErrorIs(t, p.Do(t.Context(), func(context.Context) error { return nil }), breaker.ErrCircuitOpen)
	}
	assert.Equal(t, breaker.Closed, outer.State())
	outer.Trip()
	outer.Probe()
	_ = p.Do(t.Context(), func(context.Context) error { return nil })
	assert.Equal(t, breaker.HalfOpen, outer.State())
	assert.Zero(t, outer.Stats().Probing)
}

func TestEveryCopyOfAConfigMakesABreakerOfItsOwn(t *testing.T) {
	cfg := breaker.Config{Consecutive: 1, Observer: observe.Discard}
	a, b := breaker.New("a", cfg), breaker.New("b", cfg)
	_ = a.Do(t.Context(), func(context.Context) error { return errors.New("down") })
	assert.Equal(t, breaker.Open, a.State())
	assert.Equal(t, breaker.Closed, b.State())
}
