package window

import (
	"math"
	"math/bits"
	"time"
)

// buckets is how many parts a [Sliding] window has. More would be more precise and cost more to read.
const buckets = 10

// Sliding counts the calls of a time window, in 10 buckets: a call counts for more than 9/10 of the length of the window, and
// for at most all of it.
type Sliding struct {
	length  time.Duration
	origin  time.Duration // when bucket 0 began
	current int64         // the number of the current bucket
	end     time.Duration // the first instant after it
	sum     Counts        // of all buckets
	bucket  [buckets]Counts
}

// shortest is the shortest length whose buckets can be numbered from one end of time to the other.
const shortest = 2 * buckets

// NewSliding returns an empty window of that length, but of 20 nanoseconds at least.
func NewSliding(length, now time.Duration) *Sliding {
	w := &Sliding{length: max(length, shortest)}
	w.Clear(now)
	return w
}

// Clear forgets all calls.
func (w *Sliding) Clear(now time.Duration) {
	*w = Sliding{length: w.length, origin: now}
	w.end = w.endOf(0)
}

// Add counts a call that ended now.
func (w *Sliding) Add(now time.Duration, failed, slow bool) {
	if now >= w.end { // saves a division
		w.turn(now)
	}
	c := one(failed, slow)
	w.sum.add(c)
	w.bucket[w.current%buckets].add(c)
}

// At returns what the window holds now. It changes nothing.
func (w *Sliding) At(now time.Duration) Counts {
	if now < w.end {
		return w.sum
	}
	sum := w.sum
	for i := range w.passed(now) {
		sum.sub(w.bucket[(w.current+1+i)%buckets])
	}
	return sum
}

// turn makes the bucket of now the current one. It empties it and those in between, which held the oldest calls.
func (w *Sliding) turn(now time.Duration) {
	for i := range w.passed(now) {
		b := &w.bucket[(w.current+1+i)%buckets]
		w.sum.sub(*b)
		*b = Counts{}
	}
	w.current = w.bucketOf(now)
	w.end = w.endOf(w.current)
}

// passed returns how many buckets have to be emptied to get to the bucket of now.
func (w *Sliding) passed(now time.Duration) int64 {
	return min(w.bucketOf(now)-w.current, buckets)
}

// bucketOf returns ⌊10·age/length⌋ exactly, so that no call counts for a nanosecond too long. The product can need more than
// 64 bits.
func (w *Sliding) bucketOf(now time.Duration) int64 {
	age, length := uint64(now-w.origin), uint64(w.length)
	hi, lo := bits.Mul64(age%length, buckets)
	part, _ := bits.Div64(hi, lo, length)
	return int64(age/length)*buckets + int64(part)
}

// endOf returns the first instant whose bucket is above i: origin + ⌈(i+1)·length/10⌉.
func (w *Sliding) endOf(i int64) time.Duration {
	hi, lo := bits.Mul64(uint64(i+1), uint64(w.length))
	lo, carry := bits.Add64(lo, buckets-1, 0)
	hi += carry
	if hi >= buckets {
		return math.MaxInt64
	}
	age, _ := bits.Div64(hi, lo, buckets)
	if end := w.origin + time.Duration(age); end >= w.origin { // not overflowed
		return end
	}
	return math.MaxInt64
}
