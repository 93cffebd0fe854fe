// Package window has the data structures in which a circuit breaker remembers calls: counts of the recent ones, the instants
// of the latest failures, and the calls that run now. They are plain data: the caller locks, reads the clock and decides.
//
// Instants are offsets on any clock and may be negative. An instant before an earlier one is taken for the earlier one.
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
