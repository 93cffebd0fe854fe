package operate_test

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/switchgear-go/switchgear/e2e/internal/exposed"
)

// linter checks queries against the registry.
type linter struct {
	series map[string]exposed.Series
	faults []error // of the query that is being checked
}

// newLinter returns a linter that knows the registry.
func newLinter() (*linter, error) {
	series, err := exposed.All()
	return &linter{series: series}, err
}

// lint returns the labels that the result of a query may have, and an error that names every fault of it: it does not
// parse, or it has a metric, a label or a value of one that the registry does not have, or a function that does not fit the
// kind of metric.
func (l *linter) lint(query string) (set, error) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return nil, fmt.Errorf("%w in\n%s", err, query)
	}
	l.faults = nil
	result := l.labelsOf(expr)
	if err := errors.Join(l.faults...); err != nil {
		return nil, fmt.Errorf("%w in\n%s", err, query)
	}
	return result, nil
}

// define makes the result of a recording rule known.
func (l *linter) define(name string, has set) {
	of := map[string][]string{}
	for label := range has {
		of[label] = nil
	}
	l.series[name] = exposed.Series{Name: name, Kind: exposed.Gauge, Labels: of}
}

func (l *linter) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Errorf(format, args...))
}

// set is a set of label names.
type set map[string]bool

func (s set) String() string { return strings.Join(slices.Sorted(maps.Keys(s)), ", ") }

// need is a fault where s lacks one of names.
func (l *linter) need(s set, names []string, where fmt.Stringer) {
	for _, name := range names {
		if !s[name] {
			l.fault("%s: there is no label %s here, only %s", where, name, s)
		}
	}
}

// labelsOf returns the labels that the result of an expression may have; of a scalar, none. It notes what is wrong in it.
func (l *linter) labelsOf(expr parser.Expr) set {
	switch e := expr.(type) {
	case *parser.VectorSelector:
		return l.selector(e)
	case *parser.MatrixSelector:
		return l.labelsOf(e.VectorSelector)
	case *parser.SubqueryExpr:
		return l.labelsOf(e.Expr)
	case *parser.ParenExpr:
		return l.labelsOf(e.Expr)
	case *parser.UnaryExpr:
		return l.labelsOf(e.Expr)
	case *parser.AggregateExpr:
		inner := l.labelsOf(e.Expr)
		l.need(inner, e.Grouping, e.Op)
		if e.Without {
			return minus(inner, e.Grouping)
		}
		return of(e.Grouping)
	case *parser.BinaryExpr:
		return l.binary(e)
	case *parser.Call:
		return l.call(e)
	case *parser.NumberLiteral, *parser.StringLiteral:
		return set{}
	}
	l.fault("%s: no check of a %T", expr, expr)
	return set{}
}

func (l *linter) selector(s *parser.VectorSelector) set {
	series, ok := l.series[s.Name]
	if !ok {
		l.fault("there is no metric %q", s.Name)
		return set{}
	}
	has := set{}
	for label := range series.Labels {
		has[label] = true
	}
	for _, m := range s.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			continue
		}
		l.need(has, []string{m.Name}, s)
		if values := series.Labels[m.Name]; values != nil && m.Value != anyPolicy {
			l.closed(s, m, values)
		}
	}
	return has
}

// alternatives is a regular expression that is nothing but a list of words.
var alternatives = regexp.MustCompile(`^[\w|]+$`)

// closed checks a matcher of a label that has a closed set of values: each value it names has to be one.
func (l *linter) closed(s *parser.VectorSelector, m *labels.Matcher, values []string) {
	named := []string{m.Value}
	if m.Type == labels.MatchRegexp || m.Type == labels.MatchNotRegexp {
		if !alternatives.MatchString(m.Value) {
			l.fault("%s: %s has a closed set of values: name them as a|b", s, m)
			return
		}
		named = strings.Split(m.Value, "|")
	}
	for _, value := range named {
		if value != "" && !slices.Contains(values, value) {
			l.fault("%s: %s has no value %q, only %s", s, m.Name, value, strings.Join(values, ", "))
		}
	}
}

func (l *linter) binary(e *parser.BinaryExpr) set {
	left, right := l.labelsOf(e.LHS), l.labelsOf(e.RHS)
	m := e.VectorMatching
	switch {
	case m == nil: // one side at least is a scalar
		return union(left, right)
	case m.On:
		l.need(left, m.MatchingLabels, e.Op)
		l.need(right, m.MatchingLabels, e.Op)
	case len(m.MatchingLabels) > 0:
		l.need(union(left, right), m.MatchingLabels, e.Op)
	case e.Op != parser.LOR && !maps.Equal(left, right):
		l.fault("%s: %s on the left and %s on the right never match: say on which", e.Op, left, right)
	}
	switch {
	case e.Op == parser.LOR:
		return union(left, right)
	case e.Op.IsSetOperator(), m.Card != parser.CardOneToOne:
		return union(left, of(m.Include))
	case m.On:
		return of(m.MatchingLabels)
	}
	return minus(left, m.MatchingLabels)
}

// kinds are the functions that only make sense of one kind of metric.
var kinds = map[string]exposed.Kind{
	"rate": exposed.Counter, "irate": exposed.Counter, "increase": exposed.Counter,
	"avg_over_time": exposed.Gauge, "max_over_time": exposed.Gauge, "min_over_time": exposed.Gauge,
	"quantile_over_time": exposed.Gauge, "delta": exposed.Gauge,
}

func (l *linter) call(e *parser.Call) set {
	result := set{}
	for _, arg := range e.Args {
		result = union(result, l.labelsOf(arg))
		matrix, ok := arg.(*parser.MatrixSelector)
		if want := kinds[e.Func.Name]; ok && want != "" {
			name := matrix.VectorSelector.(*parser.VectorSelector).Name
			if got := l.series[name].Kind; got != want {
				l.fault("%s of a %s, %s", e.Func.Name, got, name)
			}
		}
	}
	if e.Func.Name == "histogram_quantile" {
		l.need(result, []string{"le"}, parser.ItemType(parser.BY))
		return minus(result, []string{"le"})
	}
	return result
}

func of(names []string) set {
	s := set{}
	for _, name := range names {
		s[name] = true
	}
	return s
}

func union(a, b set) set {
	s := maps.Clone(a)
	maps.Copy(s, b)
	return s
}

func minus(a set, names []string) set {
	s := maps.Clone(a)
	for _, name := range names {
		delete(s, name)
	}
	return s
}
