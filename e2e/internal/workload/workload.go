// Package workload gives telemetry something to tell.
package workload

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/ratelimit"
	"github.com/switchgear-go/switchgear/retry"
)

// ErrDown is what calls fail with.
var ErrDown = errors.New("the dependency is down")

// Fail is a call that fails at once.
func Fail(context.Context) error { return ErrDown }

// Succeed is a call that succeeds at once.
func Succeed(context.Context) error { return nil }

// Everything makes policies of all types that report to o, and calls them with ctx until each metric and each event of the
// registry has been reported. Keep what it returns until that is collected: a policy that is gone reports no current values.
func Everything(ctx context.Context, o observe.Observer) (keep []any) {
	steps := []func(context.Context, observe.Observer) []policy.Policy{
		circuitBreakers, retries, timeouts, bulkheads, rateLimiters, hedges, fallbacks,
	}
	for _, step := range steps {
		for _, p := range step(ctx, o) {
			keep = append(keep, p)
		}
	}
	return keep
}

func circuitBreakers(ctx context.Context, o observe.Observer) []policy.Policy {
	b := breaker.New("everything", breaker.Config{Consecutive: 2, Cooldown: time.Hour, MaxCooldown: time.Hour, SlowCall: time.Hour, Observer: o})
	p := policy.NewPipeline("everything", b).Observed(o)
	for range 3 { // the third is refused
		_ = p.Do(ctx, Fail)
	}
	shadow := breaker.New("everything-shadow", breaker.Config{Shadow: true, Observer: o})
	_ = shadow.Do(ctx, Succeed)
	return []policy.Policy{p, shadow}
}

func retries(ctx context.Context, o observe.Observer) []policy.Policy {
	r := retry.New(retry.Config{
		Attempts: 2,
		BackOff:  func() backoff.BackOff { return backoff.NewConstantBackOff(time.Millisecond) },
	})
	p := policy.NewPipeline("everything", r).Observed(o)
	_ = p.Do(ctx, Fail)
	return []policy.Policy{p}
}

func timeouts(ctx context.Context, o observe.Observer) []policy.Policy {
	p := policy.NewPipeline("everything", policy.Timeout(time.Millisecond)).Observed(o)
	_ = p.Do(ctx, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	return []policy.Policy{p}
}

func bulkheads(ctx context.Context, o observe.Observer) []policy.Policy {
	b := bulkhead.New("everything", bulkhead.Config{Max: 1, Queue: 1, MaxWait: time.Millisecond, Observer: o})
	release, err := b.Acquire(ctx)
	if err == nil {
		_ = b.Do(ctx, Succeed) // waits in vain
	}
	release()
	queue := bulkhead.New("everything-queue", bulkhead.Config{Max: 1, Queue: 1, Observer: o})
	if release, err := queue.Acquire(ctx); err == nil {
		var waiting sync.WaitGroup
		waiting.Go(func() { _ = queue.Do(ctx, Succeed) })
		for queue.Stats().Waiting == 0 {
			runtime.Gosched()
		}
		release()
		waiting.Wait()
	}
	shadow := bulkhead.New("everything-shadow", bulkhead.Config{Max: 1, Shadow: true, Observer: o})
	return []policy.Policy{b, queue, shadow}
}

func rateLimiters(ctx context.Context, o observe.Observer) []policy.Policy {
	l := ratelimit.New("everything", ratelimit.Config{Rate: 100, Burst: 1, MaxWait: time.Second, Observer: o})
	for range 2 { // the second waits
		_ = l.Do(ctx, Succeed)
	}
	none := ratelimit.New("everything-none", ratelimit.Config{Rate: 0, Burst: 1, Observer: o})
	for range 2 { // the second is refused
		_ = none.Do(ctx, Succeed)
	}
	shadow := ratelimit.New("everything-shadow", ratelimit.Config{Rate: 100, Shadow: true, Observer: o})
	return []policy.Policy{l, none, shadow}
}

func hedges(ctx context.Context, o observe.Observer) []policy.Policy {
	p := policy.NewPipeline("everything", retry.NewHedge(retry.HedgeConfig{Delay: time.Millisecond})).Observed(o)
	_ = p.Do(ctx, func(ctx context.Context) error {
		if policy.Attempt(ctx) > 1 {
			return nil
		}
		<-ctx.Done() // until the other one has won
		return context.Cause(ctx)
	})
	return []policy.Policy{p}
}

func fallbacks(ctx context.Context, o observe.Observer) []policy.Policy {
	p := policy.NewPipeline("everything", policy.Fallback(func(context.Context, error) error { return nil })).Observed(o)
	_ = p.Do(ctx, Fail)
	return []policy.Policy{p}
}
