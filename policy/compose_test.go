package policy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/retry"
)

// stack is a subset of timeout → retry → breaker → bulkhead.
type stack struct {
	timeout, retry, breaker, bulkhead bool

	pipeline *policy.Pipeline
	api      *breaker.Breaker
	limit    *bulkhead.Bulkhead
}

func newStack(set int) *stack {
	s := &stack{timeout: set&1 != 0, retry: set&2 != 0, breaker: set&4 != 0, bulkhead: set&8 != 0}
	s.api = breaker.New("api", breaker.Config{Consecutive: 3, Cooldown: time.Minute, Jitter: -1})
	s.limit = bulkhead.New("api", bulkhead.Config{Max: 1})
	var layers []policy.Policy
	if s.timeout {
		layers = append(layers, policy.Timeout(time.Second))
	}
	if s.retry {
		layers = append(layers, retry.New(retry.Config{
			Attempts: 3, Budget: retry.Unlimited,
			BackOff: func() backoff.BackOff { return backoff.NewConstantBackOff(10 * time.Millisecond) },
		}))
	}
	if s.breaker {
		layers = append(layers, s.api)
	}
	if s.bulkhead {
		layers = append(layers, s.limit)
	}
	s.pipeline = policy.NewPipeline("card", layers...)
	return s
}

// TestEverySubsetOfTheChain runs what can happen to a call under every subset of the chain.
func TestEverySubsetOfTheChain(t *testing.T) {
	type want struct {
		runs     int
		is, not  []error
		panics   any
		open     bool
		failures int // that the breaker holds, while it is closed
	}
	// attempts is how often a plain failure is tried, and whether that opens the breaker.
	attempts := func(s *stack) (runs int, open bool) {
		if s.retry {
			return 3, s.breaker
		}
		return 1, false
	}
	scenarios := []struct {
		name    string
		prepare func(s *stack) (undo func())
		fn      func(ctx context.Context, cancel func()) error
		want    func(s *stack) want
	}{
		{
			name: "ok",
			fn:   func(context.Context, func()) error { return nil },
			want: func(*stack) want { return want{runs: 1} },
		},
		{
			name: "failure",
			fn:   func(context.Context, func()) error { return io.EOF },
			want: func(s *stack) want {
				w := want{is: []error{io.EOF}, not: []error{policy.ErrRejected, policy.ErrTimeout}, failures: 1}
				w.runs, w.open = attempts(s)
				if s.retry {
					w.is = append(w.is, retry.ErrAttemptsExhausted)
				}
				return w
			},
		},
		{
			name: "timeout",
			fn: func(ctx context.Context, _ func()) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(3 * time.Second):
					return io.EOF
				}
			},
			want: func(s *stack) want {
				if s.timeout {
					return want{runs: 1, is: []error{policy.ErrTimeout, context.DeadlineExceeded}, not: []error{io.EOF}, failures: 1}
				}
				w := want{is: []error{io.EOF}, not: []error{policy.ErrTimeout}, failures: 1}
				w.runs, w.open = attempts(s)
				return w
			},
		},
		{
			name: "cancel",
			fn: func(ctx context.Context, cancel func()) error {
				cancel()
				<-ctx.Done()
				return errors.New("aborted")
			},
			want: func(*stack) want {
				return want{runs: 1, not: []error{policy.ErrTimeout, policy.ErrRejected}, is: []error{errAny}}
			},
		},
		{
			name: "panic",
			fn:   func(context.Context, func()) error { panic("fn") },
			want: func(*stack) want { return want{runs: 1, panics: "fn", failures: 1} },
		},
		{
			name:    "open",
			prepare: func(s *stack) func() { s.api.Trip(); return func() {} },
			fn:      func(context.Context, func()) error { return nil },
			want: func(s *stack) want {
				if !s.breaker {
					return want{runs: 1, open: true}
				}
				return want{runs: 0, open: true, is: []error{breaker.ErrCircuitOpen, policy.ErrRejected}, not: []error{retry.ErrAttemptsExhausted, policy.ErrTimeout}}
			},
		},
		{
			name: "full",
			prepare: func(s *stack) func() {
				release, err := s.limit.Acquire(context.Background())
				if err != nil {
					panic(err)
				}
				return release
			},
			fn: func(context.Context, func()) error { return nil },
			want: func(s *stack) want {
				if !s.bulkhead {
					return want{runs: 1}
				}
				return want{runs: 0, is: []error{bulkhead.ErrFull, policy.ErrRejected}, not: []error{retry.ErrAttemptsExhausted, breaker.ErrCircuitOpen}}
			},
		},
	}
	for _, sc := range scenarios {
		for set := range 16 {
			s := newStack(set)
			layers := strings.TrimPrefix(s.pipeline.String(), "card: ")
			t.Run(sc.name+"/"+layers, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newStack(set)
					undo := func() {}
					if sc.prepare != nil {
						undo = sc.prepare(s)
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					runs := 0
					do := func() error {
						return s.pipeline.Do(ctx, func(ctx context.Context) error { runs++; return sc.fn(ctx, cancel) })
					}
					w := sc.want(s)
					if w.panics != nil {
						require.PanicsWithValue(t, w.panics, func() { _ = do() })
					} else {
						err := do()
						if w.is == nil {
							require.NoError(t, err)
						} else {
							require.Error(t, err)
						}
						for _, e := range w.is {
							if !errors.Is(e, errAny) {
								assert.ErrorIs(t, err, e)
							}
						}
						for _, e := range w.not {
							assert.NotErrorIs(t, err, e)
						}
					}
					assert.Equal(t, w.runs, runs, "runs of fn")
					undo()
					assert.Zero(t, s.limit.Stats().Running, "permits held")
					assert.Equal(t, w.open, s.api.State() == breaker.Open, "the breaker is %v", s.api.State())
					if s.breaker && !w.open {
						assert.Equal(t, w.failures, s.api.Stats().Failed, "failures in the window")
					}
					assert.Equal(t, w.open && s.breaker, s.pipeline.InUse())
				})
			})
		}
	}
}

var errAny = errors.New("any error")

// A breaker outside a retry judges the final result, one inside it each attempt (failsafe-lib/failsafe#96).
func TestABreakerOutsideARetryJudgesTheResult(t *testing.T) {
	again := retry.New(retry.Config{Attempts: 3, Budget: retry.Unlimited, BackOff: func() backoff.BackOff { return &backoff.ZeroBackOff{} }})
	for _, tt := range []struct {
		name     string
		build    func(b *breaker.Breaker) *policy.Pipeline
		failures int
	}{
		{"outside", func(b *breaker.Breaker) *policy.Pipeline { return policy.NewPipeline("p", b, again) }, 1},
		{"inside", func(b *breaker.Breaker) *policy.Pipeline { return policy.NewPipeline("p", again, b) }, 3},
	} {
		b := breaker.New("api", breaker.Config{})
		require.ErrorIs(t, tt.build(b).Do(t.Context(), func(context.Context) error { return io.EOF }), io.EOF)
		assert.Equal(t, tt.failures, b.Stats().Failed, tt.name)
	}
	b := breaker.New("api", breaker.Config{})
	n := 0
	require.NoError(t, policy.NewPipeline("p", b, again).Do(t.Context(), func(context.Context) error {
		if n++; n < 3 {
			return io.EOF
		}
		return nil
	}))
	assert.Zero(t, b.Stats().Failed, "a retry that recovers is one success")
	assert.Equal(t, 1, b.Stats().Calls)
}

// A retry outside an open breaker makes no hot loop (dapr#8060).
func TestAnOpenBreakerEndsTheRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("api", breaker.Config{Consecutive: 2, Cooldown: time.Minute, Jitter: -1})
		p := policy.NewPipeline("p", retry.New(retry.Config{Attempts: 10}), b)
		runs := 0
		err := p.Do(t.Context(), func(context.Context) error { runs++; return io.EOF })
		assert.Equal(t, 2, runs)
		assert.ErrorIs(t, err, breaker.ErrCircuitOpen)
		assert.ErrorIs(t, err, io.EOF, "the last real error stays in the tree")
		assert.Equal(t, policy.Failure, policy.Classify(t.Context(), err))
	})
}

// An attempt's timeout is retried, the caller's deadline is not (turbopuffer-go#138).
func TestAnAttemptsTimeoutIsRetriedAndTheCallersDeadlineIsNot(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	p := policy.NewPipeline("p", retry.New(retry.Config{Attempts: 3, BackOff: retry.FullJitter(time.Millisecond, time.Millisecond)}), policy.Timeout(50*time.Millisecond))
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		err := p.Do(t.Context(), func(ctx context.Context) error {
			if runs++; runs == 1 {
				return hang(ctx)
			}
			return ctx.Err()
		})
		require.NoError(t, err)
		assert.Equal(t, 2, runs)
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
		defer cancel()
		start, runs := time.Now(), 0
		err := p.Do(ctx, func(ctx context.Context) error { runs++; return hang(ctx) })
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.LessOrEqual(t, runs, 2)
		assert.LessOrEqual(t, time.Since(start), 60*time.Millisecond)
	})
}

// Attempts and waits together fit in the outer timeout, which never eats the last real error (go-retryablehttp#127).
func TestARetryDoesNotSleepPastTheOuterTimeout(t *testing.T) {
	constant := func() backoff.BackOff { return backoff.NewConstantBackOff(50 * time.Millisecond) }
	p := policy.NewPipeline("p", policy.Timeout(200*time.Millisecond), retry.New(retry.Config{Attempts: 10, BackOff: constant, Budget: retry.Unlimited}))
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := p.Do(t.Context(), func(context.Context) error { return io.EOF })
		assert.Less(t, time.Since(start), 200*time.Millisecond)
		assert.ErrorIs(t, err, retry.ErrDeadline)
		assert.ErrorIs(t, err, io.EOF)
		assert.NotErrorIs(t, err, policy.ErrTimeout)
		assert.NotErrorIs(t, err, context.DeadlineExceeded)
	})
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := p.Do(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("half read: %w", io.ErrUnexpectedEOF) })
		assert.Equal(t, 200*time.Millisecond, time.Since(start))
		assert.ErrorIs(t, err, policy.ErrTimeout)
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})
}

// rude panics whenever a call ends.
type rude struct{}

func (rude) Observe(context.Context, observe.Event)     {}
func (rude) Attach(observe.Source) observe.Probe        { return rude{} }
func (rude) Enabled(context.Context) bool               { return true }
func (rude) Record(context.Context, int, time.Duration) { panic("record") }
func (rude) Detach()                                    {}

type rudeSpans struct{ rude }

func (rudeSpans) Start(ctx context.Context, _ string, _ int) (context.Context, func(error)) {
	return ctx, func(error) { panic("end") }
}

func TestAPanicOfFnWinsOverThoseOfAnObserverThatMeasuresOrTraces(t *testing.T) {
	for _, o := range []observe.Observer{rude{}, rudeSpans{}} {
		p := policy.NewPipeline("p", retry.New(retry.Config{})).Observed(o)
		synctest.Test(t, func(t *testing.T) {
			assert.PanicsWithValue(t, "fn", func() { _ = p.Do(t.Context(), func(context.Context) error { panic("fn") }) })
			assert.Panics(t, func() { _ = p.Do(t.Context(), func(context.Context) error { return nil }) }, "else the observer's passes")
		})
	}
	synctest.Test(t, func(t *testing.T) {
		p := policy.NewPipeline("p", retry.New(retry.Config{})).Observed(rude{})
		assert.PanicsWithValue(t, "fn", func() {
			_ = p.Do(t.Context(), func(ctx context.Context) error {
				if policy.Attempt(ctx) == 2 {
					panic("fn")
				}
				return io.EOF
			})
		}, "also where a retry would tell how long it waited")
	})
}

func TestTheChainCostsTwoAllocations(t *testing.T) {
	p := policy.NewPipeline("card", policy.Timeout(time.Hour), retry.New(retry.Config{}), breaker.New("api", breaker.Config{}), bulkhead.New("api", bulkhead.Config{Max: 100}))
	ctx := t.Context()
	fn := func(context.Context) error { return nil }
	get := func(context.Context) (string, error) { return "a value", nil }
	assert.LessOrEqual(t, leastAllocs(func() { _ = p.Do(ctx, fn) }), 2.0)
	assert.LessOrEqual(t, leastAllocs(func() { _, _ = policy.Get(ctx, p, get) }), 3.0)
}

// leastAllocs returns the least of a few counts: cleanups of policies that other tests left are counted where they run.
func leastAllocs(f func()) float64 {
	least := testing.AllocsPerRun(1000, f)
	for range 4 {
		least = min(least, testing.AllocsPerRun(1000, f))
	}
	return least
}

func BenchmarkChain(b *testing.B) {
	p := policy.NewPipeline("card", policy.Timeout(time.Hour), retry.New(retry.Config{}), breaker.New("api", breaker.Config{}), bulkhead.New("api", bulkhead.Config{Max: 100}))
	fn := func(context.Context) error { return nil }
	both(b, "chain", func(ctx context.Context) { _ = p.Do(ctx, fn) })
	both(b, "WithTimeout", func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		_ = fn(ctx)
		cancel()
	})
	both(b, "bare", func(ctx context.Context) { _ = fn(ctx) })
}

func both(b *testing.B, name string, call func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.Run(name+"/serial", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			call(ctx)
		}
	})
	b.Run(name+"/parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				call(ctx)
			}
		})
	})
}
