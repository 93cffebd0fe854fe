package bulkhead

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
)

// Calls, cancels, waits that run out and resizes meet in real time, at the pace of the machine.
func TestNoPermitIsLostUnderStress(t *testing.T) {
	const goroutines, calls, greatest = 16, 300, 4
	b := quiet(Config{Max: greatest, Queue: 6, MaxWait: 50 * time.Microsecond})
	var running, most, ran, full, left atomic.Int64
	fn := func(context.Context) error {
		ran.Add(1)
		n := running.Add(1)
		defer running.Add(-1)
		for {
			m := most.Load()
			if n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		for range rand.IntN(3) {
			runtime.Gosched()
		}
		switch rand.IntN(20) {
		case 0:
			panic("fn")
		case 1:
			return errors.New("fn")
		}
		return nil
	}
	stop := make(chan struct{})
	var resizer, wg sync.WaitGroup
	resizer.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				b.Resize(1 + n%greatest)
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
				func() {
					defer func() { _ = recover() }()
					switch err := b.Do(ctx, fn); {
					case errors.Is(err, ErrFull):
						full.Add(1)
					case errors.Is(err, context.Canceled):
						left.Add(1)
					}
				}()
				cancel()
			}
		})
	}
	wg.Wait()
	close(stop)
	resizer.Wait()
	b.Resize(greatest)
	s := b.Stats()
	assert.False(t, b.InUse(), s)
	assert.LessOrEqual(t, most.Load(), int64(greatest))
	assert.Equal(t, ran.Load(), s.Acquired)
	assert.Equal(t, full.Load(), s.Rejected+s.TimedOut)
	assert.LessOrEqual(t, s.Canceled, left.Load(), "one that came with a done context counts nowhere")
	hold(t, b, greatest)
	assert.ErrorIs(t, b.Do(t.Context(), fn), ErrFull)
}

func TestNeverMoreThanMaxAtOnce(t *testing.T) {
	const limit = 3
	for _, queue := range []int{0, 2, 100} {
		b := quiet(Config{Max: limit, Queue: queue})
		var running, over, ran atomic.Int64
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				for range 200 {
					_ = b.Do(context.Background(), func(context.Context) error {
						if running.Add(1) > limit {
							over.Add(1)
						}
						ran.Add(1)
						runtime.Gosched()
						running.Add(-1)
						return nil
					})
				}
			})
		}
		wg.Wait()
		s := b.Stats()
		assert.Zero(t, over.Load())
		assert.Equal(t, Stats{Max: limit, Queue: queue, Acquired: ran.Load(), Rejected: 32*200 - ran.Load()}, s)
		if queue == 100 {
			assert.Zero(t, s.Rejected)
		}
	}
}

func TestStatsAreOfOneMoment(t *testing.T) {
	b := quiet(Config{Max: 2, Queue: 4})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = b.Do(context.Background(), func(context.Context) error { runtime.Gosched(); return nil })
				}
			}
		})
	}
	for range 2000 {
		s := b.Stats()
		assert.True(t, s.Running >= 0 && s.Running <= s.Max && s.Waiting >= 0 && s.Waiting <= s.Queue, s)
	}
	close(stop)
	wg.Wait()
}

func TestOnlyOneOfManyReleasesCounts(t *testing.T) {
	b := quiet(Config{Max: 2})
	release := hold(t, b, 2)[0]
	var panics atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			defer func() {
				if recover() != nil {
					panics.Add(1)
				}
			}()
			release()
		})
	}
	wg.Wait()
	assert.EqualValues(t, 7, panics.Load())
	assert.Equal(t, 1, b.Stats().Running)
}
