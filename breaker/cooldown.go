package breaker

import (
	"math"
	"time"
)

// cooldown returns how long the breaker stays open at its n-th reopening (0 for a first opening). draw, from 0 to below 1,
// picks the place within the range of jitter.
//
// A range that reaches above MaxCooldown is cut off there before the draw is applied. Capping the result instead would make
// many breakers probe after exactly MaxCooldown, at the same instant.
func (c *Config) cooldown(reopening int, draw float64) time.Duration {
	limit := float64(c.MaxCooldown)
	middle := min(float64(c.Cooldown)*math.Pow(c.Growth, float64(reopening)), limit)
	low, high := middle*(1-c.Jitter), min(middle*(1+c.Jitter), limit)
	wait := low + draw*(high-low)
	if wait >= limit { // not converted: a float near MaxInt64 may be rounded up, and overflow
		return c.MaxCooldown
	}
	return max(time.Duration(math.Round(wait)), 1)
}

// remembered returns how many of the openings still count after the breaker was closed for that long: one less for each
// MaxCooldown. Openings beyond those that made the cooldown longer are dropped first; otherwise forgetting a long outage
// would take as long as the outage.
func (c *Config) remembered(openings int, closed time.Duration) int {
	forget := closed / c.MaxCooldown
	if forget == 0 {
		return openings
	}
	return max(0, min(openings, c.steps())-int(min(forget, math.MaxInt32)))
}

// steps returns how many steps of growth it takes from Cooldown to MaxCooldown.
func (c *Config) steps() int {
	if c.Growth == 1 || c.Cooldown >= c.MaxCooldown {
		return 0
	}
	grown := func(n float64) bool { return float64(c.Cooldown)*math.Pow(c.Growth, n) >= float64(c.MaxCooldown) }
	n := math.Floor(math.Log(float64(c.MaxCooldown)/float64(c.Cooldown)) / math.Log(c.Growth))
	if n > 1<<30 { // beyond any number of openings, so it need not be exact, and floats could not tell n+1 from n
		return int(min(n, math.MaxInt32))
	}
	for !grown(n) { // the quotient of logarithms is inexact: correct it in either direction
		n++
	}
	for n > 0 && grown(n-1) {
		n--
	}
	return int(min(n, math.MaxInt32))
}

// after returns at + d, or never if that overflows.
func after(at, d time.Duration) time.Duration {
	if sum := at + d; sum >= at {
		return sum
	}
	return never
}

// never is the end of a stay that time alone does not end.
const never time.Duration = math.MaxInt64
