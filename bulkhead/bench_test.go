package bulkhead

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func succeed(context.Context) error { return nil }

// BenchmarkDo measures a call that gets a free permit, BenchmarkRefused one that gets none.
func BenchmarkDo(b *testing.B)      { benchmark(b, 1000, nil) }
func BenchmarkRefused(b *testing.B) { benchmark(b, 1, ErrFull) }

func benchmark(b *testing.B, limit int, want error) {
	for _, goroutines := range []int{1, 2, 64} {
		b.Run(fmt.Sprint("goroutines=", goroutines), func(b *testing.B) {
			h := New("bench", Config{Max: limit})
			if want != nil {
				release, err := h.Acquire(b.Context())
				require.NoError(b, err)
				defer release()
			}
			require.ErrorIs(b, h.Do(b.Context(), succeed), want)
			ctx := context.Background()
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for range goroutines {
				wg.Go(func() {
					for range b.N / goroutines {
						_ = h.Do(ctx, succeed)
					}
				})
			}
			wg.Wait()
		})
	}
}
