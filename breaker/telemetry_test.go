package breaker

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// reported returns the rows that s reports, such as "calls closed success=0".
func reported(t *testing.T, s observe.Source) []string {
	t.Helper()
	v := make([]int64, len(s.Rows)-len(s.Counts))
	require.True(t, s.Live(v))
	var rows []string
	for i, r := range s.Rows {
		var n int64
		if i < len(s.Counts) {
			n = s.Counts[i].Load()
		} else {
			n = v[i-len(s.Counts)]
		}
		if n == observe.None {
			continue
		}
		row := strings.TrimPrefix(r.Metric, "switchgear.circuit_breaker.")
		for _, a := range r.Attrs {
			row += " " + a.Value
		}
		rows = append(rows, fmt.Sprint(row, "=", n))
	}
	slices.Sort(rows)
	return rows
}

func lines(text string) []string {
	l := strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "\t", "")), "\n")
	slices.Sort(l)
	return l
}

func TestWhatHappensWithoutAnOperatorIsReportedFromZero(t *testing.T) {
	b := newBed(Config{})
	assert.Equal(t, "circuit_breaker payments-api", b.source.Policy+" "+b.source.Name)
	assert.Equal(t, lines(`
		calls closed failure=0
		calls closed ignored=0
		calls closed rejected=0
		calls closed success=0
		calls half_open failure=0
		calls half_open ignored=0
		calls half_open rejected=0
		calls half_open success=0
		calls open rejected=0
		late_results=0
		status closed=1
		status half_open=0
		status open=0
		time closed=0
		time half_open=0
		time open=0
		transitions closed open=0
		transitions half_open closed=0
		transitions half_open open=0
		transitions open half_open=0`), reported(t, b.source))
}

func TestOtherRowsAreReportedFromTheirFirstUse(t *testing.T) {
	b := newBed(Config{})
	before := reported(t, b.source)
	b.ForceOpen()
	assert.True(t, b.refuses())
	b.advance(3)
	assert.Equal(t, []string{
		"calls forced_open rejected=1", "status closed=0", "status forced_open=1", "time forced_open=3", "transitions closed forced_open=1",
	}, without(reported(t, b.source), before))
	before = reported(t, b.source)
	b.ForceClosed()
	b.fail(1)
	assert.Equal(t, []string{
		"calls forced_closed failure=1", "calls forced_closed ignored=0", "calls forced_closed success=0", "status forced_closed=1", "status forced_open=0",
		"time forced_closed=0", "transitions forced_open forced_closed=1",
	}, without(reported(t, b.source), before))
}

func TestSomeRowsAreReportedOnlyWhereConfigured(t *testing.T) {
	plain := reported(t, newBed(Config{}).source)
	assert.Equal(t, []string{"slow_calls=0"}, without(reported(t, newBed(Config{SlowCall: 1}).source), plain))
	assert.Equal(t, []string{"calls open failure=0", "calls open ignored=0", "calls open success=0", "would_reject=0"},
		without(reported(t, newBed(Config{Shadow: true}).source), plain))
}

func without(rows, known []string) []string {
	return slices.DeleteFunc(rows, func(r string) bool { return slices.Contains(known, r) })
}

// The report: pilot#5210.
func TestStatusAndTimeShowAtOnceWhatTimeHasChanged(t *testing.T) {
	b := newBed(Config{Cooldown: 5, ProbeTimeout: 10})
	b.advance(2)
	b.Trip()
	b.advance(7)
	assert.Subset(t, reported(t, b.source), []string{
		"status closed=0", "status half_open=1", "status open=0", "time closed=2", "time open=5", "time half_open=2",
		"transitions open half_open=0",
	}, "the count of the change follows with the next call")
	b.allow(t)
	b.advance(12)
	assert.Subset(t, reported(t, b.source), []string{
		"status half_open=0", "status open=1", "time open=7", "time half_open=12", "transitions open half_open=1", "transitions half_open open=0",
	})
	assert.Empty(t, without(reported(t, b.source), reported(t, b.source)))
}

func TestTheTableOfRowsIsWellFormed(t *testing.T) {
	known := map[string]bool{}
	for _, m := range semconv.Metrics {
		known[m.Name] = true
	}
	seen := map[string]bool{}
	for _, r := range table.rows {
		assert.True(t, known[r.Metric], r.Metric)
		key := fmt.Sprint(r)
		assert.False(t, seen[key], "twice: %s", key)
		seen[key] = true
	}
	for _, s := range []State{Closed, HalfOpen, Open, ForcedOpen, ForcedClosed} {
		for _, to := range movesFrom(s) {
			assert.NotEqual(t, s, to.state)
		}
	}
	assert.Equal(t, "unknown", State(states).String())
	assert.Equal(t, "unknown", State(-1).String())
}

func TestCountsOutliveTheBreakerAndNothingElseDoes(t *testing.T) {
	var source observe.Source
	func() {
		b := newBed(Config{MinCalls: 1})
		b.fail(1)
		b.end(3, nil)
		source = b.source
	}()
	for range 100 { // until the weak pointer is cleared
		runtime.GC()
		if !source.Live(make([]int64, len(source.Rows)-len(source.Counts))) {
			break
		}
	}
	assert.False(t, source.Live(make([]int64, 2*states)))
	assert.EqualValues(t, 3, source.Counts[table.calls[Open][rejected]].Load())
}

func TestBreakersLeaveNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 1000 {
		b := newBed(Config{RampUp: time.Second, SlowCall: time.Second})
		b.Trip()
		b.advance(time.Minute)
		_, _ = b.Allow(t.Context())
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), before)
}
