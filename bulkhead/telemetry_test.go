package bulkhead

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/internal/recorder"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

func TestItReportsWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &recorder.Recorder{}
		b := New("payments", Config{Max: 1, Queue: 2, MaxWait: 10 * time.Second, Observer: o})
		assert.Equal(t, "bulkhead", o.Source.Policy)
		assert.Equal(t, "payments", o.Source.Name)
		assert.Equal(t, map[string]int64{
			"switchgear.bulkhead.calls acquired": 0, "switchgear.bulkhead.calls rejected": 0,
			"switchgear.bulkhead.calls timeout": 0, "switchgear.bulkhead.calls canceled": 0,
			"switchgear.bulkhead.usage": 0, "switchgear.bulkhead.limit": 1,
			"switchgear.bulkhead.queue.usage": 0, "switchgear.bulkhead.queue.limit": 2,
		}, o.Rows(t), "all at zero from the start")

		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "caller")
		p := policy.NewPipeline("charge", b).Observed(observe.Discard)
		fn := func(context.Context) error { return nil }
		release := hold(t, b, 1)[0]
		leaving, leave := context.WithTimeout(t.Context(), 4*time.Second)
		defer leave()
		first := busy(leaving, b, 1, 0)
		second := make(chan error, 1)
		go func() { second <- p.Do(ctx, fn) }()
		synctest.Wait()
		assert.EqualValues(t, 2, o.Rows(t)["switchgear.bulkhead.queue.usage"])
		refusedAt := time.Now()
		atOnce := p.Do(ctx, fn)
		require.ErrorIs(t, atOnce, ErrFull)
		require.ErrorIs(t, <-first, context.DeadlineExceeded)
		expired := <-second
		require.ErrorIs(t, expired, ErrFull)
		third := busy(t.Context(), b, 1, 0)
		time.Sleep(5 * time.Second)
		release()
		require.NoError(t, <-third)

		assert.Equal(t, []observe.Event{
			{Kind: observe.Rejected, Policy: "bulkhead", Name: "payments", Pipeline: "charge", Reason: "rejected", Err: atOnce, Time: refusedAt},
			{Kind: observe.Rejected, Policy: "bulkhead", Name: "payments", Pipeline: "charge", Reason: "timeout", Err: expired, Time: refusedAt.Add(10 * time.Second)},
		}, o.Events)
		for _, ctx := range o.Contexts {
			assert.Equal(t, "caller", ctx.Value(key{}))
		}
		assert.Equal(t, map[string][]time.Duration{
			"switchgear.bulkhead.wait.duration canceled": {4 * time.Second},
			"switchgear.bulkhead.wait.duration timeout":  {10 * time.Second},
			"switchgear.bulkhead.wait.duration acquired": {5 * time.Second},
		}, o.Waits)
		assert.Equal(t, map[string]int64{
			"switchgear.bulkhead.calls acquired": 2, "switchgear.bulkhead.calls rejected": 1,
			"switchgear.bulkhead.calls timeout": 1, "switchgear.bulkhead.calls canceled": 1,
			"switchgear.bulkhead.usage": 0, "switchgear.bulkhead.limit": 1,
			"switchgear.bulkhead.queue.usage": 0, "switchgear.bulkhead.queue.limit": 2,
		}, o.Rows(t))
		assert.Equal(t, Stats{Max: 1, Queue: 2, Acquired: 2, Rejected: 1, TimedOut: 1, Canceled: 1}, b.Stats())
	})
}

func TestRowsOfWhatIsNotConfiguredAreAbsent(t *testing.T) {
	o := &recorder.Recorder{}
	b := New("payments", Config{Max: 3, Observer: o})
	hold(t, b, 2)
	b.Resize(5)
	assert.Equal(t, map[string]int64{
		"switchgear.bulkhead.calls acquired": 2, "switchgear.bulkhead.calls rejected": 0,
		"switchgear.bulkhead.calls timeout": 0, "switchgear.bulkhead.calls canceled": 0,
		"switchgear.bulkhead.usage": 2, "switchgear.bulkhead.limit": 5,
	}, o.Rows(t))
	runtime.KeepAlive(b)
	b = New("payments", Config{Max: 3, Shadow: true, Observer: o})
	assert.Contains(t, o.Rows(t), "switchgear.bulkhead.would_reject")
	runtime.KeepAlive(b)
}

func TestADroppedBulkheadIsFreed(t *testing.T) {
	o := &recorder.Recorder{}
	func() { hold(t, New("payments", Config{Max: 1, Observer: o}), 1)[0]() }()
	for range 20 {
		runtime.GC()
	}
	assert.False(t, o.Source.Live(make([]int64, 4)))
	assert.EqualValues(t, 1, o.Source.Counts[0].Load(), "its counts stay")
}
