package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// goal is what this library set out to cost, as a share of what another way costs.
type goal struct {
	job  string
	than string
	side int // the index in job.side
	most float64
}

func goals() []goal {
	const granted, full, token, empty = "Bulkhead, a permit is free", "Bulkhead, full", "Rate limit, a token is there", "Rate limit, none left"
	return []goal{
		{"Breaker, closed", "gobreaker", 0, .5},
		{"Breaker, closed", "gobreaker", 1, .5},
		{"Breaker, open", failsafe, 0, .1},
		{"Breaker, open", failsafe, 1, .1},
		{"Four layers", failsafe, 0, .15},
		{"Four layers", failsafe, 1, .15},
		{"Four layers", byHand, 0, .7},
		{"Four layers", byHand, 1, 1.2},
		{granted, underBulkhead, 0, 1.5},
		{granted, underBulkhead, 1, 1.5},
		{granted, underBulkhead, 2, 1.5},
		{full, underBulkhead, 0, 2},
		{full, underBulkhead, 1, 2},
		{full, underBulkhead, 2, 2},
		{token, underLimiter, 0, 1.5},
		{token, underLimiter, 1, 1.5},
		{empty, underLimiter, 0, 2},
		{empty, underLimiter, 1, 2},
	}
}

// goalTable holds the results against the goals.
func goalTable(results []result) string {
	var out strings.Builder
	out.WriteString("| Switchgear | beside | callers | goal: at most | measured | |\n|---|---|--:|--:|--:|---|\n")
	for _, g := range goals() {
		i := slices.IndexFunc(results, func(r result) bool { return r.name == g.job })
		if i < 0 {
			continue
		}
		r := results[i]
		w := slices.IndexFunc(r.ways, func(w way) bool { return w.name == g.than })
		measured, reached := r.figures[g.side][w].ratio, "reached"
		if measured > g.most {
			reached = "**missed**"
		}
		fmt.Fprintf(&out, "| %s | %s | %d | %.2f | %s | %s |\n", g.job, g.than, r.side[g.side], g.most, share(measured), reached)
	}
	return out.String()
}

// scaling holds what a call costs among parallel ones against what it costs alone, here and with the best of the others.
func scaling(results []result) string {
	var out strings.Builder
	out.WriteString("| | Switchgear | the best other | |\n|---|--:|---|---|\n")
	for _, r := range results {
		factor := func(i int) float64 { return r.figures[1][i].ns / r.figures[0][i].ns }
		best, who := math.Inf(1), ""
		for i, w := range r.ways {
			if i == 0 || w.own || w.name == "the bare call" {
				continue
			}
			if f := factor(i); f < best {
				best, who = f, w.name
			}
		}
		reached := "reached"
		if factor(0) > 1.1*best {
			reached = "**missed**"
		}
		fmt.Fprintf(&out, "| %s | %.1f | %.1f (%s) | %s |\n", r.name, factor(0), best, who, reached)
	}
	return out.String()
}
