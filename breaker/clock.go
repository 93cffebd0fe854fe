package breaker

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/switchgear-go/switchgear/internal/instant"
)

// clock reads instants that never go back: those of package instant, or offsets from the first reading of Config.Clock.
type clock struct {
	read   func() time.Time // Config.Clock; if nil, package instant, which is monotonic
	origin atomic.Pointer[origin]
	latest atomic.Int64 // the highest offset read so far
}

// origin says which instant a time is.
type origin struct {
	time time.Time
	at   time.Duration
}

// leap is how far the time goes for a user's clock that goes further than an instant can tell: one that was not set yet when
// it was read first, say. It is longer than anything that waits for the time to pass.
const leap = 100 * 365 * 24 * time.Hour

func (c *clock) set(read func() time.Time) {
	if c.read = read; read != nil {
		c.origin.Store(&origin{time: read()})
	}
}

func (c *clock) now() time.Duration {
	if c.read == nil {
		return instant.Now()
	}
	now := int64(c.instant(c.read()))
	for {
		latest := c.latest.Load()
		if now <= latest {
			return time.Duration(latest)
		}
		if c.latest.CompareAndSwap(latest, now) {
			return time.Duration(now)
		}
	}
}

// instant returns the instant of a reading of the user's clock.
func (c *clock) instant(t time.Time) time.Duration {
	for {
		from := c.origin.Load()
		passed := t.Sub(from.time)
		if passed < math.MaxInt64 { // else it may be any time beyond
			return instant.Add(from.at, passed)
		}
		c.origin.CompareAndSwap(from, &origin{t, instant.Add(time.Duration(c.latest.Load()), leap)})
	}
}

// time returns the wall time of an instant.
func (c *clock) time(at time.Duration) time.Time {
	if c.read == nil {
		return instant.Time(at)
	}
	from := c.origin.Load()
	return from.time.Add(at - from.at)
}
