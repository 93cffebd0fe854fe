package main

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/httpx"
	"github.com/switchgear-go/switchgear/policy"
)

// What the server can do: each request needs one of its connections to a database for a while.
const (
	connections = 4
	query       = 40 * time.Millisecond
	capacity    = connections * int(time.Second/query) // requests a second
)

// protected puts a limit around a handler that is as much as it can do, and a short queue for what comes in bursts. The rest
// is refused at once, while the client still has time to go elsewhere.
func protected(handler http.Handler) http.Handler {
	return httpx.Middleware(policy.NewPipeline("orders",
		bulkhead.New("orders", bulkhead.Config{Max: connections, Queue: connections, MaxWait: 2 * query}),
		policy.Timeout(patience),
	))(handler)
}

// database answers queries as long as it has a connection for them. Who finds none waits in line, and leaves it with its
// context: as a pool of sql.DB does.
type database chan struct{}

func newDatabase() database { return make(database, connections) }

func (d database) ask(ctx context.Context) error {
	select {
	case d <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-d }()
	select {
	case <-time.After(query):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ServeHTTP answers with what the database says.
func (d database) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := d.ask(r.Context()); err != nil {
		return // whoever asked has gone
	}
	_, _ = io.WriteString(w, "order placed\n")
}
