// Package instant is the clock of the policies: offsets from the start of the process on the monotonic clock, which cost
// less to read, keep and compare than a [time.Time].
package instant

import (
	"math"
	"time"
)

var base = time.Now()

// Now returns the present instant. Only differences mean something; inside a testing/synctest bubble it follows the
// bubble's clock and may be negative.
func Now() time.Duration { return time.Since(base) }

// Time returns the wall time of an instant, by the wall clock of now: a wall clock that was set after the process started
// does not make it wrong. The result keeps a monotonic reading.
func Time(at time.Duration) time.Time {
	now := time.Now()
	return now.Add(at - now.Sub(base))
}

// Of returns the instant of a time, by the wall clock of now where it has no monotonic reading.
func Of(t time.Time) time.Duration {
	now := time.Now()
	return Add(now.Sub(base), t.Sub(now))
}

// Add returns at + d, or the end or the start of time where that lies beyond.
func Add(at, d time.Duration) time.Duration {
	sum := at + d
	switch {
	case d > 0 && sum < at:
		return math.MaxInt64
	case d < 0 && sum > at:
		return math.MinInt64
	}
	return sum
}
