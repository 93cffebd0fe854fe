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
	ns     float64 // of a processor's time for a call: the median of the rounds
	spread float64 // half of what the middle half of the rounds covers, as a share of ns
	ratio  float64 // of the first way's time to this one's, within a round: the median
}

type result struct {
	job
	figures     [][]figure // by the index of side, then of ways
	allocations []float64  // of ways
}

const batch = 2 * time.Millisecond // so long takes one way's turn in a round, about

func (j job) measure(rounds int) result {
	if j.side == nil {
		j.side = []int{1, runtime.GOMAXPROCS(0)}
	}
	r := result{job: j}
	for _, w := range j.ways {
		r.allocations = append(r.allocations, testing.AllocsPerRun(1000, w.call))
	}
	for _, goroutines := range j.side {
		r.figures = append(r.figures, j.round(goroutines, rounds))
	}
	return r
}

// round measures all ways in turns.
func (j job) round(goroutines, rounds int) []figure {
	runtime.GC()
	calls := make([]int, len(j.ways)) // of each goroutine in a batch
	for i, w := range j.ways {
		calls[i] = calibrate(w.call, goroutines)
	}
	times, ratios := make([][]float64, len(j.ways)), make([][]float64, len(j.ways))
	for n := range rounds {
		took := make([]float64, len(j.ways))
		for k := range j.ways {
			i := (k + n) % len(j.ways) // nobody is always first
			took[i] = timed(j.ways[i].call, goroutines, calls[i])
		}
		for i := range j.ways {
			times[i] = append(times[i], took[i])
			ratios[i] = append(ratios[i], took[0]/took[i])
		}
	}
	figures := make([]figure, len(j.ways))
	for i := range j.ways {
		slices.Sort(times[i])
		slices.Sort(ratios[i])
		middle := at(times[i], .5)
		figures[i] = figure{ns: middle, spread: (at(times[i], .75) - at(times[i], .25)) / 2 / middle, ratio: at(ratios[i], .5)}
	}
	return figures
}

// at returns the value that a share of the sorted values do not exceed.
func at(sorted []float64, share float64) float64 {
	return sorted[int(share*float64(len(sorted)-1)+.5)]
}

// calibrate returns how many calls of each goroutine make up a batch.
func calibrate(call func(), goroutines int) int {
	n := 1
	for {
		begin := time.Now()
		timed(call, goroutines, n)
		if took := time.Since(begin); took >= batch/2 {
			return max(1, int(float64(n)*float64(batch)/float64(took)))
		}
		n *= 2
	}
}

// timed returns the nanoseconds of a processor's time that a call took, of so many by each goroutine.
func timed(call func(), goroutines, calls int) float64 {
	if goroutines == 1 {
		begin := time.Now()
		for range calls {
			call()
		}
		return float64(time.Since(begin).Nanoseconds()) / float64(calls)
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
	begin := time.Now()
	close(start)
	done.Wait()
	processors := min(goroutines, runtime.GOMAXPROCS(0))
	return float64(time.Since(begin).Nanoseconds()) * float64(processors) / float64(goroutines*calls)
}
