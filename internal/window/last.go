package window

import "time"

// Last counts the last calls, however long ago they were.
type Last struct {
	n     int
	calls []mark // a ring once it holds n
	next  int    // the oldest of a full ring, which the next call replaces
	sum   Counts
}

// mark is what is kept of one call.
type mark uint8

const (
	markFailed mark = 1 << iota
	markSlow
)

func (m mark) counts() Counts { return one(m&markFailed != 0, m&markSlow != 0) }

// NewLast returns an empty window of the last n calls, n above 0. It takes memory as calls come.
func NewLast(n int) *Last { return &Last{n: n} }

// Clear forgets all calls. It ignores the time, as do the other methods, which have it in common with [Sliding].
func (w *Last) Clear(time.Duration) {
	*w = Last{n: w.n, calls: w.calls[:0]}
}

// Add counts a call. If the window is full, it drops the oldest one.
func (w *Last) Add(_ time.Duration, failed, slow bool) {
	var m mark
	if failed {
		m |= markFailed
	}
	if slow {
		m |= markSlow
	}
	w.sum.add(m.counts())
	if len(w.calls) < w.n {
		w.calls = append(w.calls, m)
		return
	}
	w.sum.sub(w.calls[w.next].counts())
	w.calls[w.next] = m
	if w.next++; w.next == w.n {
		w.next = 0
	}
}

// At returns what the window holds.
func (w *Last) At(time.Duration) Counts { return w.sum }
