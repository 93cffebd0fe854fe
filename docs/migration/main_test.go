// Package migration has the code of the pages beside it, which quote it: so it compiles and runs.
package migration

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// up starts a server that gives a status after the other, the last one for ever. It returns its URL and what stops it.
func up(statuses ...int) (url string, down func()) {
	var n atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(statuses[min(int(n.Add(1)), len(statuses))-1])
		_, _ = io.WriteString(w, "hello")
	}))
	return srv.URL, func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		srv.Close()
	}
}

// Quote is what the examples ask for.
type Quote struct{ Price int }

var (
	ctx       = context.Background()
	errNoRows = errors.New("no such quote")
)

func fetchQuote(context.Context) (Quote, error) { return Quote{Price: 42}, nil }
