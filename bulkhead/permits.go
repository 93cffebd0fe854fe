package bulkhead

import "sync/atomic"

// permits is the number of free permits and of calls that wait for one, in one word, so that no change of one can miss the
// other: whoever frees a permit learns in the same step whether somebody waits for it. The upper half counts free permits.
// It is below 0 while more run than may: after a Resize, or in shadow mode.
//
// While somebody waits, free permits are given out under the queue's lock only.
type permits struct{ word atomic.Int64 }

const (
	permit = 1 << 32
	waiter = 1
)

func free(word int64) int    { return int(int32(word >> 32)) }
func waiting(word int64) int { return int(uint32(word)) }

// take takes a free permit that nobody waits for.
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

// overdraw takes a permit whether one is free or not, and returns how many are missing.
func (p *permits) overdraw() (missing int) { return -free(p.word.Add(-permit)) }

// add adds n permits and reports whether somebody has to hand them over.
func (p *permits) add(n int) bool {
	word := p.word.Add(int64(n) * permit)
	return waiting(word) > 0 && free(word) > 0
}

// crowded reports whether so many wait already.
func (p *permits) crowded(queue int) bool { return waiting(p.word.Load()) >= queue }

// takeOrWait takes a free permit that nobody waits for, else counts one more who waits unless the queue is full. Only the
// holder of the queue's lock may call it, as the next two.
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
			// Where a permit is free all the same, whoever freed it is on the way to the lock.
			if p.word.CompareAndSwap(word, word+waiter) {
				return false, true
			}
		}
	}
}

// handOver gives a free permit to one who waits.
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

// leave counts one less who waits.
func (p *permits) leave() { p.word.Add(-waiter) }
