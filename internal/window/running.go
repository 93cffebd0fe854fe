package window

import "time"

// Running is a list of the calls that run now, in the order in which they started. It counts those that have run for some
// time without walking the list.
type Running struct {
	first, last *Run
	within      *Run // the first call that Since has not counted yet
	over        int  // how many calls are before it
	size        int
	spare       *Run // ended calls for reuse, so that Start need not allocate
}

// Run is one running call. It must not be used after its End.
type Run struct {
	start      time.Duration
	prev, next *Run // next also links the spare ones
	over       bool // Since has counted it
}

// Start adds a call that starts now. A now before the start of an earlier call is taken for that.
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

// Since returns how many of the running calls started at that instant or before. From one call of Since to the next the
// instant should not go back; if it does, the highest one so far is used.
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

// First returns when the call that has run longest started. ok is false if none runs.
func (r *Running) First() (start time.Duration, ok bool) {
	if r.first == nil {
		return 0, false
	}
	return r.first.start, true
}
