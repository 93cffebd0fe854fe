package breaker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = errors.New("down")

// bed is a breaker on a clock that the test moves, watched.
type bed struct {
	*Breaker
	now    atomic.Int64 // since start
	source observe.Source

	mu     sync.Mutex
	events []observe.Event
	ctxs   []context.Context // the events'
	hook   observe.Func      // called after an event is kept
}

var start = time.Date(2024, 2, 29, 23, 0, 0, 0, time.UTC)

// newBed returns a bed under cfg. Waits are not jittered unless cfg says so.
func newBed(cfg Config) *bed {
	b := new(bed)
	if cfg.Jitter == 0 {
		cfg.Jitter = -1
	}
	cfg.Clock = func() time.Time { return start.Add(time.Duration(b.now.Load())) }
	cfg.Observer = b
	b.Breaker = New("payments-api", cfg)
	return b
}

func (b *bed) Attach(s observe.Source) observe.Probe {
	b.source = s
	return nil
}

func (b *bed) Observe(ctx context.Context, e observe.Event) {
	b.mu.Lock()
	b.events, b.ctxs = append(b.events, e), append(b.ctxs, ctx)
	hook := b.hook
	b.mu.Unlock()
	if hook != nil {
		hook(ctx, e)
	}
}

// told returns the changes of state told since the last call, such as "5s closed open failure_ratio".
func (b *bed) told() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var told []string
	for _, e := range b.events {
		if e.Kind == observe.StateChange {
			told = append(told, fmt.Sprintf("%v %s→%s %s", e.Time.Sub(start), e.From, e.To, e.Reason))
		}
	}
	b.events, b.ctxs = nil, nil
	return strings.Join(told, ", ")
}

func (b *bed) advance(d time.Duration) { b.now.Add(int64(d)) }
func (b *bed) at(d time.Duration)      { b.now.Store(int64(d)) }
func (b *bed) succeed(times int)       { b.end(times, nil) }
func (b *bed) fail(times int)          { b.end(times, errDown) }
func (b *bed) refuses() bool           { return errors.Is(b.call(nil), ErrCircuitOpen) }
func (b *bed) call(err error) error {
	return b.Do(context.Background(), func(context.Context) error { return err })
}

func (b *bed) end(times int, err error) {
	for range times {
		_ = b.call(err)
	}
}

// allow returns a permit; the test fails without one.
func (b *bed) allow(t *testing.T) *Permit {
	t.Helper()
	p, err := b.Allow(context.Background())
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	return p
}

// halfOpen trips the breaker and lets the cooldown pass.
func (b *bed) halfOpen(t *testing.T) {
	t.Helper()
	b.Trip()
	b.at(time.Duration(b.now.Load()) + b.Stats().Cooldown)
	if got := b.State(); got != HalfOpen {
		t.Fatalf("state is %v, want half_open", got)
	}
	b.told()
}

// canceled returns a context that its caller has given up.
func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// row returns the count of a metric's row, or of a live row, by the values of its attributes.
func (b *bed) row(metric string, values ...string) int64 {
	v := make([]int64, len(b.source.Rows)-len(b.source.Counts))
	b.source.Live(v)
	for i, r := range b.source.Rows {
		if r.Metric != metric || len(r.Attrs) != len(values) {
			continue
		}
		same := true
		for j, a := range r.Attrs {
			same = same && a.Value == values[j]
		}
		switch {
		case !same:
		case i < len(b.source.Counts):
			return b.source.Counts[i].Load()
		default:
			return v[i-len(b.source.Counts)]
		}
	}
	panic(fmt.Sprint("no row ", metric, values))
}

var _ policy.Policy = (*bed)(nil)
