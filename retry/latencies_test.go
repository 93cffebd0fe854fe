package retry

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestBucketsFollowEachOtherWithoutAGap(t *testing.T) {
	for i := range buckets {
		edge := upperEdge(i)
		assert.Equal(t, i, bucketOf(edge-1), "just below the edge of %d", i)
		assert.Equal(t, min(i+1, buckets-1), bucketOf(edge), "at the edge of %d", i)
	}
	assert.Equal(t, 0, bucketOf(-1))
	assert.Equal(t, buckets-1, bucketOf(math.MaxInt64))
}

func TestPercentileDoesWhatASlowOneDoes(t *testing.T) {
	type sample struct {
		epoch   int64
		d       time.Duration
		success bool
	}
	rapid.Check(t, func(t *rapid.T) {
		l := newLatencies()
		now := time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "start"))
		var all []sample
		t.Repeat(map[string]func(*rapid.T){
			"time passes": func(t *rapid.T) {
				now += time.Duration(rapid.Int64Range(0, int64(45*time.Second)).Draw(t, "by"))
			},
			"attempts": func(t *rapid.T) {
				longest := rapid.Int64Range(1, int64(20*time.Minute)).Draw(t, "longest")
				for range rapid.IntRange(1, 30).Draw(t, "attempts") {
					s := sample{floorDiv(now, 10*time.Second), time.Duration(rapid.Int64Range(0, longest).Draw(t, "took")), rapid.Bool().Draw(t, "success")}
					l.record(now, s.d, s.success)
					all = append(all, s)
				}
			},
			"": func(t *rapid.T) {
				p := rapid.Float64Range(0.001, 0.999).Draw(t, "p")
				got, known := l.percentile(now, p)
				var kept []time.Duration
				successes := 0
				for _, s := range all {
					if s.epoch > floorDiv(now, 10*time.Second)-3 {
						kept = append(kept, s.d)
						if s.success {
							successes++
						}
					}
				}
				if known != (successes >= 20) {
					t.Fatalf("known: %v with %d successes", known, successes)
				}
				if !known {
					return
				}
				slices.Sort(kept)
				exact := kept[int(max(1, math.Ceil(p*float64(len(kept))-1e-9)))-1]
				if got <= exact || got > exact+exact/16+2*time.Microsecond {
					t.Fatalf("%v of %d: %v, want %v or 1/16 more", p, len(kept), got, exact)
				}
			},
		})
	})
}

func TestPercentilesOfRoundNumbers(t *testing.T) {
	var h histogram
	for i := range 100 {
		h.add(time.Duration(i) * time.Second)
	}
	for _, test := range []struct {
		p    float64
		rank int
	}{{.95, 95}, {.99, 99}, {.9, 90}, {.29, 29}, {.55, 55}, {.5, 50}, {.001, 1}} {
		assert.Equal(t, upperEdge(bucketOf(time.Duration(test.rank-1)*time.Second)), h.percentile(test.p), "%v", test.p)
	}
}
