package retry

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// nathanmarz/storm#726, avast/retry-go#30, azure-sdk-go#23441, dragonfly#4852
func TestFullJitterStaysAboveZeroAndUpToItsCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64Range(1, math.MaxInt64).Draw(t, "base")
		limit := rapid.Int64Range(base, math.MaxInt64).Draw(t, "limit")
		f := FullJitter(time.Duration(base), time.Duration(limit))().(*fullJitter)
		wantCap := float64(base)
		for n := 1; n <= 1000; n++ {
			got := f.upTo
			want := min(wantCap, float64(limit))
			if math.Abs(float64(got)-want) > want*1e-9 {
				t.Fatalf("attempt %d: waits up to %v, want %v", n, got, time.Duration(want))
			}
			if d := f.NextBackOff(); d <= 0 || d > got {
				t.Fatalf("attempt %d: waits %v, want above 0 and at most %v", n, d, got)
			}
			wantCap *= 2
		}
		f.Reset()
		if f.upTo != time.Duration(base) {
			t.Fatalf("after Reset it waits up to %v, want %v", f.upTo, time.Duration(base))
		}
	})
}

func TestTheCapOfFullJitterIsReachedExactly(t *testing.T) {
	f := FullJitter(time.Second, 30*time.Second)().(*fullJitter)
	for n := 1; n <= 70; n++ {
		want := min(30*time.Second, time.Second<<min(n-1, 30))
		assert.Equal(t, want, f.upTo, "attempt %d", n)
		f.NextBackOff()
	}
}

// google/adk-js#704, agenda#1748, cenkalti/backoff#117, #139
func TestFullJitterSpreadsEvenlyWithNoPileUp(t *testing.T) {
	const draws, limit = 100_000, time.Second
	f := FullJitter(limit, limit)()
	var tenths [10]int
	for range draws {
		d := f.NextBackOff()
		require.Positive(t, d)
		require.LessOrEqual(t, d, limit)
		tenths[min(9, d*10/limit)]++
	}
	for i, n := range tenths {
		assert.InDelta(t, draws/10, n, draws/100, "tenth %d", i) // ten standard deviations
	}
}

func TestFullJitterOfTheLongestDurations(t *testing.T) {
	f := FullJitter(math.MaxInt64, math.MaxInt64)()
	for range 1000 {
		assert.Positive(t, f.NextBackOff())
	}
}

func TestFullJitterPanicsForABadRange(t *testing.T) {
	for _, bad := range [][2]time.Duration{{0, time.Second}, {-1, time.Second}, {time.Second, time.Second - 1}, {0, 0}} {
		assert.Panics(t, func() { FullJitter(bad[0], bad[1]) }, "%v", bad)
	}
}

// cenkalti/backoff#183, #65, #72, #105, lestrrat-go/backoff#9
func TestEachCallHasABackoffOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{Attempts: 5, Budget: Unlimited, BackOff: func() backoff.BackOff { return &counting{} }})
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				fn := newScript(errDown)
				_ = r.Do(t.Context(), fn.run)
				assert.Equal(t, []time.Duration{0, 1e9, 3e9, 6e9, 10e9}, fn.at)
			})
		}
		wg.Wait()
	})
}

func TestNoBackoffIsMadeWithoutAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		r := New(Config{BackOff: func() backoff.BackOff { made++; return &counting{} }})
		require.NoError(t, r.Do(t.Context(), newScript(nil).run))
		assert.Zero(t, made)
		_ = r.Do(t.Context(), newScript(errDown).run)
		assert.Equal(t, 1, made, "one for the whole call")
	})
}

func TestBackoffsOfTheLibraryWork(t *testing.T) {
	tests := []struct {
		name string
		make func() backoff.BackOff
		want []time.Duration // when the attempts begin
	}{
		{"constant", every(time.Second), []time.Duration{0, 1e9, 2e9, 3e9}},
		{"zero", func() backoff.BackOff { return &backoff.ZeroBackOff{} }, []time.Duration{0, 0, 0, 0}},
		{"stop", func() backoff.BackOff { return &backoff.StopBackOff{} }, []time.Duration{0}},
		{"WithMaxRetries", func() backoff.BackOff { return backoff.WithMaxRetries(every(time.Second)(), 2) }, []time.Duration{0, 1e9, 2e9}},
		{"exponential", func() backoff.BackOff {
			return backoff.NewExponentialBackOff(backoff.WithInitialInterval(time.Second), backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0))
		}, []time.Duration{0, 1e9, 3e9, 7e9}},
		{"an exponential that was not Reset", func() backoff.BackOff {
			return &backoff.ExponentialBackOff{InitialInterval: time.Second, Multiplier: 2, MaxInterval: time.Minute, Stop: backoff.Stop, Clock: backoff.SystemClock}
		}, []time.Duration{0, 1e9, 3e9, 7e9}},
		{"an exponential with its own end", func() backoff.BackOff {
			return backoff.NewExponentialBackOff(backoff.WithInitialInterval(time.Second), backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0), backoff.WithMaxElapsedTime(3*time.Second))
		}, []time.Duration{0, 1e9, 3e9}},
		{"negative", every(-5 * time.Second), []time.Duration{0}},
		{"the most negative", every(math.MinInt64), []time.Duration{0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fn := newScript(errDown)
				err := New(Config{Attempts: 4, Budget: Unlimited, BackOff: test.make}).Do(t.Context(), fn.run)
				assert.Equal(t, test.want, fn.at)
				if len(test.want) < 4 {
					assert.Equal(t, ErrStopped, exhausted(t, err).Reason)
				} else {
					assert.Equal(t, ErrAttemptsExhausted, exhausted(t, err).Reason)
				}
				assert.ErrorIs(t, err, errDown)
			})
		})
	}
}

func TestAnEndlessWaitEndsWithTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, cfg := range []Config{{}, {MaxElapsed: time.Hour}} {
			cfg.BackOff = every(math.MaxInt64)
			fn := newScript(errDown)
			err := New(cfg).Do(contextAfter(t, time.Minute), fn.run)
			assert.Equal(t, 1, fn.runs)
			if cfg.MaxElapsed > 0 {
				require.ErrorIs(t, err, ErrElapsed)
			} else {
				require.ErrorIs(t, err, context.Canceled)
			}
		}
	})
}

func TestABackoffThatStopsEndsHintedRetriesToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := newScript(hinted(time.Second))
		err := New(Config{Attempts: -1, Budget: Unlimited, BackOff: func() backoff.BackOff { return backoff.WithMaxRetries(every(1)(), 4) }}).Do(t.Context(), fn.run)
		assert.Equal(t, 5, fn.runs)
		assert.Equal(t, ErrStopped, exhausted(t, err).Reason)
	})
}
