package bulkhead

import (
	"context"
	"io"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/internal/recorder"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// quiet makes a bulkhead that reports to nobody.
func quiet(cfg Config) *Bulkhead {
	cfg.Observer = observe.Discard
	return New("payments", cfg)
}

// hold takes n permits and returns their releases.
func hold(t *testing.T, b *Bulkhead, n int) []func() {
	t.Helper()
	releases := make([]func(), n)
	for i := range releases {
		release, err := b.Acquire(context.Background())
		require.NoError(t, err)
		releases[i] = release
	}
	return releases
}

// counts returns the part of Stats that only grows.
func totals(b *Bulkhead) Stats {
	s := b.Stats()
	s.Max, s.Running, s.Queue, s.Waiting = 0, 0, 0, 0
	return s
}

func TestCallsBeyondMaxAreRefused(t *testing.T) {
	b := quiet(Config{Max: 2})
	releases := hold(t, b, 2)
	err := b.Do(t.Context(), func(context.Context) error { t.Error("fn ran"); return nil })
	var refusal *policy.RejectedError
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, "bulkhead", refusal.Policy)
	assert.Equal(t, "payments", refusal.Name)
	assert.Zero(t, refusal.RetryAt, "nobody knows when a call will end")
	require.EqualError(t, err, "bulkhead payments: no permit free")
	require.ErrorIs(t, err, ErrFull)
	require.ErrorIs(t, err, policy.ErrRejected)
	assert.Equal(t, policy.Ignored, policy.Classify(t.Context(), err), "an outer breaker does not take it for a failure")
	releases[0]()
	assert.Equal(t, io.EOF, b.Do(t.Context(), func(context.Context) error { return io.EOF }), "what fn says comes back as it is")
	releases[1]()
	assert.Equal(t, Stats{Max: 2, Acquired: 3, Rejected: 1}, b.Stats())
}

func TestAPermitComesBackHoweverFnEnds(t *testing.T) {
	for name, fn := range map[string]policy.Func{
		"success": func(context.Context) error { return nil },
		"failure": func(context.Context) error { return io.EOF },
		"refused": func(context.Context) error { return policy.ErrRejected },
		"panic":   func(context.Context) error { panic("fn") },
		"goexit":  func(context.Context) error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := quiet(Config{Max: 1, Queue: 1})
			for range 3 {
				var wg sync.WaitGroup
				wg.Go(func() {
					defer func() {
						if p := recover(); p != nil {
							assert.Equal(t, "fn", p)
						}
					}()
					_ = b.Do(t.Context(), fn)
				})
				wg.Wait()
				assert.False(t, b.InUse())
			}
			assert.Equal(t, Stats{Max: 1, Queue: 1, Acquired: 3}, b.Stats())
		})
	}
}

func TestAPermitIsHeldUntilFnReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := quiet(Config{Max: 1})
		p := policy.NewPipeline("p", policy.Timeout(time.Second), b).Observed(observe.Discard)
		done := make(chan error)
		go func() {
			done <- p.Do(t.Context(), func(context.Context) error { time.Sleep(time.Minute); return io.EOF })
		}()
		time.Sleep(30 * time.Second) // long past the limit
		assert.Equal(t, 1, b.Stats().Running)
		require.ErrorIs(t, p.Do(t.Context(), func(context.Context) error { return nil }), ErrFull)
		require.ErrorIs(t, <-done, policy.ErrTimeout)
		assert.NoError(t, p.Do(t.Context(), func(context.Context) error { return nil }))
	})
}

func TestADoneContextRunsAndCountsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := quiet(Config{Max: 1})
	defer hold(t, b, 1)[0]()
	assert.Equal(t, context.Canceled, b.Do(ctx, func(context.Context) error { t.Error("fn ran"); return nil }), "also where it would be refused")
	release, err := b.Acquire(ctx)
	assert.Equal(t, context.Canceled, err)
	release()
	assert.Equal(t, Stats{Acquired: 1}, totals(b))
}

func TestReleasingTwicePanicsAndHarmsNobody(t *testing.T) {
	b := quiet(Config{Max: 2})
	releases := hold(t, b, 2)
	releases[0]()
	assert.PanicsWithValue(t, "bulkhead: a permit of payments was released twice", releases[0])
	assert.Equal(t, 1, b.Stats().Running)
	hold(t, b, 1)
	release, err := b.Acquire(t.Context())
	require.ErrorIs(t, err, ErrFull)
	release()
	release()
	assert.Equal(t, 2, b.Stats().Running, "after an error there is nothing to release")
}

func TestACallThatSleepsOutsideHoldsNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := quiet(Config{Max: 1})
		backoff := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
			if err := fn(ctx); err == nil {
				return nil
			}
			assert.False(t, b.InUse(), "while it sleeps")
			require.NoError(t, b.Do(ctx, func(context.Context) error { return nil }))
			time.Sleep(time.Second)
			return fn(ctx)
		})
		attempts := 0
		require.NoError(t, policy.NewPipeline("p", backoff, b).Observed(observe.Discard).Do(t.Context(), func(context.Context) error {
			if attempts++; attempts == 1 {
				return io.EOF
			}
			return nil
		}))
	})
}

func TestACallRefusedFurtherInHoldsNoPermit(t *testing.T) {
	outer, inner := quiet(Config{Max: 1}), quiet(Config{Max: 1})
	defer hold(t, inner, 1)[0]()
	for range 3 {
		err := policy.NewPipeline("p", outer, inner).Observed(observe.Discard).Do(t.Context(), func(context.Context) error { return nil })
		require.ErrorIs(t, err, ErrFull)
		assert.False(t, outer.InUse())
	}
}

func TestResizeWithNobodyWaiting(t *testing.T) {
	b := quiet(Config{Max: 1})
	releases := hold(t, b, 1)
	b.Resize(3)
	releases = append(releases, hold(t, b, 2)...)
	b.Resize(2)
	assert.Equal(t, Stats{Max: 2, Running: 3, Acquired: 3}, b.Stats(), "the running ones finish")
	releases[0]()
	_, err := b.Acquire(t.Context())
	require.ErrorIs(t, err, ErrFull)
	releases[1]()
	hold(t, b, 1)
	assert.Equal(t, 2, b.Stats().Running)
	for _, n := range []int{0, -1, most + 1} {
		assert.Panics(t, func() { b.Resize(n) })
	}
	assert.PanicsWithValue(t, "bulkhead: Resize of payments: n is 0, must be from 1 to 2147483647", func() { b.Resize(0) })
	assert.Equal(t, 2, b.Stats().Max)
}

func TestShadowRefusesAndDelaysNobody(t *testing.T) {
	o := &recorder.Recorder{}
	b := New("payments", Config{Max: 2, Queue: 1, MaxWait: time.Hour, Shadow: true, Observer: o})
	releases := hold(t, b, 5)
	assert.Equal(t, Stats{Max: 2, Running: 5, Queue: 1, Acquired: 5, WouldReject: 2}, b.Stats())
	for _, release := range releases {
		release()
	}
	hold(t, b, 3)
	assert.EqualValues(t, 2, b.Stats().WouldReject)
	assert.Empty(t, o.Events, "nothing was rejected")
	assert.EqualValues(t, 2, o.Rows(t)["switchgear.bulkhead.would_reject"])
	assert.Panics(t, func() { _ = b.Do(t.Context(), func(context.Context) error { panic(1) }) })
	assert.Equal(t, 3, b.Stats().Running)
}

func TestInUse(t *testing.T) {
	b := quiet(Config{Max: 2})
	assert.False(t, b.InUse())
	release := hold(t, b, 1)[0]
	assert.True(t, b.InUse())
	b.Resize(5)
	assert.True(t, b.InUse())
	release()
	assert.False(t, b.InUse())
}

func TestAGroupKeepsABulkheadWhosePermitsAreHeld(t *testing.T) {
	g := policy.NewGroup(policy.GroupConfig{Max: 1}, func(string) *Bulkhead { return quiet(Config{Max: 1}) })
	a := g.Get("a")
	release := hold(t, a, 1)[0]
	p := policy.NewGroup(policy.GroupConfig{Max: 2}, func(key string) *Bulkhead {
		if key == "a" {
			return a
		}
		return quiet(Config{Max: 1})
	})
	for _, key := range []string{"a", "b", "c", "d"} {
		p.Get(key)
	}
	assert.Same(t, a, p.Get("a"))
	release()
	p.Get("e")
	p.Get("f")
	for key := range p.All() {
		assert.NotEqual(t, "a", key, "free again, and used least recently")
	}
}

func TestNames(t *testing.T) {
	b := quiet(Config{Max: 1})
	assert.Equal(t, "payments", b.Name())
	assert.Equal(t, "p: bulkhead(payments)", policy.NewPipeline("p", b).String())
}

func TestBadInput(t *testing.T) {
	assert.NoError(t, Config{Max: 1}.Validate())
	assert.NoError(t, Config{Max: most, Queue: most, MaxWait: time.Hour}.Validate())
	require.EqualError(t, Config{Queue: -1, MaxWait: -1}.Validate(), "bulkhead: Config.Max is 0, must be from 1 to 2147483647\n"+
		"bulkhead: Config.Queue is -1, must be from 0 (none) to 2147483647\n"+
		"bulkhead: Config.MaxWait is -1ns, must be 0 (as long as the context allows) or more")
	require.Error(t, Config{Max: most + 1}.Validate())
	require.Error(t, Config{Max: 1, Queue: most + 1}.Validate())
	assert.PanicsWithError(t, "bulkhead: Config.Max is -3, must be from 1 to 2147483647", func() { New("b", Config{Max: -3}) })

	b := quiet(Config{Max: 1})
	assert.PanicsWithValue(t, "bulkhead: Do of payments: nil fn", func() { _ = b.Do(t.Context(), nil) })
	//nolint:staticcheck // that is the point
	assert.PanicsWithValue(t, "bulkhead: Do of payments: nil context", func() { _ = b.Do(nil, func(context.Context) error { return nil }) })
	//nolint:staticcheck // that is the point
	assert.PanicsWithValue(t, "bulkhead: Acquire of payments: nil context", func() { _, _ = b.Acquire(nil) })
	assert.False(t, b.InUse())
}

func TestAnObserverThatPanicsLosesNoPermit(t *testing.T) {
	o := &recorder.Recorder{OnEvent: func() { panic("observer") }}
	b := New("payments", Config{Max: 1, Observer: o})
	release := hold(t, b, 1)[0]
	assert.PanicsWithValue(t, "observer", func() { _ = b.Do(t.Context(), func(context.Context) error { return nil }) })
	release()
	assert.Equal(t, Stats{Max: 1, Acquired: 1, Rejected: 1}, b.Stats())
}

func TestAnObserverMayCallBack(t *testing.T) {
	var b *Bulkhead
	o := &recorder.Recorder{}
	o.OnEvent = func() {
		assert.Equal(t, 1, b.Stats().Running)
		o.Rows(t)
		b.Resize(2)
		assert.NoError(t, b.Do(context.Background(), func(context.Context) error { return nil }))
	}
	b = New("payments", Config{Max: 1, Observer: o})
	hold(t, b, 1)
	assert.ErrorIs(t, b.Do(t.Context(), func(context.Context) error { return nil }), ErrFull)
}
