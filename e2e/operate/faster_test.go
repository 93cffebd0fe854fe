package operate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// faster writes the rules of a file anew so that they judge by times that are shorter: all that is a time is divided, all
// else is as shipped. It returns the new file.
func faster(t *testing.T, name string, by int64) string {
	t.Helper()
	f := readRules(t, name)
	for g := range f.Groups {
		for n := range f.Groups[g].Rules {
			r := &f.Groups[g].Rules[n]
			r.Expr = fasterQuery(t, r.Expr, by)
			if r.For != "" {
				d, err := model.ParseDuration(r.For)
				require.NoError(t, err, r.Alert)
				r.For = model.Duration(time.Duration(d) / time.Duration(by)).String()
			}
		}
	}
	text, err := yaml.Marshal(f)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

func fasterQuery(t *testing.T, query string, by int64) string {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	require.NoError(t, err)
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.MatrixSelector:
			n.Range /= time.Duration(by)
		case *parser.SubqueryExpr:
			n.Range /= time.Duration(by)
			n.Step /= time.Duration(by)
		case *parser.BinaryExpr:
			if limit, ok := n.RHS.(*parser.NumberLiteral); ok && n.Op.IsComparisonOperator() && inSeconds(n.LHS) {
				limit.Val /= float64(by)
			}
		}
		return nil
	})
	return expr.String()
}

// inSeconds reports whether the value of an expression is a time: what a counter of seconds has risen by. Its rate is none.
func inSeconds(expr parser.Expr) (seconds bool) {
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if call, ok := node.(*parser.Call); ok && call.Func.Name == "increase" {
			seconds = seconds || strings.Contains(call.String(), "_seconds_total")
		}
		return nil
	})
	return seconds
}

func TestFasterRulesDivideWhatIsATime(t *testing.T) {
	for query, want := range map[string]string{
		`max by (job) (increase(x_seconds_total[1h])) > 300`: `max by (job) (increase(x_seconds_total[1m])) > 5`,
		`rate(x_seconds_total[10m]) > 0.9`:                   `rate(x_seconds_total[10s]) > 0.9`,
		`increase(x_total[10m]) >= 4`:                        `increase(x_total[10s]) >= 4`,
		`avg_over_time(usage[5m]) / limit > 0.8`:             `avg_over_time(usage[5s]) / limit > 0.8`,
	} {
		assert.Equal(t, want, fasterQuery(t, query, 60))
	}
}
