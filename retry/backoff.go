package retry

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// FullJitter returns a function for [Config].BackOff that makes exponential backoffs with full jitter: the n-th wait is
// random, uniform between 0 and base·2ⁿ⁻¹ or limit, whichever is less. Drawing from the whole range spreads out clients that
// failed at the same moment. FullJitter panics unless base is above 0 and limit at least base.
func FullJitter(base, limit time.Duration) func() backoff.BackOff {
	if base <= 0 || limit < base {
		panic(fmt.Sprintf("retry: FullJitter: base is %v, must be above 0; limit is %v, must be base or more", base, limit))
	}
	return func() backoff.BackOff { return &fullJitter{base: base, limit: limit, upTo: base} }
}

type fullJitter struct {
	base, limit time.Duration
	upTo        time.Duration // the upper bound of the next wait
}

// NextBackOff draws the next wait.
func (f *fullJitter) NextBackOff() time.Duration {
	upTo := f.upTo
	f.upTo = f.limit
	if upTo <= f.limit/2 { // not 2*upTo <= f.limit, which could overflow
		f.upTo = 2 * upTo
	}
	return 1 + rand.N(upTo)
}

// Reset starts again from base.
func (f *fullJitter) Reset() { f.upTo = f.base }
