package policy

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/switchgear-go/switchgear/internal/cancelkey"
	"github.com/switchgear-go/switchgear/internal/instant"
)

func newLimited(parent context.Context, limit time.Duration) *limited {
	return &limited{Context: parent, end: instant.Now() + limit, cause: TimeoutError{Limit: limit}}
}

func TestTheKeyThatPackageContextLooksForIsKnown(t *testing.T) {
	require.NotNil(t, cancelkey.Key)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	assert.NotNil(t, ctx.Value(cancelkey.Key), "a context of the standard library answers it")
}

// side is one of the two contexts that the parity test compares.
type side struct {
	ctx      context.Context
	release  func()
	children []context.Context
	cancels  []context.CancelFunc
	ran      []*atomic.Bool // by AfterFuncs
	stops    []func() bool
}

var errAsked = errors.New("asked to stop")

// look tells all that can be seen of a context, without its Deadline's absolute time.
func look(ctx context.Context, own error) string {
	done := false
	select {
	case <-ctx.Done():
		done = true
	default:
	}
	cause := context.Cause(ctx)
	told := fmt.Sprint(cause)
	if errors.Is(cause, ErrTimeout) || errors.Is(cause, own) {
		told = "the limit"
	}
	at, has := ctx.Deadline()
	return fmt.Sprintf("err=%v cause=%v done=%v deadline=%v/%v value=%v", ctx.Err(), told, done, at.Round(0), has, ctx.Value(parityKey{}))
}

type parityKey struct{}

// TestALimitedContextEqualsOneOfTheStandardLibrary runs random scripts against both.
func TestALimitedContextEqualsOneOfTheStandardLibrary(t *testing.T) {
	const unit = 2 * time.Millisecond // the deadlines of parent and children lie between: no two ends share an instant
	rapid.Check(t, func(rt *rapid.T) {
		parentKind := rapid.SampledFrom([]string{"background", "cancel", "deadline", "limited", "custom"}).Draw(rt, "parent")
		parentEnd := time.Duration(rapid.IntRange(0, 12).Draw(rt, "parentEnd"))*unit + unit/2
		limit := time.Duration(rapid.IntRange(1, 12).Draw(rt, "limit")) * unit
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{
			"advance", "advance", "cancelParent", "look", "err", "cause", "done", "child", "childTimeout", "afterFunc", "without", "cancelChild", "stop", "release", "lookChildren",
		}), 0, 25).Draw(rt, "steps")
		problem := ""
		synctest.Test(t, func(t *testing.T) { problem = parity(parentKind, parentEnd, limit, unit, steps) })
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

// custom is a context of a stranger: it has no key that package context knows.
type custom struct{ context.Context }

func (c custom) Value(any) any { return nil }

func parity(parentKind string, parentEnd, limit, unit time.Duration, steps []string) string {
	parent := context.WithValue(context.Background(), parityKey{}, "v")
	cancelParent := func() {}
	switch parentKind {
	case "cancel", "custom":
		ctx, cancel := context.WithCancelCause(parent)
		parent, cancelParent = ctx, func() { cancel(errAsked) }
		if parentKind == "custom" {
			parent = custom{ctx}
		}
	case "deadline":
		ctx, cancel := context.WithTimeout(parent, parentEnd)
		parent, cancelParent = ctx, cancel
	case "limited":
		ctx := newLimited(parent, parentEnd)
		parent, cancelParent = ctx, func() { ctx.release() }
	}
	cause := errors.New("the limit")
	var sides [2]side
	ours := newLimited(parent, limit)
	sides[0] = side{ctx: ours, release: func() { ours.release() }}
	std, cancel := context.WithDeadlineCause(parent, time.Now().Add(limit), cause)
	sides[1] = side{ctx: std, release: cancel}
	start := time.Now()
	seen := true // whether ours was looked at since the last thing that may have ended it
	defer func() {
		for i := range sides {
			sides[i].release()
			for _, c := range sides[i].cancels {
				c()
			}
		}
		cancelParent()
		synctest.Wait()
	}()
	for n, step := range append(steps, "look", "lookChildren", "release", "look", "lookChildren") {
		var got [2]string
		// Where the parent and the limit ended since anyone looked, the parent's end wins here and the earlier one there.
		if parent.Err() != nil && time.Since(start) >= limit && !seen {
			return ""
		}
		switch step {
		case "advance":
			time.Sleep(unit)
			synctest.Wait()
			seen = ours.armed.Load() != nil
			continue
		case "cancelParent":
			if time.Since(start) >= limit && ours.armed.Load() == nil {
				continue
			}
			cancelParent()
			synctest.Wait()
			seen = ours.armed.Load() != nil
			continue
		}
		seen = true
		for i := range sides {
			s := &sides[i]
			switch step {
			case "look":
				got[i] = look(s.ctx, cause)
			case "err":
				got[i] = fmt.Sprint(s.ctx.Err())
			case "cause":
				c := context.Cause(s.ctx)
				got[i] = fmt.Sprint(c == nil, errors.Is(c, ErrTimeout) || errors.Is(c, cause))
			case "done":
				select {
				case <-s.ctx.Done():
					got[i] = "done"
				default:
				}
			case "child":
				ctx, cancel := context.WithCancel(s.ctx)
				s.children, s.cancels = append(s.children, ctx), append(s.cancels, cancel)
			case "childTimeout":
				ctx, cancel := context.WithTimeout(s.ctx, 3*unit+unit/4)
				s.children, s.cancels = append(s.children, ctx), append(s.cancels, cancel)
			case "without":
				ctx := context.WithoutCancel(s.ctx)
				got[i] = fmt.Sprint(ctx.Err(), context.Cause(ctx))
			case "afterFunc":
				ran := new(atomic.Bool)
				s.ran = append(s.ran, ran)
				s.stops = append(s.stops, context.AfterFunc(s.ctx, func() { ran.Store(true) }))
			case "stop":
				if len(s.stops) > 0 {
					got[i] = fmt.Sprint(s.stops[len(s.stops)-1]())
				}
			case "cancelChild":
				if len(s.cancels) > 0 {
					s.cancels[len(s.cancels)-1]()
				}
			case "release":
				s.release()
			case "lookChildren":
				for _, c := range s.children {
					got[i] += look(c, cause) + "; "
				}
				for _, r := range s.ran {
					got[i] += fmt.Sprint(r.Load())
				}
			}
			synctest.Wait()
		}
		if got[0] != got[1] {
			return fmt.Sprintf("step %d (%s) of %v, parent %s until %v, limit %v:\n ours %s\n std  %s", n, step, steps, parentKind, parentEnd, limit, got[0], got[1])
		}
	}
	return ""
}

func TestALimitedContextWithinItsLimitSetsNoTimer(t *testing.T) {
	c := newLimited(t.Context(), time.Hour)
	require.NoError(t, c.Err())
	require.NoError(t, context.Cause(c))
	_, ok := c.Deadline()
	require.True(t, ok)
	require.Nil(t, c.Value(parityKey{}))
	assert.Nil(t, c.armed.Load())
	c.release()
	assert.Equal(t, context.Canceled, c.Err())
	assert.Equal(t, context.Canceled, context.Cause(c))
	<-c.Done()
}

func TestTheDeadlineOfALimitedContextIsStable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newLimited(t.Context(), time.Second)
		want := time.Now().Add(time.Second)
		at, _ := c.Deadline()
		assert.True(t, want.Equal(at), "want %v, got %v", want, at)
		time.Sleep(time.Minute)
		again, _ := c.Deadline()
		assert.Equal(t, at, again)
		assert.ErrorIs(t, c.Err(), context.DeadlineExceeded)
		again, _ = c.Deadline()
		assert.Equal(t, at, again)
		c.release()
		assert.ErrorIs(t, c.Err(), context.DeadlineExceeded, "a context that has ended stays as it ended")
	})
}

func TestADoneChannelClosesAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newLimited(context.Background(), time.Second)
		defer c.release()
		start := time.Now()
		<-c.Done()
		assert.Equal(t, time.Second, time.Since(start))
	})
}

// Calls under one long-lived parent must leave nothing in it (failsafe-go#134).
func TestAMillionCallsLeaveNothingUnderALongLivedParent(t *testing.T) {
	parent, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := NewPipeline("many", Timeout(time.Hour))
	run := func(n int) {
		for range n {
			_ = p.Do(parent, func(ctx context.Context) error {
				if n&1 == 0 {
					_ = ctx.Done() // arms it
				}
				return nil
			})
		}
	}
	run(1000)
	before := liveHeap()
	n := 1_000_000
	if raceEnabled {
		n = 50_000
	}
	run(n)
	run(n/10 - 1)
	assert.Less(t, liveHeap(), before+1<<20)
}

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestLimitedIsSafeForConcurrentUse(t *testing.T) {
	for range 200 {
		parent, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		c := newLimited(parent, 50*time.Microsecond)
		done := make(chan struct{})
		for i := range 4 {
			go func() {
				defer func() { done <- struct{}{} }()
				switch i {
				case 0:
					cancel()
				case 1:
					<-c.Done()
				case 2:
					child, stop := context.WithCancel(c)
					<-child.Done()
					stop()
				case 3:
					for c.Err() == nil {
						runtime.Gosched()
					}
				}
			}()
		}
		for range 4 {
			<-done
		}
		ended := c.Err()
		require.Error(t, ended)
		require.Equal(t, ended, c.Err(), "it stays as it ended")
		c.release()
	}
}
