package ratelimit

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// bucket is a token bucket on a [rate.Limiter], of which it only uses what is exact. It makes no reservations, because
// cancelling one does not always give its token back. And it never takes a token at a time before the latest, because the
// rate.Limiter would then count the time between the two twice.
//
// All of it is guarded by the limiter's mu.
type bucket struct {
	tokens *rate.Limiter
	rate   float64 // tokens per second; +Inf stands for rate.Inf
	burst  int
	seen   time.Time // the latest reading of the clock since it last stepped back too far
}

// never is the wait for a token that does not come. Waits longer than forever count as never.
const (
	never   = time.Duration(math.MaxInt64)
	forever = 100 * 365 * 24 * time.Hour
)

func newBucket(r float64, burst int) bucket {
	return bucket{tokens: rate.NewLimiter(limitOf(r), burst), rate: r, burst: burst}
}

func limitOf(r float64) rate.Limit { return rate.Limit(min(r, float64(rate.Inf))) }

// show takes a reading of the clock and returns the bucket's time: the same, or the latest reading while a clock that stepped
// back catches up with it. anew reports that the clock stepped back too far for that, and the bucket's time with it.
func (b *bucket) show(clock time.Time) (now time.Time, anew bool) {
	if !clock.Before(b.seen) {
		b.seen = clock
		return clock, false
	}
	if b.waitsOut(clock) {
		return b.seen, false
	}
	b.tokens.SetLimitAt(b.seen, limitOf(b.rate)) // adds the tokens that have come until seen
	b.tokens.SetLimitAt(clock, limitOf(b.rate))  // goes on from clock, with these tokens
	b.seen = clock
	return clock, true
}

// waitsOut reports whether a step back to clock is short enough to wait for the clock to catch up: no longer than an empty
// bucket takes to fill.
func (b *bucket) waitsOut(clock time.Time) bool {
	return b.seen.Sub(clock).Seconds()*b.rate <= float64(b.burst)
}

// take takes a token at now, which must not be before the time of an earlier take.
func (b *bucket) take(now time.Time) bool { return b.tokens.AllowN(now, 1) }

// wait returns how long after now, in the bucket's time, the next token can be taken: 0 if there is one, never if none comes.
func (b *bucket) wait(now time.Time) time.Duration {
	d := b.lack(now)
	for more := d; more > 0 && d < forever; d += more {
		more = b.lack(now.Add(d)) // by rounding, the token may still be a little short
	}
	return d
}

// lack returns how long it takes from at until the bucket has a whole token, rounded as the rate.Limiter rounds.
func (b *bucket) lack(at time.Time) time.Duration {
	missing := 1 - b.tokens.TokensAt(at)
	if missing <= 0 {
		return 0
	}
	return b.interval(missing)
}

// interval returns how long it takes for so many tokens to come.
func (b *bucket) interval(tokens float64) time.Duration {
	d := tokens / b.rate * float64(time.Second)
	if !(d < float64(forever)) { // true for NaN
		return never
	}
	return time.Duration(d)
}

// behind returns the wait of a call with so many others ahead of it, of which the first waits for first.
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

// available returns how many tokens there are when the clock reads clock. It changes nothing.
func (b *bucket) available(clock time.Time) float64 {
	if math.IsInf(b.rate, 1) {
		return float64(b.burst)
	}
	if clock.Before(b.seen) {
		clock = b.seen // tokens that have come stay, whether the bucket waits for the clock or follows it back
	}
	return max(0, b.tokens.TokensAt(clock))
}

// set changes the rate and the burst from now on. Tokens beyond the new burst are lost.
func (b *bucket) set(now time.Time, r float64, burst int) {
	b.tokens.SetLimitAt(now, limitOf(r))
	b.tokens.SetBurstAt(now, burst)
	b.rate, b.burst = r, burst
}
