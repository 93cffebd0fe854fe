package main

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// job is something that a call has done to it, and the ways to do it.
type job struct {
	name  string
	about string // what is compared, in a sentence
	ways  []way  // the first is this library's
	side  []int  // how many goroutines call at once; if nil, one, and as many as there are processors
}

// way is one way to do a job.
type way struct {
	name string
	call func() // one call, by any number of goroutines at once
	own  bool   // of this library, so there is no ratio
}

// figure is what was measured of a way with so many goroutines.
type figure struct {
	ns     float64 // of processors' time for a call: the median of the rounds
	spread float64 // half of what the middle half of the rounds covers, as a share of ns
	ratio  float64 // of the first way's time to this one's, within a round: the median
}

type result struct {
	job
	figures     [][]figure // by the index of side, then of ways
	allocations []float64  // of ways
}

const batch = 4 * time.Millisecond // about how long one way's turn in a round is

// measure measures jobs, each a little in each round: so what disturbs the machine for a while disturbs few rounds of any.
func measure(jobs []job, rounds int) []result {
	results, turns := make([]result, len(jobs)), make([][]*turn, len(jobs))
	for i, j := range jobs {
		if j.side == nil {
			j.side = []int{1, runtime.GOMAXPROCS(0)}
		}
		results[i].job = j
		for _, w := range j.ways {
			results[i].allocations = append(results[i].allocations, testing.AllocsPerRun(1000, w.call))
		}
		for _, goroutines := range j.side {
			turns[i] = append(turns[i], newTurn(j.ways, goroutines))
		}
	}
	for n := range rounds {
		for i := range jobs {
			for _, t := range turns[i] {
				t.round(n)
			}
		}
	}
	for i := range jobs {
		for _, t := range turns[i] {
			results[i].figures = append(results[i].figures, t.figures())
		}
	}
	return results
}

// turn is the ways of a job taking turns, with so many goroutines.
type turn struct {
	ways          []way
	goroutines    int
	calls         []int // of each goroutine in a batch
	times, ratios [][]float64
}

func newTurn(ways []way, goroutines int) *turn {
	t := &turn{ways: ways, goroutines: goroutines, times: make([][]float64, len(ways)), ratios: make([][]float64, len(ways))}
	for _, w := range ways {
		t.calls = append(t.calls, calibrate(w.call, goroutines))
	}
	return t
}

func (t *turn) round(n int) {
	took := make([]float64, len(t.ways))
	for k := range t.ways {
		i := (k + n) % len(t.ways) // nobody is always first
		took[i] = timed(t.ways[i].call, t.goroutines, t.calls[i])
	}
	for i := range t.ways {
		t.times[i] = append(t.times[i], took[i])
		t.ratios[i] = append(t.ratios[i], took[0]/took[i])
	}
}

func (t *turn) figures() []figure {
	all := make([]figure, len(t.ways))
	for i := range t.ways {
		slices.Sort(t.times[i])
		slices.Sort(t.ratios[i])
		middle := at(t.times[i], .5)
		all[i] = figure{ns: middle, spread: (at(t.times[i], .75) - at(t.times[i], .25)) / 2 / middle, ratio: at(t.ratios[i], .5)}
	}
	return all
}

// at returns the value that a share of the sorted values do not exceed.
func at(sorted []float64, share float64) float64 {
	return sorted[int(share*float64(len(sorted)-1)+.5)]
}

// calibrate returns how many calls of each goroutine make up a batch.
func calibrate(call func(), goroutines int) int {
	n := 1
	for {
		begin := processorTime()
		timed(call, goroutines, n)
		if took := processorTime() - begin; took >= batch/2 {
			return max(1, int(float64(n)*float64(batch)/float64(took)))
		}
		n *= 2
	}
}

// timed returns the nanoseconds of processors' time that a call took, of so many by each goroutine.
func timed(call func(), goroutines, calls int) float64 {
	begin := processorTime()
	if goroutines == 1 {
		for range calls {
			call()
		}
		return float64((processorTime() - begin).Nanoseconds()) / float64(calls)
	}
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(goroutines)
	for range goroutines {
		done.Go(func() {
			ready.Done()
			<-start
			for range calls {
				call()
			}
		})
	}
	ready.Wait()
	begin = processorTime()
	close(start)
	done.Wait()
	return float64((processorTime() - begin).Nanoseconds()) / float64(goroutines*calls)
}
