package window

import (
	"math"
	"time"
)

// Latest holds the exact instants of the last n events, such as failures.
type Latest struct {
	n    int
	at   []time.Duration // a ring once it holds n
	next int             // the oldest of a full ring, which the next instant replaces
	last time.Duration
}

// NewLatest returns an empty ring for n instants, n above 0. It takes memory as they come.
func NewLatest(n int) *Latest { return &Latest{n: n, last: math.MinInt64} }

// Clear forgets all instants.
func (l *Latest) Clear() {
	*l = Latest{n: l.n, at: l.at[:0], last: math.MinInt64}
}

// Add adds an instant.
func (l *Latest) Add(at time.Duration) {
	l.last = max(at, l.last)
	if len(l.at) < l.n {
		l.at = append(l.at, l.last)
		return
	}
	l.at[l.next] = l.last
	if l.next++; l.next == l.n {
		l.next = 0
	}
}

// Within reports whether there are n instants, and the oldest and the newest of them are less than span apart.
func (l *Latest) Within(span time.Duration) bool {
	return len(l.at) == l.n && l.last-l.at[l.next] < span
}
