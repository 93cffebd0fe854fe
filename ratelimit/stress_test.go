package ratelimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Calls, cancels, waits that run out and changes of the rate meet in real time, at the pace of the machine.
func TestNoTokenIsLostOrMintedUnderStress(t *testing.T) {
	const goroutines, calls, burst, fastest = 16, 200, 5, 200_000
	l := quiet(Config{Rate: fastest, Burst: burst, MaxWait: 200 * time.Microsecond})
	var ran, limited, left atomic.Int64
	start := time.Now()
	stop := make(chan struct{})
	var changer, wg sync.WaitGroup
	changer.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				l.SetRate([]float64{fastest, fastest / 100, 0}[n%3])
				runtime.Gosched()
			}
		}
	})
	for range goroutines {
		wg.Go(func() {
			for range calls {
				ctx, cancel := context.WithCancel(context.Background())
				if rand.IntN(2) == 0 {
					go cancel()
				}
				switch err := l.Do(ctx, func(context.Context) error { ran.Add(1); return nil }); {
				case errors.Is(err, ErrLimited):
					limited.Add(1)
				case errors.Is(err, context.Canceled):
					left.Add(1)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	close(stop)
	changer.Wait()
	s := l.Stats()
	assert.Zero(t, s.Waiting)
	assert.EqualValues(t, goroutines*calls, ran.Load()+limited.Load()+left.Load())
	assert.Equal(t, ran.Load(), s.Acquired)
	assert.Equal(t, limited.Load(), s.Rejected)
	assert.LessOrEqual(t, s.Canceled, left.Load(), "one that came with a done context counts nowhere")
	assert.LessOrEqual(t, float64(ran.Load()), burst+fastest*time.Since(start).Seconds()+1)

	l.SetRate(fastest)
	require.Eventually(t, func() bool { return !l.InUse() }, time.Minute, time.Microsecond, "the bucket fills up again")
}

func TestThoseWhoWaitGetTheRateOfTheClock(t *testing.T) {
	const rate = 20_000
	l := quiet(Config{Rate: rate, Burst: 1, MaxWait: forEver})
	start := time.Now()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				assert.NoError(t, l.Allow(context.Background()))
			}
		})
	}
	wg.Wait()
	assert.GreaterOrEqual(t, time.Since(start).Seconds(), float64(8*200-1)/rate-1e-6)
	assert.Equal(t, Stats{Acquired: 1600}, Stats{Acquired: l.Stats().Acquired, Waiting: l.Stats().Waiting})
}
