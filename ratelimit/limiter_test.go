package ratelimit

import (
	"context"
	"fmt"
	"io"
	"math"
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

// quiet makes a limiter that reports to nobody.
func quiet(cfg Config) *Limiter {
	cfg.Observer = observe.Discard
	return New("search", cfg)
}

// hands is a clock that is moved by hand.
type hands struct {
	mu    sync.Mutex
	now   time.Time
	reads int
}

func newHands() *hands { return &hands{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (h *hands) read() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reads++
	return h.now
}

func (h *hands) move(d time.Duration) {
	h.mu.Lock()
	h.now = h.now.Add(d)
	h.mu.Unlock()
}

func succeed(context.Context) error { return nil }

func refusalOf(t *testing.T, err error) *policy.RejectedError {
	t.Helper()
	var refusal *policy.RejectedError
	require.ErrorAs(t, err, &refusal)
	require.ErrorIs(t, err, ErrLimited)
	return refusal
}

// Each row is an instant, how many calls come, and how many start.
func TestCallsStartAtTheRate(t *testing.T) {
	type row struct {
		at           float64 // seconds
		calls, start int
	}
	for name, c := range map[string]struct {
		cfg  Config
		rows []row
	}{
		"one by one":        {Config{Rate: 10, Burst: 1}, []row{{0, 2, 1}, {.05, 1, 0}, {.1, 2, 1}, {.15, 1, 0}, {.2, 1, 1}, {10, 5, 1}}},
		"a burst":           {Config{Rate: 10, Burst: 3}, []row{{0, 5, 3}, {.1, 2, 1}, {.3, 3, 2}, {100, 5, 3}}},
		"the default burst": {Config{Rate: 25}, []row{{0, 5, 3}, {.04, 2, 1}, {1, 9, 3}}},
		"a slow rate":       {Config{Rate: .5}, []row{{0, 2, 1}, {1.9, 1, 0}, {2, 2, 1}}},
		"a fraction":        {Config{Rate: 3, Burst: 1}, []row{{0, 2, 1}, {.333, 1, 0}, {.334, 1, 1}}},
		"no rate":           {Config{Burst: 2}, []row{{0, 3, 2}, {1e6, 3, 0}}},
		"no limit":          {Config{Rate: math.Inf(1)}, []row{{0, 1000, 1000}}},
		"back a little":     {Config{Rate: 10, Burst: 2}, []row{{1, 3, 2}, {.9, 1, 0}, {1, 1, 0}, {1.05, 1, 0}, {1.1, 2, 1}}},
		"back a bucketful":  {Config{Rate: 8, Burst: 2}, []row{{1, 3, 2}, {.75, 1, 0}, {1, 1, 0}, {1.125, 2, 1}}},
		"back a lot":        {Config{Rate: 10, Burst: 2}, []row{{3600, 3, 2}, {0, 1, 0}, {.05, 1, 0}, {.1, 2, 1}, {.3, 3, 2}}},
		"to and fro":        {Config{Rate: 10, Burst: 2}, []row{{1, 2, 2}, {.85, 1, 0}, {1, 1, 0}, {.85, 1, 0}, {1.05, 1, 0}, {.9, 1, 0}, {1.1, 2, 1}}},
		"back with tokens":  {Config{Rate: 10, Burst: 4}, []row{{100, 4, 4}, {100.2, 0, 0}, {50, 4, 2}, {50.1, 2, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newHands()
			start := clock.now
			c.cfg.Clock = clock.read
			l := quiet(c.cfg)
			for i, r := range c.rows {
				clock.now = start.Add(time.Duration(r.at * float64(time.Second)))
				_ = l.bucketTime()
				started := 0
				for range r.calls {
					if l.Do(t.Context(), succeed) == nil {
						started++
					}
				}
				assert.Equal(t, r.start, started, "row %d: %v", i, r)
			}
		})
	}
}

// bucketTime shows the limiter its clock, as a call does.
func (l *Limiter) bucketTime() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, now := l.readLocked()
	return now
}

func TestARefusalSaysWhenToComeBack(t *testing.T) {
	clock := newHands()
	start := clock.now
	l := quiet(Config{Rate: 4, Burst: 1, Clock: clock.read})
	require.NoError(t, l.Do(t.Context(), succeed))
	clock.move(50 * time.Millisecond)
	err := l.Do(t.Context(), func(context.Context) error { t.Error("fn ran"); return nil })
	refusal := refusalOf(t, err)
	assert.Equal(t, "rate_limiter", refusal.Policy)
	assert.Equal(t, "search", refusal.Name)
	require.EqualError(t, err, "rate_limiter search: rate limit exceeded")
	assert.Equal(t, policy.Ignored, policy.Classify(t.Context(), err), "an outer breaker does not take it for a failure")
	assert.Equal(t, start.Add(250*time.Millisecond), refusal.RetryAt)
	assert.Equal(t, 200*time.Millisecond, refusal.RetryAfter(), "by the limiter's clock")
	clock.move(150 * time.Millisecond)
	assert.Same(t, refusal, refusalOf(t, l.Allow(t.Context())), "one error serves all until something changes")
	clock.move(50 * time.Millisecond)
	assert.Equal(t, io.EOF, l.Do(t.Context(), func(context.Context) error { return io.EOF }), "what fn says comes back as it is")
	assert.Equal(t, start.Add(500*time.Millisecond), refusalOf(t, l.Allow(t.Context())).RetryAt)

	never := quiet(Config{})
	require.NoError(t, never.Allow(t.Context()))
	assert.Zero(t, refusalOf(t, never.Allow(t.Context())).RetryAt, "no token will come")
	rare := quiet(Config{Rate: 1e-12})
	require.NoError(t, rare.Allow(t.Context()))
	assert.Zero(t, refusalOf(t, rare.Allow(t.Context())).RetryAt, "nor in a lifetime")
}

func TestRetryAtIsTrueByTheRealClockToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := quiet(Config{Rate: 3, Burst: 1})
		require.NoError(t, l.Allow(t.Context()))
		for range 10 {
			refusal := refusalOf(t, l.Allow(t.Context()))
			assert.InDelta(t, time.Second/3, refusal.RetryAfter(), 1)
			time.Sleep(time.Until(refusal.RetryAt))
			require.NoError(t, l.Allow(t.Context()))
		}
	})
}

func TestADoneContextRunsAndCountsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := quiet(Config{Rate: 1})
	for range 3 {
		assert.Equal(t, context.Canceled, l.Do(ctx, func(context.Context) error { t.Error("fn ran"); return nil }))
		assert.Equal(t, context.Canceled, l.Allow(ctx))
	}
	assert.Equal(t, Stats{Rate: 1, Burst: 1, Available: 1}, l.Stats())
	require.NoError(t, l.Allow(t.Context()))
	assert.Equal(t, context.Canceled, l.Allow(ctx), "also where it would be refused")
}

func TestATokenIsSpentWhenACallStartsAndNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := quiet(Config{Rate: 1, Burst: 3})
		full := policy.PolicyFunc(func(context.Context, policy.Func) error {
			return policy.Rejection("bulkhead", "", policy.ErrRejected, time.Time{}, nil)
		})
		backoff := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
			_ = fn(ctx)
			assert.InDelta(t, 2, l.Stats().Available, 0, "spent by the attempt")
			time.Sleep(time.Second)
			assert.InDelta(t, 3, l.Stats().Available, 0, "the sleep takes none")
			assert.False(t, l.InUse())
			return fn(ctx)
		})
		err := policy.NewPipeline("p", backoff, l, full).Observed(observe.Discard).Do(t.Context(), succeed)
		require.ErrorIs(t, err, policy.ErrRejected)
		assert.Equal(t, Stats{Rate: 1, Burst: 3, Available: 2, Acquired: 2}, l.Stats())
		assert.Panics(t, func() { _ = l.Do(t.Context(), func(context.Context) error { panic(1) }) })
		assert.InDelta(t, 1, l.Stats().Available, 0)
	})
}

// A change of the rate used to leave the old burst (golang/go#23575).
func TestSetRate(t *testing.T) {
	clock := newHands()
	start := clock.now
	l := quiet(Config{Rate: 40, Clock: clock.read})
	assert.Equal(t, Stats{Rate: 40, Burst: 4, Available: 4}, l.Stats())
	l.SetRate(80)
	assert.Equal(t, Stats{Rate: 80, Burst: 8, Available: 4}, l.Stats(), "no token comes from a change")
	clock.move(time.Second)
	assert.InDelta(t, 8, l.Stats().Available, 0)
	l.SetRate(20)
	assert.Equal(t, Stats{Rate: 20, Burst: 2, Available: 2}, l.Stats(), "what does not fit is gone")
	require.NoError(t, l.Allow(t.Context()))
	require.NoError(t, l.Allow(t.Context()))
	assert.Equal(t, start.Add(time.Second+50*time.Millisecond), refusalOf(t, l.Allow(t.Context())).RetryAt)
	l.SetRate(2)
	assert.Equal(t, start.Add(time.Second+500*time.Millisecond), refusalOf(t, l.Allow(t.Context())).RetryAt, "by the new rate")
	clock.move(250 * time.Millisecond)
	l.SetRate(0)
	assert.Zero(t, refusalOf(t, l.Allow(t.Context())).RetryAt)
	clock.move(time.Hour)
	assert.InDelta(t, .5, l.Stats().Available, 1e-9)
	l.SetRate(1)
	clock.move(500 * time.Millisecond)
	require.NoError(t, l.Allow(t.Context()))
	l.SetRate(math.Inf(1))
	for range 100 {
		require.NoError(t, l.Allow(t.Context()))
	}
	assert.True(t, math.IsInf(l.Stats().Rate, 1))
	assert.False(t, l.InUse())

	l = quiet(Config{Rate: 40, Burst: 7})
	l.SetRate(1000)
	assert.Equal(t, 7, l.Stats().Burst, "a burst that was given stays")
	for _, r := range []float64{-1, math.NaN(), math.Inf(-1)} {
		assert.PanicsWithValue(t, fmt.Sprintf("ratelimit: SetRate of search: rate is %v, must be 0 (none) or more, or +Inf (no limit)", r), func() { l.SetRate(r) })
	}
	assert.InDelta(t, 1000, l.Stats().Rate, 0)
}

func TestInUse(t *testing.T) {
	clock := newHands()
	l := quiet(Config{Rate: 10, Burst: 2, Clock: clock.read})
	assert.False(t, l.InUse())
	require.NoError(t, l.Allow(t.Context()))
	assert.True(t, l.InUse())
	clock.move(99 * time.Millisecond)
	assert.True(t, l.InUse())
	clock.move(-time.Hour)
	assert.True(t, l.InUse(), "and looking changes nothing")
	clock.move(time.Hour + time.Millisecond)
	assert.False(t, l.InUse())
	require.NoError(t, l.Allow(t.Context()))
	require.NoError(t, l.Allow(t.Context()))
	assert.Error(t, l.Allow(t.Context()))
}

func TestAGroupKeepsALimiterWhoseBucketIsNotFull(t *testing.T) {
	clock := newHands()
	g := policy.NewGroup(policy.GroupConfig{Max: 2}, func(string) *Limiter { return quiet(Config{Rate: 1, Clock: clock.read}) })
	require.NoError(t, g.Get("a").Allow(t.Context()))
	for i := range 10 {
		g.Get(fmt.Sprint("key ", i))
	}
	require.ErrorIs(t, g.Get("a").Allow(t.Context()), ErrLimited, "other keys are no way round its limit")
	clock.move(time.Second)
	a := g.Get("a")
	g.Get("x")
	g.Get("y")
	assert.NotSame(t, a, g.Get("a"), "full again, and used least recently")
}

func TestNames(t *testing.T) {
	l := quiet(Config{Rate: 1})
	assert.Equal(t, "search", l.Name())
	assert.Equal(t, "p: ratelimit(search)", policy.NewPipeline("p", l).String())
}

func TestBadInput(t *testing.T) {
	assert.NoError(t, Config{}.Validate())
	assert.NoError(t, Config{Rate: math.Inf(1), Burst: 1, MaxWait: -1}.Validate())
	require.EqualError(t, Config{Rate: -1, Burst: -2}.Validate(), "ratelimit: Config.Rate is -1, must be 0 (none) or more, or +Inf (no limit)\n"+
		"ratelimit: Config.Burst is -2, must be 0 (a tenth of a second's, at least 1) or more")
	require.Error(t, Config{Rate: math.NaN()}.Validate())
	assert.PanicsWithError(t, "ratelimit: Config.Rate is NaN, must be 0 (none) or more, or +Inf (no limit)", func() { New("l", Config{Rate: math.NaN()}) })
	for rate, want := range map[float64]int{0: 1, 1: 1, 10: 1, 10.5: 2, 70: 7, 1e300: math.MaxInt32, math.Inf(1): math.MaxInt32} {
		assert.Equal(t, want, quiet(Config{Rate: rate}).Stats().Burst, rate)
	}

	l := quiet(Config{Rate: 1})
	assert.PanicsWithValue(t, "ratelimit: Do of search: nil fn", func() { _ = l.Do(t.Context(), nil) })
	//nolint:staticcheck // that is the point
	assert.PanicsWithValue(t, "ratelimit: Do of search: nil context", func() { _ = l.Do(nil, succeed) })
	//nolint:staticcheck // that is the point
	assert.PanicsWithValue(t, "ratelimit: Allow of search: nil context", func() { _ = l.Allow(nil) })
	assert.False(t, l.InUse())
}

func TestAnObserverMayCallBackAndPanic(t *testing.T) {
	var l *Limiter
	o := &recorder.Recorder{}
	o.OnEvent = func() {
		o.Rows(t)
		l.SetRate(1e9)
		panic("observer")
	}
	l = New("search", Config{Rate: 1e-3, Observer: o})
	require.NoError(t, l.Allow(t.Context()))
	assert.PanicsWithValue(t, "observer", func() { _ = l.Allow(t.Context()) })
	assert.EqualValues(t, 1, l.Stats().Rejected)
	assert.InDelta(t, 1e9, l.Stats().Rate, 0)
}
