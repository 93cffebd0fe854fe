package main

import (
	"strings"
	"testing"
)

func TestEveryWayIsMeasuredAndStandsInTheTable(t *testing.T) {
	r := measure(1)
	table := medianOf([]result{r, r}).markdown()
	for i, w := range ways() {
		if r.Ways[i].Nanoseconds <= 0 || !strings.Contains(table, "| "+w.name+" | ") {
			t.Errorf("%s: %+v\n%s", w.name, r.Ways[i], table)
		}
		if got, want := r.Ways[i].Allocations, r.Ways[0].Allocations; got != want {
			t.Errorf("%s: %v allocations, silence has %v", w.name, got, want)
		}
	}
	if r.Series != 20*breakers {
		t.Errorf("%d series", r.Series)
	}
}

func TestABrokenPromiseIsNamed(t *testing.T) {
	r := result{PerSeries: seriesGoal + 1}
	for range ways() {
		r.Ways = append(r.Ways, figure{Ratio: 1, Allocations: 2})
	}
	r.Ways[1] = figure{Ratio: 1.2, Allocations: 3}
	got := strings.Join(r.broken(), "; ")
	if want := "default, no SDK: 1.20; default, no SDK: 1 allocations more; collection: 1501 ns a series"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
