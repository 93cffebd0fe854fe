package operate_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(dir + name)
	require.NoError(t, err)
	return string(text)
}

// ruleFile is a file of rules for Prometheus.
type ruleFile struct {
	Groups []ruleGroup `yaml:"groups"`
}

type ruleGroup struct {
	Name  string `yaml:"name"`
	Rules []rule `yaml:"rules"`
}

type rule struct {
	Record      string            `yaml:"record,omitempty"`
	Alert       string            `yaml:"alert,omitempty"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

func readRules(t *testing.T, name string) ruleFile {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(read(t, name)))
	d.KnownFields(true)
	var f ruleFile
	require.NoError(t, d.Decode(&f), name)
	require.NotEmpty(t, f.rules(), name)
	return f
}

func (f ruleFile) rules() (all []rule) {
	for _, g := range f.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// dashboard is what is checked of a Grafana dashboard.
type dashboard struct {
	UID        string  `json:"uid"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
}

type variable struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Definition string `json:"definition"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Grid        struct {
		X, Y, W, H int
	} `json:"gridPos"`
	Datasource struct {
		Type, UID string
	} `json:"datasource"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []struct {
		RefID  string `json:"refId"`
		Expr   string `json:"expr"`
		Legend string `json:"legendFormat"`
	} `json:"targets"`
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(read(t, "dashboard.json")), &d))
	require.NotEmpty(t, d.Panels)
	return d
}

// graph reports whether the panel shows something, and is not the title of a row.
func (p panel) graph() bool { return p.Type != "row" && p.Type != "text" }

// anyPolicy stands for what a dashboard's variable becomes.
const anyPolicy = "chosen-in-grafana"

var interpolate = strings.NewReplacer(
	"$__rate_interval", "1m", "$__range", "1h", "$job", anyPolicy, "$policy", anyPolicy, "$pipeline", anyPolicy,
)

// pages are those with queries.
var pages = []string{"runbook.md", "tuning.md"}

var fence = regexp.MustCompile("(?ms)^```promql\n(.*?)^```$")

// queriesOf returns the queries of a page: what stands in blocks of PromQL, with blank lines between them.
func queriesOf(t *testing.T, name string) (queries []string) {
	t.Helper()
	for _, block := range fence.FindAllStringSubmatch(read(t, name), -1) {
		for query := range strings.SplitSeq(block[1], "\n\n") {
			queries = append(queries, strings.TrimSpace(query))
		}
	}
	require.NotEmpty(t, queries, name)
	return queries
}
