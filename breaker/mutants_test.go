package breaker

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

func TestAnOutcomeThatIsNoneIsAFailure(t *testing.T) {
	for _, outcome := range []policy.Outcome{-1, 3, 100} {
		b := New("api", Config{
			Consecutive: 1, Observer: observe.Discard,
			Classify: func(context.Context, error) policy.Outcome { return outcome },
		})
		_ = b.Do(t.Context(), func(context.Context) error { return nil })
		assert.Equal(t, Open, b.State(), "outcome %d", outcome)
	}
}

// A product of floats may be a little above or below the whole number: .07*100 is more than 7, .29*100 less than 29.
func TestARatioOpensAtExactlyThatManyFailures(t *testing.T) {
	for percent := 1; percent <= 100; percent++ {
		for _, failed := range []int{percent - 1, percent} {
			b := New("api", Config{FailureRatio: float64(percent) / 100, MinCalls: 100, Observer: observe.Discard})
			for i := range 100 {
				_ = b.Do(t.Context(), func(context.Context) error {
					if i < failed {
						return errDown
					}
					return nil
				})
			}
			assert.Equal(t, failed == percent, b.State() == Open, "%d of 100 failed, at a ratio of %d/100", failed, percent)
		}
	}
}
