package httpx_test

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/retry"
)

// eventually is how long a test waits for what has to happen; it fails after that.
const eventually = 10 * time.Second

// server is a real server on the loopback, and a base transport of its own.
type server struct {
	*httptest.Server
	base  *base
	conns atomic.Int64 // that were opened
}

// onEach runs the test over HTTP/1.1 and over HTTP/2. What the test leaves behind, once server and transport are closed, fails it.
func onEach(t *testing.T, handler http.HandlerFunc, test func(t *testing.T, srv *server)) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			srv := serve(t, proto, func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, proto, r.Proto)
				handler(w, r)
			})
			test(t, srv)
		})
	}
}

func serve(t *testing.T, proto string, handler http.HandlerFunc) *server {
	t.Helper()
	before := goleak.IgnoreCurrent()
	srv := &server{Server: httptest.NewUnstartedServer(handler)}
	srv.Config.ErrorLog = discardLog // tests break connections
	open := map[net.Conn]bool{}
	var mu sync.Mutex
	srv.Config.ConnState = func(c net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		switch state {
		case http.StateNew:
			srv.conns.Add(1)
			open[c] = true
		case http.StateClosed, http.StateHijacked:
			delete(open, c)
		}
	}
	if proto == "HTTP/2.0" {
		srv.EnableHTTP2 = true
		srv.StartTLS()
	} else {
		srv.Start()
	}
	tr := srv.Client().Transport.(*http.Transport)
	srv.base = &base{RoundTripper: tr}
	t.Cleanup(func() {
		srv.base.requireAllClosed(t)
		tr.CloseIdleConnections()
		srv.Close()
		require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(open) == 0 }, eventually, time.Millisecond, "connections are left")
		require.NoError(t, goleak.Find(before))
	})
	return srv
}

// base is a real transport that keeps book of what is sent and of the bodies that came back.
type base struct {
	http.RoundTripper
	before func(r *http.Request) // called before each send, if not nil

	mu     sync.Mutex
	sends  []*http.Request
	bodies []*tracked
}

func (b *base) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	b.sends = append(b.sends, r)
	before := b.before
	b.mu.Unlock()
	if before != nil {
		before(r)
	}
	resp, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body := &tracked{ReadCloser: resp.Body}
	b.mu.Lock()
	b.bodies = append(b.bodies, body)
	b.mu.Unlock()
	if resp.StatusCode != http.StatusSwitchingProtocols && resp.Body != http.NoBody {
		resp.Body = body
	} else {
		body.closed.Store(true)
	}
	return resp, nil
}

func (b *base) CloseIdleConnections() {
	b.RoundTripper.(interface{ CloseIdleConnections() }).CloseIdleConnections()
}

func (b *base) sent() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.sends)
}

// came returns how many responses came.
func (b *base) came() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.bodies)
}

func (b *base) body(i int) *tracked {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bodies[i]
}

func (b *base) requireAllClosed(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return !slices.ContainsFunc(b.bodies, func(body *tracked) bool { return !body.closed.Load() })
	}, eventually, time.Millisecond, "a body was not closed")
}

// tracked is the body of a response.
type tracked struct {
	io.ReadCloser
	read   atomic.Int64
	eof    atomic.Bool
	closed atomic.Bool
}

func (b *tracked) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Add(int64(n))
	b.eof.Store(b.eof.Load() || err == io.EOF)
	return n, err
}

func (b *tracked) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}

// sentBody is the body of a request that knows whether it was closed.
type sentBody struct {
	io.Reader
	closed atomic.Int64
}

func (b *sentBody) Close() error {
	b.closed.Add(1)
	return nil
}

func (b *sentBody) requireClosed(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return b.closed.Load() > 0 }, eventually, time.Millisecond, "the request's body was not closed")
}

func request(t *testing.T, ctx context.Context, method, url string, body ...byte) *http.Request {
	t.Helper()
	var r io.Reader
	if len(body) > 0 {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, r)
	require.NoError(t, err)
	return req
}

func readAll(t *testing.T, resp *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(text)
}

// instantly is a backoff without waits.
func instantly() backoff.BackOff { return &backoff.ZeroBackOff{} }

// attempts is a retry that does not wait and has no budget.
func attempts(n int) *retry.Retry {
	return retry.New(retry.Config{Attempts: n, BackOff: instantly, Budget: retry.Unlimited})
}

// answers is a handler that gives a status after the other, the last one for ever.
func answers(statuses ...int) http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, _ *http.Request) {
		i := min(int(n.Add(1)), len(statuses))
		w.WriteHeader(statuses[i-1])
		_, _ = io.WriteString(w, strings.Repeat("x", 100*i))
	}
}

// ledger is an Observer whose rows and events a test reads.
type ledger struct {
	mu      sync.Mutex
	sources []observe.Source
	events  []observe.Event
}

func (l *ledger) Attach(s observe.Source) observe.Probe {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sources = append(l.sources, s)
	return nil
}

func (l *ledger) Observe(_ context.Context, e observe.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// counts returns the values that are not 0 of a metric, by their attributes' values.
func (l *ledger) counts(metric string) map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := map[string]int64{}
	for _, s := range l.sources {
		for i := range s.Counts {
			if v := s.Counts[i].Load(); s.Rows[i].Metric == metric && v != 0 && v != observe.None {
				key := make([]string, len(s.Rows[i].Attrs))
				for j, a := range s.Rows[i].Attrs {
					key[j] = a.Value
				}
				counts[strings.Join(key, " ")] += v
			}
		}
	}
	return counts
}

var discardLog = log.New(io.Discard, "", 0)

// onEvent is an Observer that calls a function on each event.
type onEvent struct{ call func() }

func (o *onEvent) Attach(observe.Source) observe.Probe    { return nil }
func (o *onEvent) Observe(context.Context, observe.Event) { o.call() }

// tee tells two observers of events, and lets the first one read.
type tee struct {
	*ledger
	other observe.Observer
}

func (o tee) Observe(ctx context.Context, e observe.Event) {
	o.ledger.Observe(ctx, e)
	o.other.Observe(ctx, e)
}
