package breaker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// Config says when a breaker opens and how it recovers. With the zero value it opens when at least half of the calls of the
// last 10 seconds failed, given at least 20 calls; it probes after 5 seconds, and after a longer wait, up to a minute, each
// time it reopens.
//
// Several rules may be on at once; the first one that is met opens the breaker. With none on, only [Breaker.Trip] and
// TripOn open it.
type Config struct {
	// Window is how far back results count. They are kept in 10 buckets, so each counts for at least 9/10 of Window and never
	// longer than Window. If Window and Calls are both zero, 10s.
	Window time.Duration
	// Calls makes the window the last Calls calls instead, however old they are. Only one of Window and Calls may be set.
	Calls int
	// MinCalls is how many completed calls the window must hold before a ratio can open the breaker. If zero, 20. If above a
	// Calls that is set, Calls.
	MinCalls int

	// FailureRatio opens the breaker when at least this share of the window's calls failed. It must be at most 1. If zero,
	// 0.5, or off if Failures or Consecutive is set. If negative, off.
	FailureRatio float64
	// Failures opens the breaker at this many failures within the window, however many calls succeeded. Within a Window they
	// count by their exact times, not by bucket. It must be at most 65,536, and at most Calls if that is set. If zero, off.
	Failures int
	// Consecutive opens the breaker at this many failures in a row, however far apart in time. If zero, off.
	Consecutive int

	// SlowCall is how long a call must take to count as slow, whether it then succeeds or fails. A call that is still running
	// counts as slow once it has taken this long, so a dependency that hangs opens the breaker before any call completes. A
	// probe that succeeds slowly has failed. If zero, off.
	SlowCall time.Duration
	// SlowRatio opens the breaker when at least this share of the calls was slow. Calls that are still running and slow
	// already count too, also towards MinCalls. The rule is checked when a call completes and when one asks for admission. It
	// must be at most 1. If zero, 0.5.
	SlowRatio float64

	// Cooldown is how long the breaker stays open when it opens for the first time. If zero, 5s.
	Cooldown time.Duration
	// MaxCooldown is the longest that the breaker stays open, jitter included. If zero, 1m, or Cooldown if that is longer.
	MaxCooldown time.Duration
	// Growth is the factor by which each reopening makes the cooldown longer. It must be at least 1, which keeps it constant.
	// For each MaxCooldown that the breaker then stays closed one step of growth is taken back. Closing alone takes none back,
	// so a breaker that flaps between open and closed waits longer and longer. If zero, 2.
	Growth float64
	// Jitter is the share by which each cooldown is made randomly shorter or longer: 0.2 draws it from 80% to 120%. It must be
	// at most 1. If zero, 0.2. If negative, none.
	Jitter float64

	// Probes is how many calls a half-open breaker lets run at once. If zero, 1.
	Probes int
	// ProbeSuccesses is how many probes in a row must succeed to close the breaker; a single failed one opens it again. If
	// zero, 1.
	ProbeSuccesses int
	// ProbeTimeout is how long a probe may run. One that takes longer counts as failed, which opens the breaker again; its
	// result, when it comes, is ignored. It does not cancel the probe. If zero, 30s.
	ProbeTimeout time.Duration
	// RampUp is how long the breaker admits only a share of the calls after probes have closed it. The share grows evenly
	// from 10% to all; the other calls are refused. If zero, off.
	RampUp time.Duration

	// Classify judges the error of a call, nil included; ctx is the one that Do or Allow was called with. It is not asked
	// about panics, which are failures. If nil, [policy.Classify].
	Classify func(ctx context.Context, err error) policy.Outcome
	// TripOn is asked about the error of each failure. If it returns true the breaker opens at once, for the duration it
	// returns, at most MaxCooldown; if that is 0 or less, for the usual cooldown. [policy.RetryAfter] fits here: it opens the
	// breaker for as long as the dependency asks. If nil, no single error opens the breaker.
	TripOn func(err error) (time.Duration, bool)

	// Shadow makes the breaker judge, change state and report as usual, but refuse nothing.
	Shadow bool
	// Clock tells the time, for tests and replays. If it goes back, the breaker's time stands still until the clock has caught
	// up. It is called with the breaker's lock held, so it must not use the breaker. If nil, [time.Now].
	Clock func() time.Time
	// Observer is told of state changes and refusals. If nil, OpenTelemetry ([otelx.Default]).
	Observer observe.Observer
}

const maxFailures = 1 << 16

// Validate returns an error that names each invalid field, its value and what is allowed; nil if c is valid.
func (c Config) Validate() error {
	var faults []error
	fault := func(bad bool, field string, value any, allowed string) {
		if bad {
			faults = append(faults, fmt.Errorf("breaker: Config.%s is %v, must be %s", field, value, allowed))
		}
	}
	outside := func(v, low, high float64) bool { return !(v >= low && v <= high) } // true for NaN

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
	if first := cmp.Or(c.Cooldown, defaultCooldown); c.MaxCooldown > 0 {
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

// resolved returns c with its defaults filled in. Fields that are off are 0 in it.
func (c Config) resolved() Config {
	if c.Calls == 0 {
		c.Window = cmp.Or(c.Window, 10*time.Second)
	}
	c.MinCalls = cmp.Or(c.MinCalls, 20)
	if c.Calls > 0 {
		c.MinCalls = min(c.MinCalls, c.Calls)
	}
	if c.FailureRatio == 0 && c.Failures == 0 && c.Consecutive == 0 {
		c.FailureRatio = 0.5
	}
	c.FailureRatio = max(c.FailureRatio, 0)
	c.SlowRatio = cmp.Or(c.SlowRatio, 0.5)
	c.Cooldown = cmp.Or(c.Cooldown, defaultCooldown)
	c.MaxCooldown = cmp.Or(c.MaxCooldown, max(time.Minute, c.Cooldown))
	c.Growth = cmp.Or(c.Growth, 2)
	c.Jitter = max(cmp.Or(c.Jitter, 0.2), 0)
	c.Probes = cmp.Or(c.Probes, 1)
	c.ProbeSuccesses = cmp.Or(c.ProbeSuccesses, 1)
	c.ProbeTimeout = cmp.Or(c.ProbeTimeout, 30*time.Second)
	if c.Classify == nil {
		c.Classify = policy.Classify
	}
	if c.Observer == nil {
		c.Observer = otelx.Default()
	}
	return c
}
