package operate_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/e2e/internal/exposed"
)

func TestDashboardPanelsAreWhole(t *testing.T) {
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range readDashboard(t).Panels {
		assert.False(t, ids[p.ID], "%s: id %d is taken", p.Title, p.ID)
		ids[p.ID] = true
		for x := p.Grid.X; x < p.Grid.X+p.Grid.W; x++ {
			for y := p.Grid.Y; y < p.Grid.Y+p.Grid.H; y++ {
				assert.Less(t, x, 24, p.Title)
				require.Empty(t, taken[[2]int{x, y}], "%s lies over it", p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
		if !p.graph() {
			continue
		}
		assert.NotEmpty(t, p.Description, p.Title)
		assert.NotEmpty(t, p.FieldConfig.Defaults.Unit, p.Title)
		assert.Equal(t, "prometheus", p.Datasource.Type, p.Title)
		assert.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			assert.NotEmpty(t, target.Legend, "%s %s", p.Title, target.RefID)
		}
	}
}

var (
	metricName  = regexp.MustCompile(`switchgear_\w+(?:{|\[| |\)|$)`)
	selector    = regexp.MustCompile(`{[^{}]*}`)
	labelValues = regexp.MustCompile(`^label_values\((?:(.*), )?(\w+)\)$`)
)

func TestDashboardVariablesNarrowEveryQuery(t *testing.T) {
	d := readDashboard(t)
	defined := map[string]bool{}
	known, err := exposed.All()
	require.NoError(t, err)
	labels := map[string]bool{}
	for _, series := range known {
		for label := range series.Labels {
			labels[label] = true
		}
	}
	for _, v := range d.Templating.List {
		defined[v.Name] = true
		if v.Type != "query" {
			continue
		}
		m := labelValues.FindStringSubmatch(v.Definition)
		if assert.NotNil(t, m, "%s: %s", v.Name, v.Definition) {
			assert.True(t, labels[m[2]], "%s: there is no label %s", v.Name, m[2])
		}
	}
	assert.Equal(t, map[string]bool{"datasource": true, "job": true, "policy": true, "pipeline": true}, defined)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			found := selector.FindAllString(target.Expr, -1)
			require.NotEmpty(t, found, p.Title)
			for _, s := range found {
				assert.Contains(t, s, `job=~"$job"`, p.Title)
				assert.True(t, strings.Contains(s, `switchgear_policy_name=~"$policy"`) || strings.Contains(s, `switchgear_pipeline_name=~"$pipeline"`), "%s: %s", p.Title, s)
			}
		}
	}
}

func TestTheDashboardShowsWhatAnOperatorAsksFor(t *testing.T) {
	shown := map[string]bool{}
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			for _, name := range metricName.FindAllString(target.Expr, -1) {
				shown[strings.TrimRight(name, "{[ )")] = true
			}
		}
	}
	for _, name := range []string{
		"switchgear_circuit_breaker_status", "switchgear_circuit_breaker_time_seconds_total", "switchgear_circuit_breaker_transitions_total",
		"switchgear_circuit_breaker_calls_total", "switchgear_bulkhead_calls_total", "switchgear_rate_limiter_calls_total",
		"switchgear_retry_attempts_total", "switchgear_hedge_attempts_total", "switchgear_retry_budget_available",
		"switchgear_bulkhead_usage", "switchgear_bulkhead_queue_usage", "switchgear_rate_limiter_available",
		"switchgear_timeout_calls_total", "switchgear_fallback_calls_total",
		"switchgear_pipeline_duration_seconds_bucket", "switchgear_pipeline_active",
	} {
		assert.True(t, shown[name], "no panel shows %s", name)
	}
}
