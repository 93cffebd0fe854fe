package retry

import (
	"math"
	"math/bits"
	"sync"
	"time"
)

// latencies records how long recent attempts took: those of the current span of 10 seconds and of the two before it.
type latencies struct {
	mu    sync.Mutex
	epoch int64               // guarded by mu: the number of the current span
	spans [keptSpans]spanData // guarded by mu: span n is at n modulo keptSpans
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

// record adds an attempt that has run for d. An attempt that was overtaken while it ran is not a success.
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

// percentile returns the latency that a share p of the recent attempts did not exceed, or up to 1/16 more than that. known
// is false while there are too few successes.
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

// histogram counts durations in buckets. Up to 32µs they are a microsecond wide; above, each power of two is divided into 16
// buckets, so that a bucket is at most 1/16 as wide as its durations are long. The last bucket ends at about 36 minutes.
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

// upperEdge returns the shortest duration above a bucket.
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

// percentile searches from the top, since the percentiles that hedges use are near it.
func (h *histogram) percentile(p float64) time.Duration {
	rank := max(1, math.Ceil(p*float64(h.n)-1e-9)) // the product may be a little too high in floats
	above := h.n - uint64(rank)                    // how many durations may be longer
	for i := buckets - 1; i > 0; i-- {
		n := uint64(h.counts[i])
		if n > above {
			return upperEdge(i)
		}
		above -= n
	}
	return upperEdge(0)
}
