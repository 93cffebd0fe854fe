package ratelimit

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/switchgear-go/switchgear/internal/errtree"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// ErrLimited is the Reason of every refusal by a [Limiter].
var ErrLimited error = errtree.Reason("rate limit exceeded")

// Config configures a [Limiter].
type Config struct {
	// Rate is how many calls start per second, on average: each takes a token, and tokens come at this rate. If zero, none
	// comes after the first Burst. +Inf: there is no limit. See [Limiter.SetRate].
	Rate float64

	// Burst is how many tokens the limiter keeps for later, so how many calls may start at once. It starts full. If zero, a
	// tenth of a second's, rounded up, and at least 1; it then follows SetRate.
	Burst int

	// MaxWait is how long a call may wait for a token, first come, first served. One that would have to wait longer is
	// refused at once, as is one that would have to wait until its context's deadline. If zero, nobody waits. If negative,
	// as long as the context allows: bound that, or what waits grows without a bound.
	MaxWait time.Duration

	// Shadow lets every call start at once and only counts those that would have been refused: a rehearsal of a limit.
	Shadow bool

	// Clock is what tokens come by. Should it step back by at most Burst/Rate, time stands still until it has caught up;
	// should it step back further, the limiter goes on from there with the tokens it has. It is called under a lock, so it
	// must not use the limiter. Waits take real time whatever it says. If nil, [time.Now].
	Clock func() time.Time

	// Observer is told what the limiter does. If nil, OpenTelemetry (otelx.Default).
	Observer observe.Observer
}

// Validate returns an error that names each field with a value that is not allowed.
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

func validRate(r float64) bool { return r >= 0 } // not so for NaN

// burst returns the burst at a rate.
func (c Config) burst(rate float64) int {
	if c.Burst > 0 {
		return c.Burst
	}
	return int(min(max(1, math.Ceil(rate/10)), math.MaxInt32))
}
