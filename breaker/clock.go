package breaker

import (
	"sync/atomic"
	"time"

	"github.com/switchgear-go/switchgear/internal/instant"
)

// clock reads instants that never go back: those of package instant, or offsets from the first reading of Config.Clock.
type clock struct {
	read   func() time.Time // Config.Clock; if nil, package instant, which is monotonic
	first  time.Time        // the first reading
	latest atomic.Int64     // the highest offset read so far
}

func (c *clock) set(read func() time.Time) {
	if c.read = read; read != nil {
		c.first = read()
	}
}

func (c *clock) now() time.Duration {
	if c.read == nil {
		return instant.Now()
	}
	now := int64(c.read().Sub(c.first))
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

// time returns the wall time of an instant.
func (c *clock) time(at time.Duration) time.Time {
	if c.read == nil {
		return instant.Time(at)
	}
	return c.first.Add(at)
}
