package httpx_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/httpx"
	"github.com/switchgear-go/switchgear/policy"
)

// caller is a context that knows who asked to be told of its end, and tells those before anybody sees it by Done.
type caller struct {
	context.Context
	done chan struct{}

	mu      sync.Mutex
	waiting []*func() // guarded by mu
	err     error     // guarded by mu
}

func newCaller(t *testing.T) *caller { return &caller{Context: t.Context(), done: make(chan struct{})} }

func (c *caller) Done() <-chan struct{} { return c.done }

func (c *caller) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *caller) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, &f)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := slices.Index(c.waiting, &f)
		if i >= 0 {
			c.waiting = slices.Delete(c.waiting, i, i+1)
		}
		return i >= 0
	}
}

func (c *caller) waiters() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

// cancel ends the context.
func (c *caller) cancel() {
	c.mu.Lock()
	c.err = context.Canceled
	waiting := slices.Clone(c.waiting)
	c.waiting = nil
	c.mu.Unlock()
	for _, f := range waiting {
		go (*f)()
	}
	time.Sleep(5 * time.Millisecond) // in which they may go too far
	close(c.done)
}

func TestNothingWaitsForTheCallersEndWhenAllIsDone(t *testing.T) {
	for name, layered := range layers() {
		for what, row := range map[string]struct {
			handler http.HandlerFunc
			end     func(resp *http.Response)
		}{
			"read and closed": {answers(200), func(resp *http.Response) { _, _ = io.ReadAll(resp.Body); resp.Body.Close() }},
			"read":            {answers(200), func(resp *http.Response) { _, _ = io.ReadAll(resp.Body) }},
			"closed":          {answers(200), func(resp *http.Response) { resp.Body.Close() }},
			"empty":           {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, func(*http.Response) {}},
			"replaced":        {answers(503, 200), func(resp *http.Response) { resp.Body.Close() }},
			"failed":          {answers(503), func(resp *http.Response) { resp.Body.Close() }},
			"cut": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, func(resp *http.Response) {
				assert.Nil(t, resp)
			}},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				srv := serve(t, "HTTP/1.1", row.handler)
				ctx := newCaller(t)
				req := request(t, ctx, http.MethodGet, srv.URL)
				resp, err := (&httpx.Transport{Base: srv.base.RoundTripper, Policy: layered(time.Hour)}).RoundTrip(req)
				if what != "cut" {
					require.NoError(t, err)
				}
				row.end(resp)
				require.Eventually(t, func() bool { return ctx.waiters() == 0 }, eventually, time.Millisecond, "of %d", ctx.waiters())
			})
		}
	}
}

func TestASendEndsWhenThePoliciesKnowOfTheEnd(t *testing.T) {
	began := make(chan struct{}, 1)
	onEach(t, func(_ http.ResponseWriter, r *http.Request) { began <- struct{}{}; <-r.Context().Done() }, func(t *testing.T, srv *server) {
		ctx := newCaller(t)
		var ended error
		p := policy.NewPipeline("p", policy.Timeout(time.Hour), policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
			_ = ctx.Done() // so that it waits for the caller's end
			err := fn(ctx)
			ended = ctx.Err()
			return err
		}))
		go func() { <-began; ctx.cancel() }()
		_, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(request(t, ctx, http.MethodGet, srv.URL))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, ended, context.Canceled, "or a retry would take the failure for the server's")
	})
}
