package breaker

import (
	"math"
	"time"
)

// cooldown returns the wait of the reopening with that number (0 for a first opening). luck, from 0 to below 1, is where in
// its range of jitter it lies.
//
// Where the range would reach above MaxCooldown it is cut there and the draw spread over what is left: cutting the draws
// instead would send many breakers back at the same instant.
func (c *Config) cooldown(reopening int, luck float64) time.Duration {
	limit := float64(c.MaxCooldown)
	middle := min(float64(c.Cooldown)*math.Pow(c.Growth, float64(reopening)), limit)
	low, high := middle*(1-c.Jitter), min(middle*(1+c.Jitter), limit)
	wait := low + luck*(high-low)
	if wait >= limit { // also where a float cannot tell the limit from what overflows
		return c.MaxCooldown
	}
	return max(time.Duration(math.Round(wait)), 1)
}

// remembered returns what is left of a number of openings after a stay in closed: one less for each MaxCooldown of it. Only
// those that made the wait longer count here, or it would take as long to forget a long outage as that has lasted.
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
	for !grown(n) { // logarithms are a little off
		n++
	}
	for n > 0 && grown(n-1) {
		n--
	}
	return int(min(n, math.MaxInt32))
}

// after returns at + d, or the end of time.
func after(at, d time.Duration) time.Duration {
	if sum := at + d; sum >= at {
		return sum
	}
	return never
}

// never is the end of what does not end by itself.
const never time.Duration = math.MaxInt64
