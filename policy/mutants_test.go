package policy

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCauseTellsOfAnEndThatNobodyWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := Timeout(time.Second).Do(t.Context(), func(ctx context.Context) error {
			time.Sleep(2 * time.Second)
			return context.Cause(ctx) // the first that anybody asks of it
		})
		assert.ErrorIs(t, err, ErrTimeout)
		var outer, inner *TimeoutError
		require.ErrorAs(t, err, &outer)
		require.ErrorAs(t, outer.Err, &inner, "the cause")
		assert.Equal(t, time.Second, inner.Limit)
	})
}

// hasty is a context that knows of its end without asking the one it is derived from.
type hasty struct{ context.Context }

func (hasty) Err() error { return context.DeadlineExceeded }

func TestCauseIsFoundThroughAContextThatKnowsOfItsEndByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_ = Timeout(time.Second).Do(t.Context(), func(ctx context.Context) error {
			time.Sleep(2 * time.Second)
			assert.ErrorIs(t, context.Cause(hasty{ctx}), ErrTimeout, "as with context.WithTimeoutCause")
			return nil
		})
	})
}

func TestATimeoutTooLongToEndSetsNoTimer(t *testing.T) {
	err := Timeout(1<<63-1).Do(t.Context(), func(ctx context.Context) error {
		assert.NoError(t, ctx.Err())
		assert.Nil(t, ctx.(*limited).armed.Load(), "there is no end to wait for")
		return nil
	})
	assert.NoError(t, err)
}

func TestAValueThatTheCallerHasIsNotClosedWhenALateRunReturnsItToo(t *testing.T) {
	overtaken := PolicyFunc(func(ctx context.Context, fn Func) error {
		winner, keep := Fork(ctx)
		loser, drop := Fork(ctx)
		err := fn(winner)
		keep(true)
		drop(false)
		_ = fn(loser) // it ends after its fate was decided
		return err
	})
	shared := &thing{}
	v, err := Get(t.Context(), overtaken, func(context.Context) (*thing, error) { return shared, nil })
	assert.NoError(t, err)
	assert.Same(t, shared, v)
	assert.Zero(t, shared.closed.Load())
}
