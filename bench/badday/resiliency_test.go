package badday

import (
	"context"
	"time"

	"github.com/eapache/go-resiliency/breaker"
	"github.com/eapache/go-resiliency/deadline"
	"github.com/eapache/go-resiliency/retrier"
	"github.com/eapache/go-resiliency/semaphore"
)

func resiliencyRetry(class retrier.Classifier, tell func(*retrier.Retrier)) func(schedule) guard {
	return func(s schedule) guard {
		r := retrier.New(retrier.LimitedExponentialBackoff(s.attempts-1, s.first, s.longest), class)
		tell(r)
		return guardFunc(r.RunCtx)
	}
}

func resiliency() library {
	return library{
		name:   "go-resiliency",
		module: "github.com/eapache/go-resiliency",
		breaker: func(r rule) guard {
			if r.ratio > 0 || r.onChange != nil {
				return nil
			}
			b := breaker.New(max(r.inARow, r.failures), 1, r.cooldown)
			return guardFunc(func(ctx context.Context, fn func(context.Context) error) error {
				return b.Run(func() error { return fn(ctx) })
			})
		},
		retry: resiliencyRetry(nil, func(*retrier.Retrier) {}),
		bulkhead: func(limit int, waits bool) guard {
			patience := time.Millisecond
			if waits {
				patience = time.Hour
			}
			s := semaphore.New(limit, patience)
			return guardFunc(func(ctx context.Context, fn func(context.Context) error) error {
				if err := s.Acquire(); err != nil {
					return err
				}
				defer s.Release()
				return fn(ctx)
			})
		},
		timeout: func(limit time.Duration) guard {
			d := deadline.New(limit)
			return guardFunc(func(ctx context.Context, fn func(context.Context) error) error {
				return d.Run(func(<-chan struct{}) error { return fn(ctx) })
			})
		},
		remedies: map[string]remedy{
			"open-breaker": {"`BlacklistClassifier`", func(l *library) {
				l.retry = resiliencyRetry(retrier.BlacklistClassifier{breaker.ErrBreakerOpen}, func(*retrier.Retrier) {})
			}},
			"last-error": {"`WithSurfaceWorkErrors`", func(l *library) {
				l.retry = resiliencyRetry(nil, func(r *retrier.Retrier) { r.WithSurfaceWorkErrors() })
			}},
		},
	}
}
