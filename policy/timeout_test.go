package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy/observe"
)

// events collects what an observer is told.
type events struct{ all []observe.Event }

func (e *events) Observe(_ context.Context, ev observe.Event) { e.all = append(e.all, ev) }
func (e *events) Attach(observe.Source) observe.Probe         { return nil }

// bound returns a timeout that reports to o, and its counts.
func boundTo(limit time.Duration, o observe.Observer) *boundTimeout {
	return Timeout(limit).(*timeout).Bind("charge", o).(*boundTimeout)
}

func (t *boundTimeout) results() string {
	return fmt.Sprint(t.counts[0].Load(), t.counts[1].Load(), t.counts[2].Load(), t.counts[3].Load())
}

func TestTimeout(t *testing.T) {
	failed := errors.New("failed")
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	take := func(d time.Duration, err error) Func {
		return func(context.Context) error { time.Sleep(d); return err }
	}
	withTimeout := func(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
		return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
	}
	canceledAfter := func(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
		return func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			timer := time.AfterFunc(d, cancel)
			return ctx, func() { timer.Stop(); cancel() }
		}
	}
	tests := []struct {
		name    string
		caller  func(context.Context) (context.Context, context.CancelFunc)
		fn      Func
		is, not []error
		results string // completed, late, timed out, canceled
		events  int
	}{
		{name: "fn within the limit", fn: take(time.Second, nil), results: "1 0 0 0"},
		{name: "an error within the limit", fn: take(time.Second, failed), is: []error{failed}, not: []error{ErrTimeout}, results: "1 0 0 0"},
		{name: "fn heeds the limit", fn: hang, is: []error{ErrTimeout, context.DeadlineExceeded}, results: "0 0 1 0", events: 1},
		{name: "an error after the limit", fn: take(9*time.Second, failed), is: []error{ErrTimeout, context.DeadlineExceeded, failed}, results: "0 0 1 0", events: 1},
		{name: "nil after the limit stays nil", fn: take(9*time.Second, nil), results: "0 1 0 0"},
		{name: "nothing, at the limit's very instant, is late", fn: take(5*time.Second, nil), results: "0 1 0 0"},
		{name: "a healthy answer after the limit", fn: take(9*time.Second, Healthy(failed)), is: []error{ErrTimeout, failed}, results: "0 0 1 0", events: 1},
		{name: "the caller's deadline first", caller: withTimeout(time.Second), fn: hang, is: []error{context.DeadlineExceeded}, not: []error{ErrTimeout}, results: "0 0 0 1"},
		{name: "the caller cancels first", caller: canceledAfter(time.Second), fn: hang, is: []error{context.Canceled}, not: []error{ErrTimeout}, results: "0 0 0 1"},
		{name: "the caller cancels and fn succeeds", caller: canceledAfter(time.Second), fn: take(2*time.Second, nil), results: "1 0 0 0"},
		{name: "the caller's deadline later", caller: withTimeout(time.Minute), fn: hang, is: []error{ErrTimeout}, results: "0 0 1 0", events: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if tt.caller != nil {
					ctx, cancel = tt.caller(ctx)
				}
				defer cancel()
				seen := &events{}
				p := boundTo(5*time.Second, seen)
				start := time.Now()
				err := p.Do(ctx, tt.fn)
				if tt.is == nil {
					require.NoError(t, err)
				}
				for _, want := range tt.is {
					assert.ErrorIs(t, err, want)
				}
				for _, other := range tt.not {
					assert.NotErrorIs(t, err, other)
				}
				assert.Equal(t, tt.results, p.results())
				require.Len(t, seen.all, tt.events)
				if tt.events > 0 {
					e := seen.all[0]
					assert.Equal(t, observe.TimedOut, e.Kind)
					assert.Equal(t, "charge", e.Name)
					assert.Equal(t, 5*time.Second, e.Delay)
					assert.True(t, e.Time.Equal(start.Add(5*time.Second)), "it took effect at the limit: %v", e.Time)
					var te *TimeoutError
					require.ErrorAs(t, err, &te)
					assert.Equal(t, 5*time.Second, te.Limit)
				}
			})
		})
	}
}

// fn's context must end, with a cause that tells why (afex/hystrix-go#84).
func TestFnIsToldOfTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		start := time.Now()
		err := Timeout(time.Second).Do(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return io.ErrUnexpectedEOF
		})
		assert.Equal(t, time.Second, time.Since(start))
		require.ErrorIs(t, cause, ErrTimeout)
		require.ErrorIs(t, cause, context.DeadlineExceeded)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		var timeout interface{ Timeout() bool }
		require.ErrorAs(t, err, &timeout)
		assert.True(t, timeout.Timeout())
	})
}

// Whose deadline fired has to be told apart (golang/go#35791).
func TestNestedTimeoutsTellWhichFired(t *testing.T) {
	for _, tt := range []struct{ outer, inner, fired time.Duration }{
		{50 * time.Millisecond, time.Second, 50 * time.Millisecond},
		{time.Second, 50 * time.Millisecond, 50 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := NewPipeline("nested", Timeout(tt.outer), Timeout(tt.inner))
			err := p.Do(t.Context(), func(ctx context.Context) error {
				<-ctx.Done()
				cause := new(TimeoutError)
				require.ErrorAs(t, context.Cause(ctx), &cause)
				assert.Equal(t, tt.fired, cause.Limit)
				return ctx.Err()
			})
			te := new(TimeoutError)
			require.ErrorAs(t, err, &te)
			assert.Equal(t, tt.fired, te.Limit)
		})
	}
}

func TestAPanicAfterTheLimitReachesTheCallerOnceAndCountsAsTimedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &events{}
		p := boundTo(time.Second, seen)
		value := errors.New("the very value")
		assert.PanicsWithValue(t, value, func() {
			_ = p.Do(t.Context(), func(context.Context) error { time.Sleep(time.Minute); panic(value) })
		})
		assert.Equal(t, "0 0 1 0", p.results())
		assert.Len(t, seen.all, 1)
		assert.PanicsWithValue(t, value, func() {
			_ = p.Do(t.Context(), func(context.Context) error { panic(value) })
		})
		assert.Equal(t, "1 0 1 0", p.results(), "a panic within the limit is no timeout")
	})
}

func TestAPanicOfFnWinsOverOneOfTheObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := boundTo(time.Second, observe.Func(func(context.Context, observe.Event) { panic("observer") }))
		assert.PanicsWithValue(t, "fn", func() {
			_ = p.Do(t.Context(), func(context.Context) error { time.Sleep(time.Minute); panic("fn") })
		})
		assert.PanicsWithValue(t, "observer", func() {
			_ = p.Do(t.Context(), func(context.Context) error { time.Sleep(time.Minute); return io.EOF })
		})
		assert.Equal(t, "0 0 2 0", p.results())
		exited := false
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { exited = recover() == nil }()
			_ = p.Do(t.Context(), func(context.Context) error { time.Sleep(time.Minute); runtime.Goexit(); return nil })
		}()
		<-done
		assert.True(t, exited, "a Goexit of fn too")
	})
}

func TestADoneContextRunsNothingAndCountsNowhere(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	p := boundTo(time.Second, observe.Discard)
	f := Fallback(func(context.Context, error) error { t.Error("no fallback"); return nil })
	for ctx, want := range map[context.Context]error{canceled: context.Canceled, late: context.DeadlineExceeded} {
		for _, q := range []Policy{p, f, Timeout(time.Second), NewPipeline("p", p, f), NewPipeline("empty")} {
			assert.Equal(t, want, q.Do(ctx, func(context.Context) error { t.Error("fn ran"); return nil }))
			_, err := Get(ctx, q, func(context.Context) (int, error) { t.Error("fn ran"); return 0, nil })
			assert.Equal(t, want, err)
		}
	}
	assert.Equal(t, "0 0 0 0", p.results())
}

func TestTimeoutRefusesALimitThatIsNone(t *testing.T) {
	for _, limit := range []time.Duration{0, -1} {
		assert.PanicsWithValue(t, "policy: Timeout: limit is "+limit.String()+", must be above 0", func() { Timeout(limit) })
	}
}

func TestAHugeLimitDoesNotOverflow(t *testing.T) {
	require.NoError(t, Timeout(1<<63-1).Do(t.Context(), func(ctx context.Context) error { return ctx.Err() }))
}

// unbound is a Binder that returns a nil pointer.
type unbound struct{}

func (unbound) Do(ctx context.Context, fn Func) error        { return fn(ctx) }
func (unbound) Name() string                                 { return "" }
func (unbound) Bind(string, observe.Observer) (bound Policy) { return (*Pipeline)(nil) }

func TestNilsArePanicsWithAClearText(t *testing.T) {
	ok := func(context.Context) error { return nil }
	p := NewPipeline("charge", Timeout(time.Second))
	for name, tt := range map[string]struct {
		call func()
		want string
	}{
		"fn":            {func() { _ = p.Do(t.Context(), nil) }, "policy: pipeline charge: nil fn"},
		"ctx":           {func() { _ = p.Do(nil, ok) }, "policy: pipeline charge: nil context"}, //nolint:staticcheck // the point
		"timeout":       {func() { _ = Timeout(1).Do(t.Context(), nil) }, "policy: timeout: nil fn"},
		"timeout ctx":   {func() { _ = Timeout(1).Do(nil, ok) }, "policy: timeout: nil context"}, //nolint:staticcheck // the point
		"fallback":      {func() { Fallback(nil) }, "policy: Fallback: nil fn"},
		"fallbackValue": {func() { FallbackValue[int](nil) }, "policy: FallbackValue: nil fn"},
		"wrap":          {func() { Wrap(p, nil) }, "policy: Wrap with a nil fn"},
		"wrap policy":   {func() { Wrap(nil, ok) }, "policy: Wrap with a nil policy"},
		"wrap pointer":  {func() { Wrap((*Pipeline)(nil), ok) }, "policy: Wrap with a nil policy"},
		"bind":          {func() { NewPipeline("charge", unbound{}) }, "policy: pipeline charge: Bind of policy.unbound returned nil"},
		"get":           {func() { _, _ = Get[int](t.Context(), p, nil) }, "policy: Get with a nil fn"},
		"get policy":    {func() { _, _ = Get(t.Context(), nil, func(context.Context) (int, error) { return 0, nil }) }, "policy: Get with a nil policy"},
	} {
		t.Run(name, func(t *testing.T) { assert.PanicsWithValue(t, tt.want, tt.call) })
	}
}
