package prometheus_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/e2e"
	"github.com/switchgear-go/switchgear/e2e/internal/promserver"
	"github.com/switchgear-go/switchgear/e2e/internal/service"
	"github.com/switchgear-go/switchgear/e2e/internal/workload"
	"github.com/switchgear-go/switchgear/policy/observe"
)

const (
	interval = 500 * time.Millisecond      // between scrapes
	tardy    = interval + interval/2       // what a loaded machine may make of it
	long     = 2*interval + interval/2     // a stay that no scrape may miss
	brief    = 20 * time.Millisecond       // a stay that scrapes mostly miss
	blips    = 5                           // of that kind
	pause    = interval/2 + interval/blips // between them, so that they drift through the interval
)

func TestPrometheusSeesAnOutage(t *testing.T) {
	e2e.Real(t)
	t.Parallel()
	s := service.Start(t)
	began := time.Now()
	down, idle := newOutage("outage", long, s.Observer), newOutage("idle", long, s.Observer)
	flicker := newOutage("flicker", brief, s.Observer)
	server := promserver.Start(t, promserver.Config{Target: s.Address, Interval: interval})
	server.AwaitScrape(t, time.Now())

	idle.breaker.Trip() // and nobody is there when the cooldown ends
	stop := down.run(t, 20)
	sleep(t.Context(), long)
	down.dependency.failing.Store(true)
	down.await(t, breaker.Open)
	down.dependency.answers.Store(int64(long)) // the probe takes its time, then fails
	down.await(t, breaker.HalfOpen)
	down.await(t, breaker.Open)
	down.dependency.failing.Store(false)
	down.await(t, breaker.HalfOpen) // and now succeeds
	down.await(t, breaker.Closed)
	down.dependency.answers.Store(0)
	for range blips {
		flicker.blip(t)
		sleep(t.Context(), pause)
	}
	require.NoError(t, idle.breaker.Do(t.Context(), workload.Succeed))
	sleep(t.Context(), long)
	stop()
	server.AwaitScrape(t, time.Now())

	for o, want := range map[*outage][]string{
		down: {"open", "half_open", "open", "half_open", "closed"},
		idle: {"open", "half_open", "closed"}, // half-open from the cooldown's end on, not from when a call found it so
	} {
		t.Run("a state of "+o.breaker.Name()+" that lasts shows in status within one interval of its event", func(t *testing.T) {
			told := o.told()
			require.Equal(t, want, states(told))
			scrapes := scrapesOf(t, server, o.breaker.Name())
			for i, e := range told {
				until := time.Now()
				if i+1 < len(told) {
					until = told[i+1].Time
				}
				require.GreaterOrEqual(t, until.Sub(e.Time), interval, "stay %d in %s: the test is to blame", i, e.To)
				assertShows(t, scrapes, e, until)
			}
		})
	}
	for _, o := range []*outage{down, flicker} {
		t.Run("what Prometheus knows of "+o.breaker.Name()+" in the end is exact", func(t *testing.T) {
			stats, moves := o.breaker.Stats(), map[string]float64{}
			for _, e := range o.told() {
				moves[e.From+" to "+e.To]++
			}
			open := server.Vector(t, fmt.Sprintf(`switchgear_circuit_breaker_time_seconds_total{switchgear_policy_name=%q,switchgear_circuit_breaker_state="open"}`, o.breaker.Name()))
			require.Len(t, open, 1)
			assert.InDelta(t, stats.OpenFor.Seconds(), float64(open[0].Value), 1e-6)
			made := server.Vector(t, fmt.Sprintf(`timestamp(up{job="switchgear"}) - on() sum(switchgear_circuit_breaker_time_seconds_total{switchgear_policy_name=%q})`, o.breaker.Name()))
			require.Len(t, made, 1)
			assert.InDelta(t, float64(began.UnixMilli())/1000, float64(made[0].Value), 0.5, "all its time is spent in one state or another, the present stay included")
			assert.Equal(t, moves, transitions(t, server, o.breaker.Name()))
		})
	}
	assert.Len(t, flicker.told(), 3*blips)
	assert.Less(t, flicker.breaker.Stats().OpenFor, blips*interval, "openings that are shorter than the interval")
}

// assertShows checks that every scrape between an event and the next finds the state that the first tells, and that there
// is one soon, unless the machine was too busy for it.
func assertShows(t *testing.T, scrapes []scrape, e observe.Event, until time.Time) {
	t.Helper()
	soon, excused := false, false
	for _, scrape := range scrapes {
		after := scrape.began.Sub(e.Time)
		if after < 0 || scrape.ended.After(until) {
			continue
		}
		if scrape.failed {
			excused = excused || after <= tardy
			continue
		}
		soon = soon || after <= tardy
		assert.Equal(t, []string{e.To}, scrape.in, "%v after the event", after)
	}
	assert.True(t, soon || excused, "%s does not show within %v", e.To, tardy)
}

// scrape is what one scrape found of a breaker.
type scrape struct {
	began, ended time.Time
	failed       bool     // it was not answered in time
	in           []string // the states with a status of 1
}

// scrapesOf returns what each scrape found, in order.
func scrapesOf(t *testing.T, server *promserver.Server, name string) []scrape {
	t.Helper()
	byTime := map[model.Time]*scrape{}
	// One query, so that all of it is of the same scrapes.
	for _, s := range server.Matrix(t, `{__name__=~"up|scrape_duration_seconds|switchgear_circuit_breaker_status", job="switchgear"}[5m]`) {
		for _, v := range s.Values {
			at, ok := byTime[v.Timestamp]
			if !ok {
				at = &scrape{began: v.Timestamp.Time()}
				byTime[v.Timestamp] = at
			}
			switch s.Metric[model.MetricNameLabel] {
			case "up":
				at.failed = v.Value == 0
			case "scrape_duration_seconds":
				at.ended = at.began.Add(time.Duration(float64(v.Value) * float64(time.Second)))
			default:
				if s.Metric["switchgear_policy_name"] != model.LabelValue(name) {
					continue
				}
				for range int(v.Value) { // 1, unless something is wrong
					at.in = append(at.in, string(s.Metric["switchgear_circuit_breaker_state"]))
				}
			}
		}
	}
	times := slices.Sorted(maps.Keys(byTime))
	scrapes := make([]scrape, 0, len(times))
	for _, at := range times {
		scrapes = append(scrapes, *byTime[at])
	}
	require.NotEmpty(t, scrapes)
	return scrapes
}

// transitions returns the transitions that happened.
func transitions(t *testing.T, server *promserver.Server, name string) map[string]float64 {
	t.Helper()
	moves := map[string]float64{}
	for _, s := range server.Vector(t, fmt.Sprintf(`switchgear_circuit_breaker_transitions_total{switchgear_policy_name=%q} > 0`, name)) {
		moves[string(s.Metric["switchgear_circuit_breaker_previous_state"]+" to "+s.Metric["switchgear_circuit_breaker_state"])] = float64(s.Value)
	}
	return moves
}

func states(told []observe.Event) (to []string) {
	for _, e := range told {
		to = append(to, e.To)
	}
	return to
}
