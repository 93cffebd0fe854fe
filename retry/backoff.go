package retry

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// FullJitter returns a source of backoffs whose n-th wait is drawn evenly from above 0 up to base·2ⁿ⁻¹, at most limit.
// Drawing from the whole range spreads clients that failed together as far apart as their waits allow. It panics unless base
// is above 0 and limit at least base.
func FullJitter(base, limit time.Duration) func() backoff.BackOff {
	if base <= 0 || limit < base {
		panic(fmt.Sprintf("retry: FullJitter: base is %v, must be above 0; limit is %v, must be base or more", base, limit))
	}
	return func() backoff.BackOff { return &fullJitter{base: base, limit: limit, upTo: base} }
}

type fullJitter struct {
	base, limit time.Duration
	upTo        time.Duration // the longest that the next wait may be
}

// NextBackOff draws the next wait.
func (f *fullJitter) NextBackOff() time.Duration {
	upTo := f.upTo
	f.upTo = f.limit
	if upTo <= f.limit/2 { // compared before it is doubled: no overflow
		f.upTo = 2 * upTo
	}
	return 1 + rand.N(upTo)
}

// Reset starts again from base.
func (f *fullJitter) Reset() { f.upTo = f.base }
