package httpx_test

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/httpx"
	"github.com/switchgear-go/switchgear/policy"
)

func TestAClientWorksAsItDoesWithoutPolicies(t *testing.T) {
	var fails atomic.Int64
	onEach(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirected":
			http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
		case "/gzip", "/":
			if fails.Add(1)%2 == 1 {
				w.WriteHeader(503)
				return
			}
			w.Header().Set("Trailer", "T")
			body, _ := io.ReadAll(r.Body)
			_, _ = io.WriteString(w, r.Method+" "+string(body))
			w.Header().Set("T", "trailer")
		}
	}, func(t *testing.T, srv *server) {
		open := breaker.New("open", breaker.Config{})
		client := &http.Client{Timeout: time.Hour, Transport: &httpx.Transport{
			Base:   srv.base,
			Policy: policy.NewPipeline("client", policy.Timeout(time.Hour), attempts(2), open, policy.Timeout(time.Hour)),
		}}
		resp, err := client.Get(srv.URL + "/redirected")
		require.NoError(t, err)
		assert.Equal(t, "GET ", readAll(t, resp))
		assert.Equal(t, "trailer", resp.Trailer.Get("T"))
		assert.Equal(t, "/", resp.Request.URL.Path)

		req := request(t, t.Context(), http.MethodPost, srv.URL+"/redirected", []byte("hello")...)
		req.Header.Set("Idempotency-Key", "1")
		resp, err = client.Do(req)
		require.NoError(t, err)
		assert.Equal(t, "POST hello", readAll(t, resp))

		resp, err = client.Head(srv.URL)
		require.NoError(t, err)
		assert.Empty(t, readAll(t, resp))

		open.ForceOpen()
		_, err = client.Get(srv.URL)
		var u *url.Error
		require.ErrorAs(t, err, &u)
		require.ErrorIs(t, err, breaker.ErrCircuitOpen)
		assert.False(t, u.Timeout())
		client.CloseIdleConnections()
	})
}

func TestABaseSeesTheAttemptsValues(t *testing.T) {
	srv := serve(t, "HTTP/1.1", answers(503, 503, 200))
	var numbers []int
	srv.base.before = func(r *http.Request) { numbers = append(numbers, policy.Attempt(r.Context())) }
	conns := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { conns++ }})
	p := policy.NewPipeline("p", attempts(3), policy.Timeout(time.Hour))
	resp, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(request(t, ctx, http.MethodGet, srv.URL))
	require.NoError(t, err)
	readAll(t, resp)
	assert.Equal(t, []int{1, 2, 3}, numbers)
	assert.Equal(t, 3, conns)
}

func TestTheZeroTransportIsTheDefaultOne(t *testing.T) {
	srv := serve(t, "HTTP/1.1", answers(200))
	body := &sentBody{Reader: strings.NewReader("hello")}
	req := request(t, t.Context(), http.MethodPost, srv.URL)
	req.Body = body
	resp, err := new(httpx.Transport).RoundTrip(req)
	require.NoError(t, err)
	assert.Len(t, readAll(t, resp), 100)
	body.requireClosed(t)
	new(httpx.Transport).CloseIdleConnections()
}
