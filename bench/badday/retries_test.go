package badday

import (
	"context"
	"errors"
	"time"

	"github.com/avast/retry-go/v5"
	"github.com/cenkalti/backoff/v5"
	"github.com/sony/gobreaker/v2"
)

// backoffs is cenkalti/backoff. Its Retry is a function, so a guard is what a program writes around it.
func backoffs() library {
	waits := func(s schedule) *backoff.ExponentialBackOff {
		return &backoff.ExponentialBackOff{InitialInterval: s.first, Multiplier: 2, MaxInterval: s.longest}
	}
	run := func(ctx context.Context, fn func(context.Context) error, opts ...backoff.RetryOption) error {
		_, err := backoff.Retry(ctx, func() (any, error) { return nil, fn(ctx) }, opts...)
		return err
	}
	fresh := func(s schedule) guard {
		return guardFunc(func(ctx context.Context, fn func(context.Context) error) error {
			return run(ctx, fn, backoff.WithBackOff(waits(s)), backoff.WithMaxTries(uint(s.attempts)), backoff.WithMaxElapsedTime(0))
		})
	}
	return library{
		name:   "backoff",
		module: "github.com/cenkalti/backoff/v5",
		retry: func(s schedule) guard { // made once, as the other libraries' retries are
			b := waits(s)
			return guardFunc(func(ctx context.Context, fn func(context.Context) error) error {
				return run(ctx, fn, backoff.WithBackOff(b), backoff.WithMaxTries(uint(s.attempts)), backoff.WithMaxElapsedTime(0))
			})
		},
		hinted: func(hint time.Duration) guard {
			return guardFunc(func(ctx context.Context, fn func(context.Context) error) error {
				return run(ctx, func(ctx context.Context) error {
					if fn(ctx) != nil {
						return backoff.RetryAfter(int(hint.Seconds()))
					}
					return nil
				})
			})
		},
		remedies: map[string]remedy{
			"shared": {"a new `BackOff` for each call", func(l *library) { l.retry = fresh }},
			"open-breaker": {"`Permanent`", func(l *library) {
				l.retry = func(s schedule) guard {
					inner := fresh(s)
					return guardFunc(func(ctx context.Context, fn func(context.Context) error) error {
						return inner.Do(ctx, func(ctx context.Context) error {
							err := fn(ctx)
							if errors.Is(err, gobreaker.ErrOpenState) {
								return backoff.Permanent(err)
							}
							return err
						})
					})
				}
			}},
		},
	}
}

// retrygo is avast/retry-go. Its retrier holds the context, so each call makes one.
func retrygo() library {
	with := func(more ...retry.Option) func(schedule) guard {
		return func(s schedule) guard {
			return guardFunc(func(ctx context.Context, fn func(context.Context) error) error {
				opts := append([]retry.Option{
					retry.Context(ctx), retry.Attempts(uint(s.attempts)), retry.Delay(s.first), retry.MaxDelay(s.longest), retry.DelayType(retry.BackOffDelay),
				}, more...)
				return retry.New(opts...).Do(func() error { return fn(ctx) })
			})
		}
	}
	return library{
		name:   "retry-go",
		module: "github.com/avast/retry-go/v5",
		retry:  with(),
		remedies: map[string]remedy{
			"open-breaker": {"`RetryIf`", func(l *library) {
				l.retry = with(retry.RetryIf(func(err error) bool { return !errors.Is(err, gobreaker.ErrOpenState) }))
			}},
			"amplification": {"`WithThrottle`", func(l *library) {
				l.retry = with(retry.WithThrottle(retry.NewFixedTokenBucketThrottle(retry.FixedTokenBucketThrottleConfig{})))
			}},
		},
	}
}
