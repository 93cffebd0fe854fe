package breaker

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// every makes each change of state there is, one after the other.
var every = []struct {
	name string
	do   func(b *bed)
	want string
}{
	{"closed→open", func(b *bed) { b.fail(1) }, "closed→open failure_ratio"},
	{"open→half_open→open", func(b *bed) { b.advance(time.Hour); b.fail(1) }, "half_open→open probe_failed"},
	{"open→half_open→closed", func(b *bed) { b.advance(time.Hour); b.succeed(1) }, "half_open→closed probe_succeeded"},
	{"closed→open by hand", func(b *bed) { b.Trip() }, "closed→open manual"},
	{"open→half_open by hand", func(b *bed) { b.Probe() }, "open→half_open manual"},
	{"half_open→forced_open", func(b *bed) { b.ForceOpen() }, "half_open→forced_open manual"},
	{"forced_open→half_open", func(b *bed) { b.Probe() }, "forced_open→half_open manual"},
	{"half_open→forced_closed", func(b *bed) { b.ForceClosed() }, "half_open→forced_closed manual"},
	{"forced_closed→closed", func(b *bed) { b.Reset() }, "forced_closed→closed manual"},
}

// The reports: sony/gobreaker#119, sony/gobreaker#37.
func TestAnObserverMayCallBackIntoTheBreaker(t *testing.T) {
	for i, step := range every {
		t.Run(step.name, func(t *testing.T) {
			b := newBed(Config{MinCalls: 1})
			for _, before := range every[:i] {
				before.do(b)
			}
			told := 0
			b.hook = func(ctx context.Context, e observe.Event) {
				if e.Kind != observe.StateChange {
					return // to call from a refusal and be refused has no end
				}
				told++
				assert.True(t, b.source.Live(make([]int64, 2*states)))
				b.State()
				b.Stats()
				b.InUse()
				if p, err := b.Allow(ctx); err == nil {
					p.Done(context.Canceled)
				}
				if told > 9 {
					return
				}
				_ = b.Do(ctx, func(context.Context) error { return nil })
				for _, operate := range []func(){b.Trip, b.Probe, b.ForceOpen, b.ForceClosed, b.Reset} {
					operate()
				}
			}
			step.do(b)
			assert.Greater(t, told, 9)
		})
	}
}

func TestChangesThatAnObserverMakesAreToldAfterItReturns(t *testing.T) {
	b := newBed(Config{MinCalls: 1})
	depth, deepest := 0, 0
	b.hook = func(_ context.Context, e observe.Event) {
		depth++
		deepest = max(deepest, depth)
		switch e.To {
		case "open":
			b.ForceOpen()
			assert.Len(t, b.events, 1)
		case "forced_open":
			b.ForceClosed()
			b.Reset()
			b.tell(true) // as one does who has found telling owed, and comes too late
		}
		depth--
	}
	b.fail(1)
	assert.Equal(t, "0s closed→open failure_ratio, 0s open→forced_open manual, 0s forced_open→forced_closed manual, 0s forced_closed→closed manual", b.told())
	assert.Equal(t, 1, deepest)
}

func TestEachChangeIsToldBeforeTheCallReturns(t *testing.T) {
	b := newBed(Config{MinCalls: 1})
	for _, step := range every {
		step.do(b)
		assert.Contains(t, b.told(), step.want)
	}
}

// The reports: go-redis#3991, Kevlar#24.
func TestChangesAreToldInOrderHoweverManyMakeThem(t *testing.T) {
	b := newBed(Config{MinCalls: 1, Cooldown: 1, Growth: 1, Probes: 3})
	var inside atomic.Int32
	b.hook = func(context.Context, observe.Event) {
		assert.EqualValues(t, 1, inside.Add(1), "one teller at a time")
		runtime.Gosched()
		inside.Add(-1)
	}
	b.config.Observer = observe.Func(func(ctx context.Context, e observe.Event) {
		if e.Kind == observe.StateChange { // refusals are told by whom they concern, at any time
			b.Observe(ctx, e)
		}
	})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 20 {
				switch (i + j) % 8 {
				case 0:
					b.Trip()
				case 1:
					b.ForceOpen()
				case 2:
					b.Probe()
				case 3:
					b.Reset()
				case 4:
					b.fail(1)
				default:
					b.succeed(1)
				}
				b.advance(1)
			}
		})
	}
	wg.Wait()
	b.Trip()
	b.ForceClosed() // whoever was telling last has told by now
	state, counted := "closed", map[string]int64{}
	last := time.Time{}
	for i, e := range b.events {
		require.Equal(t, state, e.From, "event %d", i)
		require.False(t, e.Time.Before(last), "event %d", i)
		state, last = e.To, e.Time
		counted[e.From+" "+e.To]++
	}
	assert.Equal(t, "forced_closed", state)
	for change, n := range counted {
		var from, to string
		_, err := fmt.Sscan(change, &from, &to)
		require.NoError(t, err)
		assert.Equal(t, n, b.row("switchgear.circuit_breaker.transitions", from, to), change)
	}
	assert.Zero(t, b.Stats().Probing)
}

func TestAPanicOfAnObserverComesAfterTheResultIsRecorded(t *testing.T) {
	b := newBed(Config{MinCalls: 1, Cooldown: time.Second})
	b.hook = func(_ context.Context, e observe.Event) { panic("observer: " + e.To) }
	assert.PanicsWithValue(t, "observer: open", func() { b.fail(1) })
	assert.Equal(t, Open, b.State())
	assert.EqualValues(t, 1, b.row("switchgear.circuit_breaker.calls", "closed", "failure"))
	b.told()

	b.advance(time.Second)
	assert.PanicsWithValue(t, "observer: half_open", func() { b.call(nil) }, "told before fn runs")
	assert.Equal(t, HalfOpen, b.State())
	assert.Zero(t, b.Stats().Probing, "the slot is free")
	assert.PanicsWithValue(t, "observer: closed", func() { b.call(nil) })
	assert.Equal(t, Closed, b.State())
	assert.PanicsWithValue(t, "observer: forced_open", b.ForceOpen)
	assert.PanicsWithValue(t, "observer: ", func() { b.call(nil) }, "a refusal")
	b.hook = nil
	assert.True(t, b.refuses())
}

func TestAPermitIsGivenBackWhenTheObserverPanics(t *testing.T) {
	b := newBed(Config{})
	b.Trip()
	b.advance(time.Hour)
	b.hook = func(context.Context, observe.Event) { panic("observer") }
	assert.PanicsWithValue(t, "observer", func() { _, _ = b.Allow(context.Background()) })
	b.hook = nil
	assert.Zero(t, b.Stats().Probing)
	b.allow(t)
}

func TestWhatAPanickingObserverLeavesIsToldByTheNextCall(t *testing.T) {
	for name, next := range map[string]func(b *bed){
		"a refusal":     func(b *bed) { b.refuses() },
		"a late result": func(b *bed) { b.hook = nil },
		"an operator":   func(b *bed) { b.ForceOpen() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(Config{MinCalls: 1})
			running := b.allow(t)
			b.hook = func(context.Context, observe.Event) {
				b.hook = nil
				b.ForceClosed()
				b.ForceOpen()
				panic("observer")
			}
			assert.Panics(t, func() { b.fail(1) })
			assert.Equal(t, "0s closed→open failure_ratio", b.told())
			next(b)
			running.Done(nil)
			assert.Equal(t, "0s open→forced_closed manual, 0s forced_closed→forced_open manual", b.told())
			b.Reset()
			assert.Equal(t, "0s forced_open→closed manual", b.told())
		})
	}
}

func TestAPanicOfFnWinsOverTheObservers(t *testing.T) {
	b := newBed(Config{MinCalls: 1})
	b.hook = func(context.Context, observe.Event) { panic("observer") }
	assert.PanicsWithValue(t, "fn", func() {
		_ = b.Do(context.Background(), func(context.Context) error { panic("fn") })
	})
	assert.Equal(t, Open, b.State())
	assert.Equal(t, observe.ErrPanicked, b.Stats().LastFailure)
	b.quietly(b.Reset)
	exited := false
	apart(func() {
		defer func() { exited = recover() == nil }()
		_ = b.Do(context.Background(), func(context.Context) error { runtime.Goexit(); return nil })
	})
	assert.True(t, exited, "Goexit goes on too")
	assert.Equal(t, Open, b.State())
}

// quietly does something while the hook is off.
func (b *bed) quietly(do func()) {
	hook := b.hook
	b.hook = nil
	do()
	b.hook = hook
}

func TestAnObserverThatBlocksHoldsUpNobodyElse(t *testing.T) {
	b := newBed(Config{MinCalls: 1})
	release, entered := make(chan struct{}), make(chan struct{})
	b.hook = func(_ context.Context, e observe.Event) {
		if e.Reason == reasonFailureRatio {
			close(entered)
			<-release
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { b.fail(1) })
	<-entered
	assert.True(t, b.refuses())
	b.advance(time.Hour)
	b.succeed(1)
	assert.Equal(t, Closed, b.State())
	assert.Len(t, b.events, 2, "the trip and the refusal; the others wait for their turn")
	close(release)
	wg.Wait()
	assert.Equal(t, "0s closed→open failure_ratio, 5s open→half_open cooldown_elapsed, 1h0m0s half_open→closed probe_succeeded", b.told())
}

// The report: failsafe-go#56.
func TestAChangeIsToldWithTheContextOfTheCallThatMadeIt(t *testing.T) {
	type key struct{}
	b := newBed(Config{MinCalls: 1})
	ctx := context.WithValue(context.Background(), key{}, "caller")
	p, err := b.Allow(ctx)
	require.NoError(t, err)
	p.Done(errDown)
	_, err = b.Allow(context.WithValue(ctx, key{}, "refused"))
	require.ErrorIs(t, err, ErrCircuitOpen)
	b.Reset()
	require.Len(t, b.ctxs, 3)
	assert.Equal(t, "caller", b.ctxs[0].Value(key{}))
	assert.Equal(t, "refused", b.ctxs[1].Value(key{}))
	assert.Nil(t, b.ctxs[2].Value(key{}), "an operator has none")
}

func TestAPanicInAJudgeIsAFailure(t *testing.T) {
	for name, cfg := range map[string]Config{
		"Classify": {Classify: func(context.Context, error) policy.Outcome { panic("judge") }},
		"TripOn":   {TripOn: func(error) (time.Duration, bool) { panic("judge") }},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.MinCalls = 1
			b := newBed(cfg)
			assert.PanicsWithValue(t, "judge", func() { b.call(errDown) })
			assert.Equal(t, Open, b.State())
			b.Reset()
			p := b.allow(t)
			assert.PanicsWithValue(t, "judge", func() { p.Done(errDown) })
			assert.Equal(t, Open, b.State())
			assert.Equal(t, errDown, b.Stats().LastFailure)
		})
	}
}
