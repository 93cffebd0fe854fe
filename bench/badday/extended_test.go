package badday

import (
	"context"
	"errors"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

var errFull = errors.New("full")

// extended is what the Go project itself offers beside the standard library. A guard is what a program writes around it.
func extended() library {
	return library{
		name:   "x/sync, x/time",
		module: "golang.org/x/time",
		bulkhead: func(limit int, waits bool) guard {
			s := semaphore.NewWeighted(int64(limit))
			return guardFunc(func(ctx context.Context, fn func(context.Context) error) error {
				if !waits && !s.TryAcquire(1) {
					return errFull
				} else if waits {
					if err := s.Acquire(ctx, 1); err != nil {
						return err
					}
				}
				defer s.Release(1)
				return fn(ctx)
			})
		},
		limiter: func(perSecond float64) guard {
			l := rate.NewLimiter(rate.Limit(perSecond), 1)
			return guardFunc(func(ctx context.Context, fn func(context.Context) error) error {
				if err := l.Wait(ctx); err != nil {
					return err
				}
				return fn(ctx)
			})
		},
	}
}
