package bulkhead

import "sync/atomic"

// permits counts the free permits and the calls that wait for one in a single atomic word, so that whoever frees a permit
// learns in the same step whether a call waits for it. The upper half counts free permits. It is negative while more calls
// run than Max: after a Resize, or in shadow mode.
//
// While a call waits, permits are only taken under the bulkhead's mu.
type permits struct{ word atomic.Int64 }

const (
	permit = 1 << 32
	waiter = 1
)

func free(word int64) int    { return int(int32(word >> 32)) }
func waiting(word int64) int { return int(uint32(word)) }

// take takes a free permit, if there is one that no call waits for.
func (p *permits) take() bool {
	for {
		word := p.word.Load()
		if free(word) <= 0 || waiting(word) > 0 {
			return false
		}
		if p.word.CompareAndSwap(word, word-permit) {
			return true
		}
	}
}

// overdraw takes a permit even if none is free, and returns how many more than Max are taken.
func (p *permits) overdraw() (missing int) { return -free(p.word.Add(-permit)) }

// add adds n permits and reports whether there are now both free permits and waiting calls: then the caller must hand over.
func (p *permits) add(n int) bool {
	word := p.word.Add(int64(n) * permit)
	return waiting(word) > 0 && free(word) > 0
}

// crowded reports whether a queue of that size is full.
func (p *permits) crowded(queue int) bool { return waiting(p.word.Load()) >= queue }

// takeOrWait takes a free permit that no call waits for. If there is none, it counts one more waiting call, unless the queue
// is full. It must be called with the bulkhead's mu held, as must handOver and leave.
func (p *permits) takeOrWait(queue int) (took, waits bool) {
	for {
		word := p.word.Load()
		switch {
		case waiting(word) == 0 && free(word) > 0:
			if p.word.CompareAndSwap(word, word-permit) {
				return true, false
			}
		case waiting(word) >= queue:
			return false, false
		default:
			// If a permit is free, its releaser has seen a waiting call and hands it over once it gets the lock.
			if p.word.CompareAndSwap(word, word+waiter) {
				return false, true
			}
		}
	}
}

// handOver moves a free permit to a waiting call. It reports false if none is free.
func (p *permits) handOver() bool {
	for {
		word := p.word.Load()
		if free(word) <= 0 {
			return false
		}
		if p.word.CompareAndSwap(word, word-permit-waiter) {
			return true
		}
	}
}

// leave counts one waiting call less.
func (p *permits) leave() { p.word.Add(-waiter) }
