package retry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy"
)

// failsafe-go#65, go-resty#1197, hedgedhttp#1/#8: the winner's body is whole, and the loser's request is cancelled.
func TestHedgedResponsesAreWhole(t *testing.T) {
	const size = 512 << 10
	hedge := func() policy.Policy { return NewHedge(HedgeConfig{Delay: time.Millisecond}) }
	layers := map[string]func() []policy.Policy{
		"alone":            func() []policy.Policy { return []policy.Policy{hedge()} },
		"inside a retry":   func() []policy.Policy { return []policy.Policy{New(Config{}), hedge()} },
		"inside a timeout": func() []policy.Policy { return []policy.Policy{policy.Timeout(time.Minute), hedge()} },
		"around both":      func() []policy.Policy { return []policy.Policy{hedge(), New(Config{}), policy.Timeout(time.Minute)} },
	}
	for _, version := range []int{1, 2} {
		for _, winner := range []int{1, 2} {
			for name, build := range layers {
				t.Run(fmt.Sprintf("HTTP %d, attempt %d wins, %s", version, winner, name), func(t *testing.T) {
					arrived := map[int]chan struct{}{1: make(chan struct{}), 2: make(chan struct{})}
					lost := make(chan struct{}) // the loser's request was cancelled
					body := bytes.Repeat([]byte("0123456789abcdef"), size/16)
					server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						assert.Equal(t, version, r.ProtoMajor)
						n, _ := strconv.Atoi(r.Header.Get("Attempt"))
						close(arrived[n])
						if n != winner {
							<-r.Context().Done()
							close(lost)
							return
						}
						<-arrived[3-winner]
						for chunk := body; len(chunk) > 0; chunk = chunk[8<<10:] {
							_, _ = w.Write(chunk[:8<<10])
							w.(http.Flusher).Flush()
						}
					}))
					server.Config.ErrorLog = log.New(io.Discard, "", 0) // a cancelled request may end in its handshake
					server.EnableHTTP2 = version == 2
					server.StartTLS()
					defer server.Close()

					p := policy.NewPipeline("p", build()...)
					got, err := policy.Get(t.Context(), p, func(ctx context.Context) ([]byte, error) {
						req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
						if err != nil {
							return nil, err
						}
						req.Header.Set("Attempt", strconv.Itoa(policy.Attempt(ctx)))
						resp, err := server.Client().Do(req)
						if err != nil {
							return nil, err
						}
						defer func() { _ = resp.Body.Close() }()
						return io.ReadAll(resp.Body)
					})
					require.NoError(t, err)
					assert.True(t, bytes.Equal(body, got), "%d bytes", len(got))
					<-lost
				})
			}
		}
	}
}
