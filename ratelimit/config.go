package ratelimit

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/switchgear-go/switchgear/internal/errtree"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// ErrLimited is what every refusal by a [Limiter] matches, with errors.Is. The error itself is a *[policy.RejectedError],
// which says when to try again.
var ErrLimited error = errtree.Reason("rate limit exceeded")

// Config configures a [Limiter]. With the zero value, one call starts and every later one is refused: set Rate.
type Config struct {
	// Rate is how many calls may start per second, on average. Each takes a token, and tokens come at this rate. If zero, no
	// tokens come after the first Burst. If +Inf, there is no limit. [Limiter.SetRate] changes it.
	Rate float64

	// Burst is how many tokens the limiter keeps at most: how many calls may start at the same moment. It starts with that
	// many. If zero, the tokens of a tenth of a second, rounded up and at least 1; it then changes with SetRate.
	Burst int

	// MaxWait is how long a call may wait for a token; calls get theirs in the order of arrival. A call that would have to
	// wait longer, or until its context's deadline, is refused at once. If zero, no call waits. If negative, calls wait as
	// long as their contexts allow: without deadlines the queue can then grow without bound.
	MaxWait time.Duration

	// Shadow lets every call start at once and only counts those that would have been refused, to try out a limit.
	Shadow bool

	// Clock tells the time by which tokens come. If it steps back by at most Burst/Rate, the limiter's time stands still
	// until the clock has caught up; if further, the limiter goes on from there with the tokens it has. Clock is called with
	// the limiter's lock held, so it must not use the limiter. Waiting takes real time, whatever Clock says. If nil,
	// [time.Now].
	Clock func() time.Time

	// Observer is told of refusals. If nil, OpenTelemetry ([otelx.Default]).
	Observer observe.Observer
}

// Validate returns an error that names each invalid field, its value and what is allowed; nil if c is valid.
func (c Config) Validate() error {
	var faults []error
	if !validRate(c.Rate) {
		faults = append(faults, fmt.Errorf("ratelimit: Config.Rate is %v, must be 0 (none) or more, or +Inf (no limit)", c.Rate))
	}
	if c.Burst < 0 {
		faults = append(faults, fmt.Errorf("ratelimit: Config.Burst is %d, must be 0 (a tenth of a second's, at least 1) or more", c.Burst))
	}
	return errors.Join(faults...)
}

func validRate(r float64) bool { return r >= 0 } // false for NaN

// burst returns Burst, or its default at that rate.
func (c Config) burst(rate float64) int {
	if c.Burst > 0 {
		return c.Burst
	}
	return int(min(max(1, math.Ceil(rate/10)), math.MaxInt32))
}
