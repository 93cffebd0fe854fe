package promserver

import (
	"testing"
	"time"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// Server is a Prometheus that runs.
type Server struct {
	API prometheus.API
}

// Vector returns the present value of an expression that is an instant vector.
func (s *Server) Vector(t testing.TB, expr string) model.Vector {
	t.Helper()
	return query[model.Vector](t, s.API, expr)
}

// Matrix returns the present value of an expression that is a range vector.
func (s *Server) Matrix(t testing.TB, expr string) model.Matrix {
	t.Helper()
	return query[model.Matrix](t, s.API, expr)
}

func query[T model.Value](t testing.TB, api prometheus.API, expr string) T {
	t.Helper()
	result, warnings, _, err := api.Query(t.Context(), expr, time.Now())
	require.NoError(t, err, expr)
	require.Empty(t, warnings, expr)
	of, ok := result.(T)
	require.True(t, ok, "%s is a %s", expr, result.Type())
	return of
}

// AwaitScrape waits for a scrape that began after a moment.
func (s *Server) AwaitScrape(t testing.TB, after time.Time) {
	t.Helper()
	Await(t, func() string {
		up := s.Vector(t, `timestamp(up{job="switchgear"}) and up{job="switchgear"} == 1`)
		if len(up) == 1 && float64(up[0].Value) > float64(after.UnixMilli())/1000 {
			return ""
		}
		return "a scrape"
	})
}

// Await waits until nothing is missing, a minute at most. It asks on the test's own goroutine.
func Await(t testing.TB, missing func() string) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for {
		what := missing()
		if what == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after a minute, still missing: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
