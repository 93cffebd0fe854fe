package badday

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/failsafe-go/failsafe-go/timeout"
)

// under runs functions under policies of failsafe-go.
func under(policies ...failsafe.Policy[any]) guard {
	executor := failsafe.With(policies...)
	return guardFunc(func(ctx context.Context, fn func(context.Context) error) error {
		return executor.WithContext(ctx).RunWithExecution(func(e failsafe.Execution[any]) error { return fn(e.Context()) })
	})
}

func failsafeBreaker(tell func(circuitbreaker.Builder[any]) circuitbreaker.Builder[any]) func(rule) guard {
	return func(r rule) guard {
		b := circuitbreaker.NewBuilder[any]().WithDelay(r.cooldown)
		switch {
		case r.inARow > 0:
			b = b.WithFailureThreshold(uint(r.inARow))
		case r.failures > 0:
			b = b.WithFailureThresholdPeriod(uint(r.failures), r.window)
		default:
			b = b.WithFailureRateThreshold(r.ratio, uint(r.minimum), r.window)
		}
		if r.onChange != nil {
			b = b.OnStateChanged(func(circuitbreaker.StateChangedEvent) { r.onChange() })
		}
		return under(tell(b).Build())
	}
}

func failsafeRetry(tell func(retrypolicy.Builder[any]) retrypolicy.Builder[any]) func(schedule) guard {
	return func(s schedule) guard {
		return under(tell(retrypolicy.NewBuilder[any]().WithMaxAttempts(s.attempts).WithBackoff(s.first, s.longest)).Build())
	}
}

// failsafeHinted is its retry for HTTP, the one that knows hints, over a server that sends them.
func failsafeHinted(tell func(retrypolicy.Builder[*http.Response]) retrypolicy.Builder[*http.Response]) func(time.Duration) guard {
	return func(hint time.Duration) guard {
		return guardFunc(func(ctx context.Context, fn func(context.Context) error) error {
			server := roundTrip(func(req *http.Request) (*http.Response, error) {
				code := http.StatusOK
				if fn(req.Context()) != nil {
					code = http.StatusServiceUnavailable
				}
				seconds := strconv.Itoa(int(hint.Seconds()))
				return &http.Response{StatusCode: code, Header: http.Header{"Retry-After": {seconds}}, Body: http.NoBody}, nil
			})
			client := failsafehttp.NewRoundTripper(server, tell(failsafehttp.NewRetryPolicyBuilder()).Build()) //nolint:bodyclose // nothing is sent yet
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://dependency", nil)
			if err != nil {
				return err
			}
			resp, err := client.RoundTrip(req)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

func failsafeHedge(tell func(hedgepolicy.Builder[any]) hedgepolicy.Builder[any]) func(time.Duration) guard {
	return func(delay time.Duration) guard {
		return under(tell(hedgepolicy.NewBuilderWithDelay[any](delay)).Build())
	}
}

func same[T any](t T) T { return t }

func failsafeGo() library {
	// oneProbe has one call probe and close the circuit: as it comes, as many probe as failures open it.
	oneProbe := remedy{"`WithSuccessThreshold(1)`", func(l *library) {
		l.breaker = failsafeBreaker(func(b circuitbreaker.Builder[any]) circuitbreaker.Builder[any] { return b.WithSuccessThreshold(1) })
	}}
	judge := func(ignored func(error) bool) func(*library) {
		return func(l *library) {
			l.breaker = failsafeBreaker(func(b circuitbreaker.Builder[any]) circuitbreaker.Builder[any] {
				return b.HandleIf(func(_ any, err error) bool { return err != nil && !ignored(err) })
			})
		}
	}
	canceled := remedy{"`HandleIf`", judge(func(err error) bool { return errors.Is(err, context.Canceled) })}
	return library{
		name:    "failsafe-go",
		module:  "github.com/failsafe-go/failsafe-go",
		breaker: failsafeBreaker(same),
		retry:   failsafeRetry(same),
		hinted:  failsafeHinted(same),
		bulkhead: func(limit int, waits bool) guard {
			b := bulkhead.NewBuilder[any](uint(limit))
			if waits {
				b = b.WithMaxWaitTime(time.Hour)
			}
			return under(b.Build())
		},
		limiter: func(perSecond float64) guard {
			if perSecond == 0 {
				return nil
			}
			every := time.Duration(float64(time.Second) / perSecond)
			return under(ratelimiter.NewSmoothBuilderWithMaxRate[any](every).WithMaxWaitTime(24 * time.Hour).Build())
		},
		timeout: func(limit time.Duration) guard { return under(timeout.New[any](limit)) },
		hedge:   failsafeHedge(same),
		remedies: map[string]remedy{
			"half-open":           oneProbe,
			"probe-hangs":         oneProbe,
			"probe-panics":        oneProbe,
			"probe-exits":         oneProbe,
			"probe-canceled":      canceled,
			"late-success":        oneProbe,
			"late-failure":        oneProbe,
			"cancellations":       canceled,
			"cancellations-count": canceled,
			"inner-refusals":      {"`HandleIf`", judge(func(err error) bool { return errors.Is(err, bulkhead.ErrFull) })},
			"open-breaker": {"`AbortOnErrors`", func(l *library) {
				l.retry = failsafeRetry(func(b retrypolicy.Builder[any]) retrypolicy.Builder[any] {
					return b.AbortOnErrors(circuitbreaker.ErrOpen)
				})
			}},
			"hint": {"`WithMaxDuration`", func(l *library) {
				l.hinted = failsafeHinted(func(b retrypolicy.Builder[*http.Response]) retrypolicy.Builder[*http.Response] {
					return b.WithMaxDuration(time.Minute) //nolint:bodyclose // nothing is sent yet
				})
			}},
			"amplification": {"`WithBudget`", func(l *library) {
				l.retry = failsafeRetry(func(b retrypolicy.Builder[any]) retrypolicy.Builder[any] { return b.WithBudget(budget.New()) })
			}},
			"hedge-failure": {"`CancelIf`", func(l *library) {
				l.hedge = failsafeHedge(func(b hedgepolicy.Builder[any]) hedgepolicy.Builder[any] {
					return b.CancelIf(func(_ any, err error) bool { return err == nil })
				})
			}},
		},
	}
}
