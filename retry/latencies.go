package retry

import (
	"math"
	"math/bits"
	"sync"
	"time"
)

// latencies remembers how long recent attempts took: those of the present span of 10 seconds and of the two before it.
type latencies struct {
	mu    sync.Mutex
	epoch int64               // guarded by mu: the number of the present span
	spans [keptSpans]spanData // guarded by mu: span n is at n modulo their number
	all   histogram           // guarded by mu: the sum of spans
}

const (
	span         = 10 * time.Second
	keptSpans    = 3
	minSuccesses = 20
)

type spanData struct {
	histogram
	successes int
}

func newLatencies() *latencies { return &latencies{epoch: -1 << 62} }

// record adds an attempt that took d, or for now has taken it: then it is no success.
func (l *latencies) record(now, d time.Duration, success bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advanceLocked(now)
	s := &l.spans[slot(l.epoch)]
	s.add(d)
	l.all.add(d)
	if success {
		s.successes++
	}
}

// percentile returns the latency that a share p of the recent attempts did not exceed, at most 1/16 above the true one. It
// is not known before there were enough successes.
func (l *latencies) percentile(now time.Duration, p float64) (d time.Duration, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advanceLocked(now)
	successes := 0
	for i := range l.spans {
		successes += l.spans[i].successes
	}
	if successes < minSuccesses {
		return 0, false
	}
	return l.all.percentile(p), true
}

// advanceLocked forgets the spans that are too old at now.
func (l *latencies) advanceLocked(now time.Duration) {
	epoch := floorDiv(now, span)
	if epoch-l.epoch > keptSpans {
		l.epoch = epoch - keptSpans
	}
	for l.epoch < epoch {
		l.epoch++
		old := &l.spans[slot(l.epoch)]
		l.all.subtract(&old.histogram)
		*old = spanData{}
	}
}

func slot(epoch int64) int { return int((epoch%keptSpans + keptSpans) % keptSpans) }

// histogram counts durations in buckets that are each at most 1/16 wider than the last: by the microsecond up to 32, then 16
// buckets to each power of two, up to half an hour.
type histogram struct {
	n      uint64
	counts [buckets]uint32
}

const (
	fine    = 4 // bits of precision
	maxBits = 31
	buckets = (maxBits-fine)<<fine + 1<<fine
)

func bucketOf(d time.Duration) int {
	us := min(uint64(max(0, d)/time.Microsecond), 1<<maxBits-1)
	shift := max(0, bits.Len64(us)-fine-1)
	return shift<<fine + int(us>>shift)
}

// upperEdge returns the shortest duration beyond a bucket.
func upperEdge(bucket int) time.Duration {
	bucket++
	shift := max(0, bucket>>fine-1)
	return time.Duration(bucket-shift<<fine) << shift * time.Microsecond
}

func (h *histogram) add(d time.Duration) {
	h.n++
	h.counts[bucketOf(d)]++
}

func (h *histogram) subtract(old *histogram) {
	if old.n == 0 {
		return
	}
	h.n -= old.n
	for i, n := range old.counts {
		h.counts[i] -= n
	}
}

// percentile searches from above: what a hedge asks for is near there.
func (h *histogram) percentile(p float64) time.Duration {
	rank := max(1, math.Ceil(p*float64(h.n)-1e-9)) // less the error of a product of floats
	above := h.n - uint64(rank)                    // how many may be longer
	for i := buckets - 1; i > 0; i-- {
		n := uint64(h.counts[i])
		if n > above {
			return upperEdge(i)
		}
		above -= n
	}
	return upperEdge(0)
}
