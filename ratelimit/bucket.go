package ratelimit

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// bucket is a token bucket that never gives out a token for a time that it has given one out for already. It uses only what
// of a [rate.Limiter] is exact: a reservation that is canceled cannot give back a token that lies before others, and to take
// one at a time before the last makes tokens out of nothing.
//
// All of it is guarded by the limiter's mu.
type bucket struct {
	tokens *rate.Limiter
	rate   float64 // +Inf is rate.Inf to tokens
	burst  int
	seen   time.Time // the latest time that the clock has shown, since it last stepped back too far
}

// never is a wait without an end; waits of more than forever are.
const (
	never   = time.Duration(math.MaxInt64)
	forever = 100 * 365 * 24 * time.Hour
)

func newBucket(r float64, burst int) bucket {
	return bucket{tokens: rate.NewLimiter(limitOf(r), burst), rate: r, burst: burst}
}

func limitOf(r float64) rate.Limit { return rate.Limit(min(r, float64(rate.Inf))) }

// show shows the bucket a reading of the clock. It returns the bucket's own time, which is later while the clock catches up
// with itself, and whether that is a new count of time: the clock stepped back too far.
func (b *bucket) show(clock time.Time) (now time.Time, anew bool) {
	if !clock.Before(b.seen) {
		b.seen = clock
		return clock, false
	}
	if b.waitsOut(clock) {
		return b.seen, false
	}
	b.tokens.SetLimitAt(b.seen, limitOf(b.rate)) // what has come stays,
	b.tokens.SetLimitAt(clock, limitOf(b.rate))  // and counts from here
	b.seen = clock
	return clock, true
}

// waitsOut reports whether a step back to clock is short enough to wait it out: no longer than an empty bucket needs to fill.
func (b *bucket) waitsOut(clock time.Time) bool {
	return b.seen.Sub(clock).Seconds()*b.rate <= float64(b.burst)
}

// take takes a token at a time that is not before that of any other.
func (b *bucket) take(now time.Time) bool { return b.tokens.AllowN(now, 1) }

// wait returns how long after now, a time of the bucket's, the next token can be taken: 0 if one can, never if none comes.
func (b *bucket) wait(now time.Time) time.Duration {
	d := b.lack(now)
	for more := d; more > 0 && d < forever; d += more {
		more = b.lack(now.Add(d)) // what rounding left
	}
	return d
}

// lack returns the time that the missing part of a token takes, by the arithmetic of tokens.
func (b *bucket) lack(at time.Time) time.Duration {
	missing := 1 - b.tokens.TokensAt(at)
	if missing <= 0 {
		return 0
	}
	return b.interval(missing)
}

// interval returns the time in which so many tokens come.
func (b *bucket) interval(tokens float64) time.Duration {
	d := tokens / b.rate * float64(time.Second)
	if !(d < float64(forever)) { // or NaN
		return never
	}
	return time.Duration(d)
}

// behind returns the wait of one with so many others ahead, the first of whom waits that long.
func (b *bucket) behind(first time.Duration, ahead int) time.Duration {
	if first == never || ahead == 0 {
		return first
	}
	more := b.interval(float64(ahead))
	if more == never {
		return never
	}
	return first + more
}

// available returns how many tokens there are when the clock shows that time, and changes nothing.
func (b *bucket) available(clock time.Time) float64 {
	if math.IsInf(b.rate, 1) {
		return float64(b.burst)
	}
	if clock.Before(b.seen) {
		clock = b.seen // whether it stands still or goes on from there: what has come by then stays
	}
	return max(0, b.tokens.TokensAt(clock))
}

// set changes the rate and the burst from now on. The tokens stay, as far as they fit.
func (b *bucket) set(now time.Time, r float64, burst int) {
	b.tokens.SetLimitAt(now, limitOf(r))
	b.tokens.SetBurstAt(now, burst)
	b.rate, b.burst = r, burst
}
