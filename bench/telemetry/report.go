package main

import (
	"fmt"
	"strings"
)

// medianOf returns the medians of what several processes measured.
func medianOf(all []result) (total result) {
	middle := func(value func(result) float64) float64 {
		var values []float64
		for _, r := range all {
			values = append(values, value(r))
		}
		return median(values)
	}
	for i := range all[0].Ways {
		total.Ways = append(total.Ways, figure{
			middle(func(r result) float64 { return r.Ways[i].Nanoseconds }),
			middle(func(r result) float64 { return r.Ways[i].Ratio }),
			middle(func(r result) float64 { return r.Ways[i].Allocations }),
		})
	}
	total.PerSeries = middle(func(r result) float64 { return r.PerSeries })
	total.SDKAlone = middle(func(r result) float64 { return r.SDKAlone })
	total.Series = all[0].Series
	return total
}

// markdown returns the result as a table for a page.
func (r result) markdown() string {
	var out strings.Builder
	out.WriteString("| timeout → retry → breaker → bulkhead, a call that succeeds | ns | allocations | ratio | to | at most |\n|---|---|---|---|---|---|\n")
	for i, w := range ways() {
		f := r.Ways[i]
		fmt.Fprintf(&out, "| %s | %.0f | %.0f | ", w.name, f.Nanoseconds, f.Allocations)
		switch {
		case w.than == "":
			out.WriteString("| | |\n")
		case w.limit == 0:
			fmt.Fprintf(&out, "%.2f | %s | |\n", f.Ratio, w.than)
		default:
			fmt.Fprintf(&out, "%.2f | %s | %.2f |\n", f.Ratio, w.than, w.limit)
		}
	}
	fmt.Fprintf(&out, "\nA collection of %d breakers, %d series: %.0f ns a series (at most %d). A callback that does nothing but tell the SDK as many numbers takes %.0f.\n",
		breakers, r.Series, r.PerSeries, seriesGoal, r.SDKAlone)
	return out.String()
}

// broken names the promises that do not hold.
func (r result) broken() (broken []string) {
	for i, w := range ways() {
		if w.limit > 0 && r.Ways[i].Ratio > w.limit {
			broken = append(broken, fmt.Sprintf("%s: %.2f", w.name, r.Ways[i].Ratio))
		}
		if r.Ways[i].Allocations > r.Ways[0].Allocations {
			broken = append(broken, fmt.Sprintf("%s: %.0f allocations more", w.name, r.Ways[i].Allocations-r.Ways[0].Allocations))
		}
	}
	if r.PerSeries > seriesGoal && r.PerSeries > 1.5*r.SDKAlone { // else it is the machine that is slow just now
		broken = append(broken, fmt.Sprintf("collection: %.0f ns a series", r.PerSeries))
	}
	return broken
}
