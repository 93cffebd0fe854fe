// Package instant is the clock of the policies. An instant is the time since the start of the process, by the monotonic clock:
// it is cheaper to read, keep and compare than a [time.Time].
package instant

import (
	"math"
	"time"
)

var base = time.Now()

// Now returns the current instant. Inside a testing/synctest bubble it follows the bubble's clock, so it may be negative.
func Now() time.Duration { return time.Since(base) }

// Time returns the wall time of an instant. It counts from the current wall time, so it is right even if the wall clock was
// set since the process started. The result has a monotonic reading.
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
