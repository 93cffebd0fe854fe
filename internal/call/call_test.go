package call

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/switchgear-go/switchgear/internal/instant"
	"github.com/switchgear-go/switchgear/policy/observe"
)

func TestStartIsTheInnermostStartThatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := Instant(instant.Now())
		assert.Equal(t, begin, Start(t.Context()), "now, where none is known")
		attempt := &Attempt{Context: t.Context(), Number: 2, Start: begin}
		time.Sleep(time.Second)
		assert.Equal(t, begin, Start(attempt))
		again := Restart(attempt)
		assert.Equal(t, begin+Instant(time.Second), Start(again))
		time.Sleep(time.Second)
		assert.Equal(t, begin+Instant(time.Second), Start(context.WithValue(again, attemptKey{}, nil)))
		assert.Equal(t, attempt, AttemptOf(again))
		assert.Nil(t, AttemptOf(t.Context()))
	})
}

func TestTellKeepsAnObserversPanicFromTakingThePlaceOfFns(t *testing.T) {
	o := observe.Func(func(context.Context, observe.Event) { panic("observer") })
	assert.NotPanics(t, func() { Tell(t.Context(), o, observe.Event{}, false) })
	assert.PanicsWithValue(t, "observer", func() { Tell(t.Context(), o, observe.Event{}, true) })
	assert.PanicsWithValue(t, "fn", func() {
		defer Tell(t.Context(), o, observe.Event{}, false)
		panic("fn")
	})
}

// odd is a context of a type that can be compared, with values that cannot.
type odd struct {
	context.Context
	data any
}

func TestLifeBearsContextsThatCannotBeCompared(t *testing.T) {
	ctx := odd{t.Context(), []int{}}
	_, ok := Life(ctx, ctx)
	assert.False(t, ok, "it cannot tell")
	_, ok = Life(&Attempt{Context: ctx}, ctx)
	assert.False(t, ok)
	end, ok := Life(&Attempt{Context: odd{Context: t.Context()}}, odd{Context: t.Context()})
	assert.True(t, ok)
	assert.Equal(t, Never, end)
}
