package operate_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/e2e"
	"github.com/switchgear-go/switchgear/e2e/internal/promserver"
	"github.com/switchgear-go/switchgear/e2e/internal/service"
	"github.com/switchgear-go/switchgear/e2e/internal/workload"
)

func TestEveryQueryOfDashboardAndPagesHasAnAnswer(t *testing.T) {
	e2e.Real(t)
	t.Parallel()
	const minute = 60 // is a second
	s := service.Start(t)
	server := promserver.Start(t, promserver.Config{
		Target: s.Address, Interval: 15 * time.Second / minute, Rules: []string{faster(t, "rules.yaml", minute)},
	})
	server.AwaitScrape(t, time.Now())
	var keep []any
	defer func() { runtime.KeepAlive(keep) }()                           // a policy that is gone has no present values for a query to find
	for began := time.Now(); time.Since(began) < 6*time.Minute/minute; { // longer than what subqueries step by
		keep = append(keep, workload.Everything(t.Context(), s.Observer)...)
		server.AwaitScrape(t, time.Now())
	}

	queries := map[string]string{} // and where they are from
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			queries[strings.ReplaceAll(interpolate.Replace(target.Expr), anyPolicy, ".*")] = p.Title
		}
	}
	for _, page := range pages {
		for _, query := range queriesOf(t, page) {
			queries[query] = page
		}
	}
	for query, from := range queries {
		result, warnings, _, err := server.API.Query(t.Context(), fasterQuery(t, query, minute), time.Now())
		require.NoError(t, err, "%s: %s", from, query)
		assert.Empty(t, warnings, "%s: %s", from, query)
		if answer, ok := result.(model.Vector); assert.True(t, ok, query) && !strings.Contains(query, ") > 0") {
			assert.NotEmpty(t, answer, "%s: %s", from, query)
		}
	}
}
