package ratelimit

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
)

// BenchmarkAllow measures a call that gets a token, BenchmarkRefused one that gets none; beside each the bucket underneath.
func BenchmarkAllow(b *testing.B)   { benchmark(b, 1e12, math.MaxInt32, nil) }
func BenchmarkRefused(b *testing.B) { benchmark(b, 1e-6, 1, ErrLimited) }

func benchmark(b *testing.B, perSecond float64, burst int, want error) {
	l, below := New("bench", Config{Rate: perSecond, Burst: burst}), rate.NewLimiter(rate.Limit(perSecond), burst)
	ctx := context.Background()
	if want != nil {
		require.NoError(b, l.Allow(ctx))
		require.True(b, below.Allow())
	}
	require.ErrorIs(b, l.Allow(ctx), want)
	require.Equal(b, want == nil, below.Allow())
	for _, goroutines := range []int{1, 2, 64} {
		spread := func(name string, call func()) {
			b.Run(fmt.Sprint(name, "/goroutines=", goroutines), func(b *testing.B) {
				b.ReportAllocs()
				var wg sync.WaitGroup
				for range goroutines {
					wg.Go(func() {
						for range b.N / goroutines {
							call()
						}
					})
				}
				wg.Wait()
			})
		}
		spread("of=rate.Limiter", func() { below.Allow() })
		spread("of=Limiter", func() { _ = l.Allow(ctx) })
		spread("of=Limiter.Do", func() { _ = l.Do(ctx, func(context.Context) error { return nil }) })
	}
}
