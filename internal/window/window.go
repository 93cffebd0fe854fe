// Package window holds what a circuit breaker remembers of calls: counts of the recent ones, the instants of the latest
// failures, and the calls that now run. All are plain data: the caller locks, reads the clock and decides.
//
// Instants are offsets on any clock, negative ones included. One that lies before an earlier one is taken for that.
package window

// Counts says how many calls there were, and how many of them failed and were slow.
type Counts struct{ Calls, Failed, Slow int }

// one returns the counts of one call.
func one(failed, slow bool) Counts {
	c := Counts{Calls: 1}
	if failed {
		c.Failed = 1
	}
	if slow {
		c.Slow = 1
	}
	return c
}

func (c *Counts) add(d Counts) {
	c.Calls += d.Calls
	c.Failed += d.Failed
	c.Slow += d.Slow
}

func (c *Counts) sub(d Counts) {
	c.Calls -= d.Calls
	c.Failed -= d.Failed
	c.Slow -= d.Slow
}
