package badday

import (
	"context"
	"errors"

	"github.com/sony/gobreaker/v2"
)

func goBreakerWith(tell func(rule, *gobreaker.Settings)) func(rule) guard {
	return func(r rule) guard {
		s := gobreaker.Settings{Timeout: r.cooldown, Interval: r.window}
		s.ReadyToTrip = func(c gobreaker.Counts) bool {
			switch {
			case r.inARow > 0:
				return c.ConsecutiveFailures >= uint32(r.inARow)
			case r.failures > 0:
				return c.TotalFailures >= uint32(r.failures)
			}
			return c.Requests >= uint32(r.minimum) && float64(c.TotalFailures)/float64(c.Requests) >= r.ratio
		}
		if r.onChange != nil {
			s.OnStateChange = func(string, gobreaker.State, gobreaker.State) { r.onChange() }
		}
		tell(r, &s)
		b := gobreaker.NewCircuitBreaker[any](s)
		return guardFunc(func(ctx context.Context, fn func(context.Context) error) error {
			_, err := b.Execute(func() (any, error) { return nil, fn(ctx) })
			return err
		})
	}
}

func goBreaker() library {
	excluded := remedy{"`IsExcluded`", func(l *library) {
		l.breaker = goBreakerWith(func(_ rule, s *gobreaker.Settings) {
			s.IsExcluded = func(err error) bool { return errors.Is(err, context.Canceled) }
		})
	}}
	expired := remedy{"`IsExcluded`", func(l *library) {
		l.breaker = goBreakerWith(func(_ rule, s *gobreaker.Settings) {
			s.IsExcluded = func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }
		})
	}}
	rolling := remedy{"`BucketPeriod`", func(l *library) {
		l.breaker = goBreakerWith(func(r rule, s *gobreaker.Settings) { s.BucketPeriod = r.window / 10 })
	}}
	return library{
		name:    "gobreaker",
		module:  "github.com/sony/gobreaker/v2",
		breaker: goBreakerWith(func(rule, *gobreaker.Settings) {}),
		remedies: map[string]remedy{
			"probe-canceled":      excluded,
			"cancellations":       excluded,
			"cancellations-count": excluded,
			"done-context":        expired,
			"slower-than-window":  rolling,
			"across-the-edge":     rolling,
		},
	}
}
