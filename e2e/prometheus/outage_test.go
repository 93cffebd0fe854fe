package prometheus_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/e2e/internal/promserver"
	"github.com/switchgear-go/switchgear/e2e/internal/workload"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/retry"
)

// dependency is what the clients of an outage call.
type dependency struct {
	failing atomic.Bool
	answers atomic.Int64 // after this many nanoseconds
}

func (d *dependency) call(ctx context.Context) error {
	failing := d.failing.Load()
	if wait := time.Duration(d.answers.Load()); !sleep(ctx, wait) {
		return context.Cause(ctx)
	}
	if failing {
		return workload.ErrDown
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// outage is a dependency, the clients that call it through a pipeline, and what the pipeline's breaker tells.
type outage struct {
	dependency dependency
	breaker    *breaker.Breaker
	pipeline   *policy.Pipeline

	mu     sync.Mutex
	events []observe.Event // guarded by mu: the state changes
}

// newOutage returns an outage of the breaker called name that is healthy so far.
func newOutage(name string, cooldown time.Duration, o observe.Observer) *outage {
	out := new(outage)
	o = observe.Tee(o, observe.Func(out.note))
	out.breaker = breaker.New(name, breaker.Config{Consecutive: 5, Cooldown: cooldown, Growth: 1, Jitter: -1, Observer: o})
	out.pipeline = policy.NewPipeline(name,
		policy.Timeout(10*time.Second),
		retry.New(retry.Config{}),
		out.breaker,
		bulkhead.New(name, bulkhead.Config{Max: 100, Observer: o}),
	).Observed(o)
	return out
}

func (o *outage) note(_ context.Context, e observe.Event) {
	if e.Kind == observe.StateChange {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.events = append(o.events, e)
	}
}

func (o *outage) told() []observe.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]observe.Event(nil), o.events...)
}

// run has clients call until the test ends or stop is called.
func (o *outage) run(t *testing.T, clients int) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			for sleep(ctx, 10*time.Millisecond) {
				_ = o.pipeline.Do(ctx, o.dependency.call)
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// await waits for the breaker to tell that it is in a state.
func (o *outage) await(t *testing.T, state breaker.State) {
	t.Helper()
	promserver.Await(t, func() string {
		if told := o.told(); len(told) > 0 && told[len(told)-1].To == state.String() {
			return ""
		}
		return "the event that it is " + state.String()
	})
}

// blip opens the breaker for no longer than its cooldown, and has it close again.
func (o *outage) blip(t *testing.T) {
	t.Helper()
	for o.breaker.State() == breaker.Closed {
		_ = o.breaker.Do(t.Context(), workload.Fail)
	}
	promserver.Await(t, func() string {
		if errors.Is(o.breaker.Do(t.Context(), workload.Succeed), breaker.ErrCircuitOpen) {
			return "a call that the breaker lets pass"
		}
		return ""
	})
}
