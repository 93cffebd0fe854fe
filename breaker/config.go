package breaker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// Config says when a breaker opens and how it recovers. The zero value opens when half of at least 20 calls of the last 10
// seconds failed, and probes after 5 seconds, later ones after up to a minute.
//
// Several rules may be on; the first that is met opens the breaker. With none on, only [Breaker.Trip] and TripOn open it.
type Config struct {
	// Window is how far back results count: they are kept in 10 buckets, so that one counts for more than 9/10 of Window and
	// at most all of it. If zero and Calls is zero, 10s.
	Window time.Duration
	// Calls makes the window the last Calls calls instead, however long ago they were. It excludes Window.
	Calls int
	// MinCalls is how many completed calls the window must hold before a ratio judges. If zero, 20; above Calls, it is Calls.
	MinCalls int

	// FailureRatio opens the breaker when at least this share of the window's calls failed: above 0, at most 1. If zero, 0.5,
	// or off where Failures or Consecutive is set. If negative, off.
	FailureRatio float64
	// Failures opens the breaker at this many failures in the window, whatever else there was: by their exact times, less
	// than Window apart. At most 65,536, and at most Calls where that is set. If zero, off.
	Failures int
	// Consecutive opens the breaker at this many failures in a row, however far apart they are. If zero, off.
	Consecutive int

	// SlowCall is how long a call takes to count as slow, whether it succeeds or fails, and also while it still runs: when
	// everything hangs, the breaker opens before anything completes. A probe that succeeds but is slow has failed. If zero, off.
	SlowCall time.Duration
	// SlowRatio opens the breaker when at least this share of calls was slow: at most 1. Running calls that are slow already
	// count, also for MinCalls. It is judged at admission too. If zero, 0.5.
	SlowRatio float64

	// Cooldown is how long the breaker stays open the first time. If zero, 5s.
	Cooldown time.Duration
	// MaxCooldown is what a wait grows to at most, jitter included. If zero, 1m, or Cooldown if that is longer.
	MaxCooldown time.Duration
	// Growth is the factor by which each reopening makes the wait longer, at least 1. One step of growth is forgotten for
	// each MaxCooldown that the breaker stays closed. Closing alone forgets none, so one that flaps waits longer. If zero,
	// 2; with 1 the wait is constant.
	Growth float64
	// Jitter is the share by which a wait may be shorter or longer, drawn for each: at most 1. If zero, 0.2; negative: none.
	Jitter float64

	// Probes is how many calls a half-open breaker lets run at once. If zero, 1.
	Probes int
	// ProbeSuccesses is how many probes in a row must succeed to close the breaker; the first that fails opens it. If zero, 1.
	ProbeSuccesses int
	// ProbeTimeout is how long a probe may be silent: at its end it has failed and given its slot back, and a result that
	// comes later changes nothing. If zero, 30s.
	ProbeTimeout time.Duration
	// RampUp is how long a breaker that its probes have closed admits only a share of the calls, which grows evenly from 10%
	// to all; the others are refused. If zero, off.
	RampUp time.Duration

	// Classify judges a result; ctx is what Do or Allow was called with. Panics are not asked about: they are failures. If
	// nil, [policy.Classify].
	Classify func(ctx context.Context, err error) policy.Outcome
	// TripOn is asked about the error of each failure and may open the breaker at once for the time it returns, at most
	// MaxCooldown; for the usual wait if that is not above 0. [policy.RetryAfter] heeds what the dependency asks for. If nil, never.
	TripOn func(err error) (time.Duration, bool)

	// Shadow makes the breaker judge and report as ever, but refuse nothing.
	Shadow bool
	// Clock tells the time, for tests and replays; one that steps back stands still until it is past where it was. It must
	// not call the breaker. If nil, [time.Now].
	Clock func() time.Time
	// Observer is what the breaker reports to. If nil, OpenTelemetry ([otelx.Default]).
	Observer observe.Observer
}

const maxFailures = 1 << 16

// Validate returns an error that names every fault of c with its value and what is allowed, or nil.
func (c Config) Validate() error {
	var faults []error
	fault := func(bad bool, field string, value any, allowed string) {
		if bad {
			faults = append(faults, fmt.Errorf("breaker: Config.%s is %v, must be %s", field, value, allowed))
		}
	}
	outside := func(v, low, high float64) bool { return !(v >= low && v <= high) } // NaN is outside of everything

	fault(c.Window < 0, "Window", c.Window, "above 0, or 0 for 10s")
	fault(c.Calls < 0, "Calls", c.Calls, "above 0, or 0 for a window of time")
	fault(c.Window > 0 && c.Calls > 0, "Window", c.Window, fmt.Sprintf("0 where Calls is set (%d): the window is either of time or of calls", c.Calls))
	fault(c.MinCalls < 0, "MinCalls", c.MinCalls, "above 0, or 0 for 20")
	fault(outside(c.FailureRatio, -math.MaxFloat64, 1), "FailureRatio", c.FailureRatio, "above 0 and at most 1, 0 for the default, or negative for none")
	fault(c.Failures < 0 || c.Failures > maxFailures, "Failures", c.Failures, fmt.Sprintf("from 1 to %d, or 0 for none", maxFailures))
	fault(c.Calls > 0 && c.Failures > c.Calls, "Failures", c.Failures, fmt.Sprintf("at most Calls (%d), or it is never reached", c.Calls))
	fault(c.Consecutive < 0, "Consecutive", c.Consecutive, "above 0, or 0 for none")
	fault(c.SlowCall < 0, "SlowCall", c.SlowCall, "above 0, or 0 for none")
	fault(outside(c.SlowRatio, 0, 1), "SlowRatio", c.SlowRatio, "above 0 and at most 1, or 0 for 0.5")
	fault(c.Cooldown < 0, "Cooldown", c.Cooldown, "above 0, or 0 for 5s")
	fault(c.MaxCooldown < 0, "MaxCooldown", c.MaxCooldown, "above 0, or 0 for 1m")
	if first := orDefault(c.Cooldown, defaultCooldown); c.MaxCooldown > 0 {
		fault(c.MaxCooldown < first, "MaxCooldown", c.MaxCooldown, fmt.Sprintf("at least Cooldown (%v)", first))
	}
	fault(c.Growth != 0 && outside(c.Growth, 1, math.MaxFloat64), "Growth", c.Growth, "at least 1 and finite, or 0 for 2")
	fault(outside(c.Jitter, -math.MaxFloat64, 1), "Jitter", c.Jitter, "at most 1, 0 for 0.2, or negative for none")
	fault(c.Probes < 0, "Probes", c.Probes, "above 0, or 0 for 1")
	fault(c.ProbeSuccesses < 0, "ProbeSuccesses", c.ProbeSuccesses, "above 0, or 0 for 1")
	fault(c.ProbeTimeout < 0, "ProbeTimeout", c.ProbeTimeout, "above 0, or 0 for 30s")
	fault(c.RampUp < 0, "RampUp", c.RampUp, "above 0, or 0 for none")
	return errors.Join(faults...)
}

const defaultCooldown = 5 * time.Second

// resolved returns c with its defaults in place. What is off is 0 from here on.
func (c Config) resolved() Config {
	if c.Calls == 0 {
		c.Window = orDefault(c.Window, 10*time.Second)
	}
	c.MinCalls = orDefault(c.MinCalls, 20)
	if c.Calls > 0 {
		c.MinCalls = min(c.MinCalls, c.Calls)
	}
	if c.FailureRatio == 0 && c.Failures == 0 && c.Consecutive == 0 {
		c.FailureRatio = 0.5
	}
	c.FailureRatio = max(c.FailureRatio, 0)
	c.SlowRatio = orDefault(c.SlowRatio, 0.5)
	c.Cooldown = orDefault(c.Cooldown, defaultCooldown)
	c.MaxCooldown = orDefault(c.MaxCooldown, max(time.Minute, c.Cooldown))
	c.Growth = orDefault(c.Growth, 2)
	c.Jitter = max(orDefault(c.Jitter, 0.2), 0)
	c.Probes = orDefault(c.Probes, 1)
	c.ProbeSuccesses = orDefault(c.ProbeSuccesses, 1)
	c.ProbeTimeout = orDefault(c.ProbeTimeout, 30*time.Second)
	if c.Classify == nil {
		c.Classify = policy.Classify
	}
	if c.Observer == nil {
		c.Observer = otelx.Default()
	}
	return c
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
