package operate_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/switchgear-go/switchgear/e2e"
	"github.com/switchgear-go/switchgear/e2e/internal/promserver"
)

func TestPromtoolAcceptsTheRules(t *testing.T) {
	e2e.Real(t)
	said, err := promserver.Tool(t, nil, "check", "rules", dir+"alerts.yaml", dir+"rules.yaml")
	assert.NoError(t, err, said)
}

func TestRulesKeepToTheirTimelines(t *testing.T) {
	e2e.Real(t)
	said, err := promserver.Tool(t, nil, "test", "rules", dir+"alerts_test.yaml")
	assert.NoError(t, err, said)
}

// timelines is what is read here of promtool's tests.
type timelines struct {
	Tests []struct {
		Name   string `yaml:"name"`
		Alerts []struct {
			Name   string `yaml:"alertname"`
			Expect []any  `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	} `yaml:"tests"`
}

func TestEveryAlertHasATimelineOnWhichItFiresAndOneOnWhichItStaysQuiet(t *testing.T) {
	var f timelines
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "alerts_test.yaml")), &f))
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range f.Tests {
		for _, a := range test.Alerts {
			if len(a.Expect) > 0 {
				fires[a.Name] = true
			} else {
				quiet[a.Name] = true
			}
		}
	}
	alerts := map[string]bool{}
	for _, r := range readRules(t, "alerts.yaml").rules() {
		alerts[r.Alert] = true
	}
	assert.Equal(t, alerts, fires, "fire somewhere")
	assert.Equal(t, alerts, quiet, "stay quiet somewhere")
}

// changes are what decides in the rules, each changed.
var changes = []struct{ was, is string }{
	{"> 300", "> 30"},
	{"> 300", "> 600"},
	{"[1h]", "[10m]"},
	{
		`increase(switchgear_circuit_breaker_time_seconds_total{switchgear_circuit_breaker_state="open"}[1h])`,
		`sum without (instance) (increase(switchgear_circuit_breaker_time_seconds_total{switchgear_circuit_breaker_state="open"}[1h]))`,
	},
	{`{switchgear_circuit_breaker_state="open"}[1h]`, "[1h]"},
	{">= 4", ">= 2"},
	{">= 4", ">= 7"},
	{`, switchgear_circuit_breaker_previous_state="closed"`, ""},
	{") > 0.5", ") > 0.2"},
	{") > 0.5", ") > 0.8"},
	{`{switchgear_circuit_breaker_state="open"}[10m]`, `{switchgear_circuit_breaker_state="closed"}[10m]`},
	{") > 0.9", ") > 0.8"},
	{"[10m])\n              ) > 0\n          ) > 0.9", "[10m])\n              ) >= 0\n          ) > 0.9"},
	{"forced_open|forced_closed", "forced_closed"},
	{"for: 15m", "for: 5m"},
	{"(switchgear_circuit_breaker_status)", `(switchgear_circuit_breaker_status{switchgear_circuit_breaker_state="closed"})`},
	{
		"sum by (job, instance, switchgear_policy_name) (switchgear_circuit_breaker_status)",
		"sum by (job, switchgear_policy_name) (switchgear_circuit_breaker_status)",
	},
	{") > 1\n", ") > 2\n"},
	{"[5m])\n          ) > 0", "[30m])\n          ) > 0"},
	{"> 1.5", "> 1.1"},
	{"> 1.5", "> 3.1"},
	{`{switchgear_attempt_type="original"}`, ""},
	{"< 0.2", "< 0.01"},
	{"min by", "max by"},
	{"> 0.8", "> 0.1"},
	{"> 0.8", "> 0.95"},
	{"avg_over_time(switchgear_bulkhead_usage[5m])", "max_over_time(switchgear_bulkhead_usage[5m])"},
	{"avg_over_time(switchgear_bulkhead_usage[5m])", "switchgear_bulkhead_usage"},
}

func TestTimelinesNoticeAChangedRule(t *testing.T) {
	e2e.Real(t)
	rules, records := read(t, "alerts.yaml"), read(t, "rules.yaml")
	tests := withoutTheDay(t, read(t, "alerts_test.yaml"))
	for _, change := range changes {
		t.Run(change.is+" for "+change.was, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, rules, change.was)
			tmp := t.TempDir()
			for name, text := range map[string]string{
				"alerts.yaml": strings.Replace(rules, change.was, change.is, 1), "rules.yaml": records, "alerts_test.yaml": tests,
			} {
				require.NoError(t, os.WriteFile(filepath.Join(tmp, name), []byte(text), 0o600))
			}
			said, err := promserver.Tool(t, nil, "test", "rules", filepath.Join(tmp, "alerts_test.yaml"))
			require.Error(t, err, "no timeline notices it")
			assert.Contains(t, said, "alertname", "the rule is no rule any more")
		})
	}
}

// withoutTheDay returns promtool's tests without the first one: a whole day takes promtool longer than all else together.
func withoutTheDay(t *testing.T, tests string) string {
	t.Helper()
	var f map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(tests), &f))
	list, ok := f["tests"].([]any)
	require.True(t, ok)
	f["tests"] = list[1:]
	text, err := yaml.Marshal(f)
	require.NoError(t, err)
	return string(text)
}

var paragraph = regexp.MustCompile(`(?m)^## (\w+)$`)

func TestEveryAlertHasAParagraphInTheRunbook(t *testing.T) {
	text := read(t, "runbook.md")
	about := map[string]bool{}
	for _, m := range paragraph.FindAllStringSubmatch(text, -1) {
		about[m[1]] = true
	}
	alerts := map[string]bool{}
	for _, r := range readRules(t, "alerts.yaml").rules() {
		alerts[r.Alert] = true
		assert.Equal(t, "https://github.com/switchgear-go/switchgear/blob/main/docs/operate/runbook.md#"+strings.ToLower(r.Alert),
			r.Annotations["runbook_url"], r.Alert)
		assert.NotEmpty(t, r.Annotations["summary"], r.Alert)
		assert.Contains(t, []string{"info", "warning", "critical"}, r.Labels["severity"], r.Alert)
	}
	assert.Equal(t, alerts, about)
}
