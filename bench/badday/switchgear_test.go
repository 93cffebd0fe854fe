package badday

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/ratelimit"
	"github.com/switchgear-go/switchgear/retry"
)

// switchgear is this library. It has no remedies: what it is told beyond its defaults is what a row is about.
func switchgear() library {
	return library{
		name:   "Switchgear",
		module: "github.com/switchgear-go/switchgear",
		breaker: func(r rule) guard {
			cfg := breaker.Config{
				Window: r.window, MinCalls: r.minimum, FailureRatio: r.ratio, Failures: r.failures, Consecutive: r.inARow,
				Cooldown: r.cooldown, Growth: 1, Jitter: -1, Observer: observe.Discard, // the cooldown of the others is constant
			}
			if r.onChange != nil {
				cfg.Observer = observe.Func(func(_ context.Context, e observe.Event) {
					if e.Kind == observe.StateChange {
						r.onChange()
					}
				})
			}
			return breaker.New("dependency", cfg)
		},
		retry: func(s schedule) guard {
			return retry.New(retry.Config{Attempts: s.attempts, BackOff: doubling(s), Observer: observe.Discard})
		},
		hinted: func(hint time.Duration) guard {
			r := retry.New(retry.Config{Observer: observe.Discard})
			return guardFunc(func(ctx context.Context, fn func(context.Context) error) error {
				return r.Do(ctx, func(ctx context.Context) error { return errors.Join(fn(ctx), leaveMe(hint)) })
			})
		},
		bulkhead: func(limit int, waits bool) guard {
			queue := 0
			if waits {
				queue = 1000
			}
			return bulkhead.New("dependency", bulkhead.Config{Max: limit, Queue: queue, Observer: observe.Discard})
		},
		limiter: func(perSecond float64) guard {
			return ratelimit.New("dependency", ratelimit.Config{Rate: perSecond, Burst: 1, MaxWait: -1, Observer: observe.Discard})
		},
		timeout: policyTimeout,
		hedge: func(delay time.Duration) guard {
			return retry.NewHedge(retry.HedgeConfig{Delay: delay, Observer: observe.Discard})
		},
	}
}

func policyTimeout(limit time.Duration) guard { return policy.Timeout(limit) }

func doubling(s schedule) func() backoff.BackOff {
	return func() backoff.BackOff {
		b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(s.first), backoff.WithMaxInterval(s.longest),
			backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0), backoff.WithMaxElapsedTime(0))
		return b
	}
}

// leaveMe is an error that asks to be left alone for a time, as one of an HTTP response with Retry-After does.
type leaveMe time.Duration

func (l leaveMe) Error() string             { return "leave me for " + time.Duration(l).String() }
func (l leaveMe) RetryAfter() time.Duration { return time.Duration(l) }
