package operate_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/switchgear-go/switchgear/e2e"
	"github.com/switchgear-go/switchgear/e2e/internal/promserver"
	"github.com/switchgear-go/switchgear/e2e/internal/service"
)

func TestRulesFireOnRealTroublesAndStayQuietElsewhere(t *testing.T) {
	e2e.Real(t)
	t.Parallel()
	const minute = 60 // is a second
	s := service.Start(t)
	ctx, end := context.WithCancel(t.Context())
	w := &ward{observer: s.Observer, ctx: ctx}
	t.Cleanup(w.calls.Wait)
	t.Cleanup(end)
	begin := w.admit()
	server := promserver.Start(t, promserver.Config{
		Target: s.Address, Interval: 15 * time.Second / minute,
		Rules: []string{faster(t, "alerts.yaml", minute), faster(t, "rules.yaml", minute)},
	})
	server.AwaitScrape(t, time.Now())
	begin()

	want := map[string][]string{}
	for name, of := range alerts {
		if len(of) > 0 {
			want[name] = slices.Sorted(slices.Values(of))
		}
	}
	promserver.Await(t, func() string { return lacking(want["down"], fired(t, server)["down"]) })
	w.repaired.Store(true)
	promserver.Await(t, func() string {
		seen := fired(t, server)
		for name, of := range want {
			if missing := lacking(of, seen[name]); missing != "" {
				return name + ": " + missing
			}
		}
		return ""
	})
	promserver.Await(t, func() string {
		if len(server.Vector(t, `ALERTS{alertstate="firing", alertname="CircuitBreakerOpened", switchgear_policy_name="down"}`)) > 0 {
			return "the end of the outage"
		}
		return ""
	})
	assert.Equal(t, want, fired(t, server))

	codes := map[string]int{}
	for _, sample := range server.Vector(t, `switchgear:circuit_breaker_state:code{switchgear_policy_name!="flapping"}`) {
		codes[string(sample.Metric["switchgear_policy_name"])] = int(sample.Value)
	}
	assert.Equal(t, map[string]int{
		"calm": 0, "down": 0, "brief": 0, "deaf": 0, "forced": 0, "twice": 0, "stuck": 1, "forsaken": 1,
	}, codes)
}

// lacking names the first of want that is not in got.
func lacking(want, got []string) string {
	for _, name := range want {
		if !slices.Contains(got, name) {
			return name
		}
	}
	return ""
}

// fired returns the alerts that have fired, by policy, in order.
func fired(t *testing.T, server *promserver.Server) map[string][]string {
	t.Helper()
	seen := map[string][]string{}
	for _, sample := range server.Vector(t, `count by (switchgear_policy_name, alertname) (count_over_time(ALERTS{alertstate="firing"}[10m]))`) {
		name := string(sample.Metric["switchgear_policy_name"])
		seen[name] = append(seen[name], string(sample.Metric["alertname"]))
	}
	for _, of := range seen {
		slices.Sort(of)
	}
	return seen
}
