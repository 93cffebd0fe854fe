package window

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// naive keeps every call for ever and counts when asked.
type naive struct {
	length, origin time.Duration // of a window of time
	last           int           // calls of a window of calls; 0: of time
	latest         time.Duration
	calls          []naiveCall
}

type naiveCall struct {
	at           time.Duration
	failed, slow bool
}

func (n *naive) Clear(now time.Duration) { n.calls, n.origin, n.latest = nil, now, now }

func (n *naive) Add(now time.Duration, failed, slow bool) {
	n.latest = max(n.latest, now) // time does not go back
	n.calls = append(n.calls, naiveCall{n.latest, failed, slow})
}

func (n *naive) At(now time.Duration) (c Counts) {
	calls := n.calls
	if n.last > 0 {
		calls = calls[max(0, len(calls)-n.last):]
	}
	for _, call := range calls {
		if n.last == 0 && n.bucket(max(now, n.latest))-n.bucket(call.at) >= buckets {
			continue
		}
		c.add(one(call.failed, call.slow))
	}
	return c
}

// bucket returns ⌊10·(at-origin)/length⌋.
func (n *naive) bucket(at time.Duration) int64 {
	age := new(big.Int).Sub(big.NewInt(int64(at)), big.NewInt(int64(n.origin)))
	age.Mul(age, big.NewInt(buckets))
	return age.Div(age, big.NewInt(int64(n.length))).Int64()
}

type calls interface {
	Add(now time.Duration, failed, slow bool)
	At(now time.Duration) Counts
	Clear(now time.Duration)
}

// agree makes the same random steps in a window and its model and compares what they hold.
func agree(t *rapid.T, w, model calls, now time.Duration, step *rapid.Generator[time.Duration]) {
	for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
		if next := now + step.Draw(t, "step"); next >= now || next > now-time.Hour { // not past the end of time
			now = next
		}
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0:
			w.Clear(now)
			model.Clear(now)
		case 1, 2: // only look
		default:
			failed, slow := rapid.Bool().Draw(t, "failed"), rapid.Bool().Draw(t, "slow")
			w.Add(now, failed, slow)
			model.Add(now, failed, slow)
		}
		for _, later := range []time.Duration{0, 1, time.Second} {
			if at := now + later; at >= now {
				require.Equal(t, model.At(at), w.At(at), "step %d, %v later", i, later)
			}
		}
	}
}

func TestASlidingWindowAgreesWithItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { slidingAgrees(t) })
}

func FuzzASlidingWindowAgreesWithItsModel(f *testing.F) { fuzz(f, slidingAgrees) }

func fuzz(f *testing.F, agrees func(*rapid.T)) {
	for seed := range byte(8) {
		data := make([]byte, 1<<13)
		_, _ = rand.NewChaCha8([32]byte{seed}).Read(data)
		f.Add(data)
	}
	f.Fuzz(rapid.MakeFuzz(agrees))
}

func slidingAgrees(t *rapid.T) {
	length := time.Duration(rapid.OneOf(
		rapid.Int64Range(shortest, 50),
		rapid.Int64Range(shortest, int64(time.Hour)),
		rapid.Int64Range(shortest, math.MaxInt64/4),
	).Draw(t, "length"))
	origin := time.Duration(rapid.Int64Range(-math.MaxInt64/4, math.MaxInt64/4).Draw(t, "origin"))
	step := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.OneOf(
			rapid.Int64Range(-2, 2),
			rapid.Int64Range(0, int64(length)/8+1),
			rapid.Int64Range(0, int64(length)/40*41),
			rapid.Just(int64(length)),
		).Draw(t, "step"))
	})
	agree(t, NewSliding(length, origin), &naive{length: length, origin: origin, latest: origin}, origin, step)
}

func TestAWindowOfTheLastCallsAgreesWithItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { lastAgrees(t) })
}

func FuzzAWindowOfTheLastCallsAgreesWithItsModel(f *testing.F) { fuzz(f, lastAgrees) }

func lastAgrees(t *rapid.T) {
	n := rapid.IntRange(1, 20).Draw(t, "calls")
	agree(t, NewLast(n), &naive{last: n}, 0, rapid.Just(time.Second))
}

func TestACallCountsForMoreThanNineTenthsOfTheLengthAndAtMostAllOfIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := time.Duration(rapid.Int64Range(shortest, math.MaxInt64/8).Draw(t, "length"))
		at := time.Duration(rapid.Int64Range(0, math.MaxInt64/8).Draw(t, "at"))
		w := NewSliding(length, 0)
		w.Add(at, true, false)
		nine := length/10*9 + length%10*9/10 // ⌊9/10⌋
		assert.Equal(t, 1, w.At(at+nine).Failed, "after nine tenths")
		assert.Equal(t, 0, w.At(at+length).Failed, "after all of it")
	})
}

func TestASlidingWindowReachesTheEndOfTime(t *testing.T) {
	w := NewSliding(math.MaxInt64, 0)
	w.Add(math.MaxInt64, true, true)
	w.Add(math.MaxInt64, true, false)
	assert.Equal(t, Counts{2, 2, 1}, w.At(math.MaxInt64))
	w = NewSliding(10, math.MaxInt64-3)
	w.Add(math.MaxInt64, true, false)
	assert.Equal(t, Counts{1, 1, 0}, w.At(math.MaxInt64))
}

func TestTheShortestWindowSpansAllOfTime(t *testing.T) {
	for _, length := range []time.Duration{1, shortest} {
		w := NewSliding(length, math.MinInt64)
		for _, at := range []time.Duration{math.MinInt64, 0, math.MaxInt64 - 2*shortest} {
			w.Add(at, true, false)
			assert.Equal(t, 1, w.At(at).Failed)
			assert.Equal(t, 0, w.At(at+shortest).Failed)
		}
	}
}

func TestLookingChangesNothing(t *testing.T) {
	w := NewSliding(10*time.Second, 0)
	w.Add(0, true, false)
	before := *w
	assert.Equal(t, Counts{}, w.At(time.Hour))
	assert.Equal(t, before, *w)
	assert.Equal(t, Counts{1, 1, 0}, w.At(time.Second))
}

func TestTheLatestInstantsAreExact(t *testing.T) {
	const m = time.Minute
	tests := []struct {
		at   []time.Duration
		want bool
	}{
		{nil, false},
		{[]time.Duration{0, 5 * m}, false},
		{[]time.Duration{0, 5 * m, 9*m + 59*time.Second}, true},
		{[]time.Duration{0, 5 * m, 10*m - 1}, true},
		{[]time.Duration{0, 5 * m, 10 * m}, false},
		{[]time.Duration{0, 5 * m, 10 * m, 11 * m}, true},
		{[]time.Duration{0, 6 * m, 12 * m}, false},
		{[]time.Duration{-m, 0, 5 * m, 20 * m, 19 * m}, false}, // the last is taken for 20m
		{[]time.Duration{0, 11 * m, 20 * m, 19 * m}, true},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.at), func(t *testing.T) {
			l := NewLatest(3)
			for _, at := range tt.at {
				l.Add(at)
			}
			assert.Equal(t, tt.want, l.Within(10*m))
			l.Clear()
			assert.False(t, l.Within(10*m))
			for range 3 {
				l.Add(0)
			}
			assert.True(t, l.Within(1))
		})
	}
}

func TestTheLatestInstantsAgreeWithTheirModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		l, all := NewLatest(n), []time.Duration(nil)
		for i, step := range rapid.SliceOf(rapid.Int64Range(-2, 9)).Draw(t, "steps") {
			at := time.Duration(step)
			if len(all) > 0 {
				at = all[len(all)-1] + at
			}
			l.Add(at)
			if len(all) > 0 {
				at = max(at, all[len(all)-1])
			}
			all = append(all, at)
			want := len(all) >= n && all[len(all)-1]-all[max(0, len(all)-n)] < 10
			require.Equal(t, want, l.Within(10), "step %d", i)
		}
	})
}

func TestTheRunningCallsAgreeWithTheirModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Running
		runs, starts := []*Run(nil), []time.Duration(nil)
		now, asked := time.Duration(0), time.Duration(math.MinInt64)
		for i := range rapid.IntRange(1, 80).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 3).Draw(t, "step"))
			switch {
			case len(runs) > 0 && rapid.Bool().Draw(t, "end"):
				k := rapid.IntRange(0, len(runs)-1).Draw(t, "which")
				r.End(runs[k])
				runs, starts = slices.Delete(runs, k, k+1), slices.Delete(starts, k, k+1)
			default:
				runs, starts = append(runs, r.Start(now)), append(starts, now)
			}
			require.Equal(t, len(runs), r.Len(), "step %d", i)
			first, ok := r.First()
			require.Equal(t, len(runs) > 0, ok, "step %d", i)
			if ok {
				require.Equal(t, starts[0], first, "step %d", i)
			}
			asked = max(asked, now-time.Duration(rapid.IntRange(0, 9).Draw(t, "age")))
			want := 0
			for _, start := range starts {
				if start <= asked {
					want++
				}
			}
			require.Equal(t, want, r.Since(asked), "step %d", i)
		}
	})
}

func TestARunningCallThatStartsInThePastStartsWithTheLastOne(t *testing.T) {
	var r Running
	first := r.Start(5)
	r.Start(3)
	r.End(first)
	start, ok := r.First()
	assert.True(t, ok)
	assert.Equal(t, time.Duration(5), start)
	assert.Equal(t, 0, r.Since(4))
	assert.Equal(t, 1, r.Since(5))
}

func TestInTheLongRunNothingAllocates(t *testing.T) {
	sliding, last, latest, now := NewSliding(time.Second, 0), NewLast(100), NewLatest(100), time.Duration(0)
	var r Running
	turn := func() {
		now += 30 * time.Millisecond
		sliding.Add(now, true, true)
		last.Add(now, true, true)
		latest.Add(now)
		a, b := r.Start(now), r.Start(now)
		r.End(a)
		r.End(b)
	}
	for range 200 {
		turn()
	}
	assert.Zero(t, testing.AllocsPerRun(1000, turn))
}
