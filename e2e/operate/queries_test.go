package operate_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/e2e/internal/exposed"
	"github.com/switchgear-go/switchgear/internal/semconv"
)

// complete returns a linter that knows what the recording rules define too.
func complete(t *testing.T) *linter {
	t.Helper()
	l, err := newLinter()
	require.NoError(t, err)
	for _, r := range readRules(t, "rules.yaml").rules() {
		has, err := l.lint(r.Expr)
		require.NoError(t, err, r.Record)
		l.define(r.Record, has)
	}
	return l
}

var label = regexp.MustCompile(`\$labels\.(\w+)`)

func TestAlertsAskForWhatTheRegistryHas(t *testing.T) {
	l := complete(t)
	for _, r := range readRules(t, "alerts.yaml").rules() {
		has, err := l.lint(r.Expr)
		if err != nil {
			t.Errorf("%s: %v", r.Alert, err)
			continue
		}
		assert.True(t, has["job"] && has["switchgear_policy_name"], "%s does not say which policy it is about, only %s", r.Alert, has)
		for _, m := range label.FindAllStringSubmatch(r.Annotations["summary"], -1) {
			assert.True(t, has[m[1]], "%s tells a label %s that it does not have, only %s", r.Alert, m[1], has)
		}
	}
}

var legendLabel = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

func TestTheDashboardAsksForWhatTheRegistryHas(t *testing.T) {
	l := complete(t)
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			has, err := l.lint(interpolate.Replace(target.Expr))
			if err != nil {
				t.Errorf("%s %s: %v", p.Title, target.RefID, err)
				continue
			}
			for _, m := range legendLabel.FindAllStringSubmatch(target.Legend, -1) {
				assert.True(t, has[m[1]], "%s: the legend of %s has a label %s, the query only %s", p.Title, target.RefID, m[1], has)
			}
		}
	}
}

func TestPagesAskForWhatTheRegistryHas(t *testing.T) {
	l := complete(t)
	for _, page := range pages {
		for _, query := range queriesOf(t, page) {
			_, err := l.lint(query)
			assert.NoError(t, err, page)
		}
	}
}

var (
	promName = regexp.MustCompile(`switchgear_\w+`)
	otelName = regexp.MustCompile(`switchgear\.[a-z_.]+[a-z_]`)
)

func TestPagesNameWhatTheRegistryHas(t *testing.T) {
	known, err := exposed.All()
	require.NoError(t, err)
	names := map[string]bool{}
	for name, series := range known {
		names[name], names[series.Metric.Name] = true, true
		for label := range series.Labels {
			names[label] = true
		}
	}
	attributes := func(all []semconv.Attribute) {
		for _, a := range all {
			names[a.Key] = true
		}
	}
	for _, m := range semconv.Metrics {
		names[m.NameKey] = true
		attributes(m.Attributes)
	}
	for _, e := range semconv.Events {
		names[e.Name] = true
		attributes(e.Attributes)
	}
	for _, page := range append([]string{"README.md", "../adr/0006-state-is-zero-or-one-per-state.md"}, pages...) {
		text := read(t, page)
		for _, name := range append(promName.FindAllString(text, -1), otelName.FindAllString(text, -1)...) {
			assert.True(t, names[name], "%s: there is no %s", page, name)
		}
	}
}

func TestTheLinterFindsFaults(t *testing.T) {
	for query, want := range map[string]string{
		`switchgear_circuit_breaker_status{`:                                                                                "unexpected",
		`switchgear_circuit_breaker_state`:                                                                                  "there is no metric",
		`switchgear_circuit_breaker_status{switchgear_circuit_breaker_stat="open"}`:                                         "no label switchgear_circuit_breaker_stat ",
		`switchgear_circuit_breaker_status{switchgear_circuit_breaker_state="half-open"}`:                                   `no value "half-open"`,
		`switchgear_circuit_breaker_status{switchgear_circuit_breaker_state=~"open|shut"}`:                                  `no value "shut"`,
		`switchgear_circuit_breaker_status{switchgear_circuit_breaker_state=~"op.*"}`:                                       "name them as a|b",
		`sum by (switchgear_pipeline_name) (switchgear_circuit_breaker_status)`:                                             "no label switchgear_pipeline_name",
		`rate(switchgear_circuit_breaker_status[5m])`:                                                                       "rate of a gauge",
		`avg_over_time(switchgear_circuit_breaker_calls_total[5m])`:                                                         "avg_over_time of a counter",
		`switchgear_bulkhead_calls_total / switchgear_bulkhead_limit`:                                                       "never match",
		`switchgear_bulkhead_calls_total / on (switchgear_attempt_type) switchgear_bulkhead_limit`:                          "no label switchgear_attempt_type",
		`histogram_quantile(.9, sum by (switchgear_pipeline_name) (rate(switchgear_pipeline_duration_seconds_bucket[5m])))`: "no label le",
	} {
		l, err := newLinter()
		require.NoError(t, err)
		_, err = l.lint(query)
		if assert.Error(t, err, query) {
			assert.Contains(t, err.Error(), want)
		}
	}
	l, err := newLinter()
	require.NoError(t, err)
	for _, query := range []string{
		`histogram_quantile(.9, sum by (le, switchgear_call_outcome) (rate(switchgear_pipeline_duration_seconds_bucket[5m])))`,
		`switchgear_bulkhead_calls_total / on (switchgear_policy_name) group_left switchgear_bulkhead_limit`,
		`sum without (switchgear_acquire_result, instance) (switchgear_bulkhead_calls_total{switchgear_acquire_result!="acquired"})`,
	} {
		_, err := l.lint(query)
		require.NoError(t, err)
	}
	assert.Equal(t, "x 1m y", strings.TrimSpace(interpolate.Replace("x $__rate_interval y")))
}
