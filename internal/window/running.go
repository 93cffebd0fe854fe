package window

import "time"

// Running holds the calls that now run, in the order of their starts, so that the longest running are at hand.
type Running struct {
	first, last *Run
	within      *Run // the first one that Since has not counted yet
	over        int  // those before it
	size        int
	spare       *Run // ended ones for use again, so that a call costs no allocation
}

// Run is one running call. It is of no use after its End.
type Run struct {
	start      time.Duration
	prev, next *Run // next also links the spare ones
	over       bool
}

// Start adds a call that starts now.
func (r *Running) Start(now time.Duration) *Run {
	run := r.spare
	if run == nil {
		run = new(Run)
	} else {
		r.spare = run.next
	}
	*run = Run{start: now, prev: r.last}
	if r.last == nil {
		r.first = run
	} else {
		run.start = max(now, r.last.start)
		r.last.next = run
	}
	r.last = run
	if r.within == nil {
		r.within = run
	}
	r.size++
	return run
}

// End removes a call.
func (r *Running) End(run *Run) {
	if run.prev == nil {
		r.first = run.next
	} else {
		run.prev.next = run.next
	}
	if run.next == nil {
		r.last = run.prev
	} else {
		run.next.prev = run.prev
	}
	if r.within == run {
		r.within = run.next
	}
	if run.over {
		r.over--
	}
	r.size--
	*run = Run{next: r.spare}
	r.spare = run
}

// Since returns how many of the running calls started at that instant or before. Instants asked for must not fall; one that
// does is answered as the highest before it.
func (r *Running) Since(start time.Duration) int {
	for r.within != nil && r.within.start <= start {
		r.within.over = true
		r.over++
		r.within = r.within.next
	}
	return r.over
}

// Len returns how many calls run.
func (r *Running) Len() int { return r.size }

// First returns when the call that has run longest started. ok is false where none runs.
func (r *Running) First() (start time.Duration, ok bool) {
	if r.first == nil {
		return 0, false
	}
	return r.first.start, true
}
