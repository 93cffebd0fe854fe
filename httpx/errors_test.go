package httpx_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/httpx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/retry"
)

// unused returns an address that nobody listens on.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// listener serves each connection with serve.
func listener(t *testing.T, serve func(c *net.TCPConn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c.(*net.TCPConn))
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// following is a base that follows redirects.
type following struct{ *http.Client }

func (f following) RoundTrip(r *http.Request) (*http.Response, error) { return f.Do(r) }

func TestErrorsOfTheNetworkAreRetriedAndFaultsOfTheRequestAreNot(t *testing.T) {
	untrusted := httptest.NewTLSServer(answers(200))
	untrusted.Config.ErrorLog = discardLog
	defer untrusted.Close()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/again", http.StatusFound)
	}))
	defer plain.Close()
	reset := listener(t, func(c *net.TCPConn) {
		_, _ = c.Read(make([]byte, 1))
		_ = c.SetLinger(0)
		c.Close()
	})
	hung := listener(t, func(c *net.TCPConn) { t.Cleanup(func() { c.Close() }) })
	eof := listener(t, func(c *net.TCPConn) { _, _ = c.Read(make([]byte, 4096)); c.Close() })

	get := func(url string) func() *http.Request {
		return func() *http.Request {
			r, err := http.NewRequest(http.MethodGet, url, nil)
			require.NoError(t, err)
			return r
		}
	}
	with := func(change func(r *http.Request)) func() *http.Request {
		return func() *http.Request {
			r := get(plain.URL)()
			change(r)
			return r
		}
	}
	for name, row := range map[string]struct {
		request func() *http.Request
		base    http.RoundTripper
		retried bool
	}{
		"nobody listens":       {request: get("http://" + unused(t)), retried: true},
		"reset":                {request: get("http://" + reset), retried: true},
		"closed":               {request: get("http://" + eof), retried: true},
		"no TLS handshake":     {request: get("https://" + hung), base: &http.Transport{TLSHandshakeTimeout: 20 * time.Millisecond}, retried: true},
		"untrusted":            {request: get(untrusted.URL)},
		"another host's":       {request: get(untrusted.URL), base: &http.Transport{TLSClientConfig: &tls.Config{ServerName: "other.test", RootCAs: untrusted.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}}},
		"TLS to a plain port":  {request: get("https" + plain.URL[len("http"):])},
		"redirects":            {request: get(plain.URL), base: following{&http.Client{}}},
		"redirects to nowhere": {request: get("http://" + unused(t)), base: following{&http.Client{}}, retried: true},
		"no such protocol":     {request: get("gopher://" + unused(t))},
		"no protocol":          {request: get("//" + unused(t))},
		"no host":              {request: get("http:///path")},
		"no URL":               {request: with(func(r *http.Request) { r.URL = nil })},
		"no header map":        {request: with(func(r *http.Request) { r.Header = nil })},
		"a bad method":         {request: with(func(r *http.Request) { r.Method = "GET /"; *r = *r.WithContext(httpx.WithReplay(r.Context(), true)) })},
		"a bad header name":    {request: with(func(r *http.Request) { r.Header["a b"] = []string{"1"} })},
		"a bad header value":   {request: with(func(r *http.Request) { r.Header.Set("A", "1\n2") })},
		"a bad trailer":        {request: with(func(r *http.Request) { r.Trailer = http.Header{"A": {"\x00"}} })},
	} {
		t.Run(name, func(t *testing.T) {
			b := &base{RoundTripper: row.base}
			if row.base == nil {
				tr := &http.Transport{}
				defer tr.CloseIdleConnections()
				b.RoundTripper = tr
			}
			seen := &ledger{}
			asked := 0
			p := policy.NewPipeline("test", retry.New(retry.Config{BackOff: instantly, Budget: retry.Unlimited, Retryable: func(ctx context.Context, err error) bool {
				asked++
				var status *httpx.StatusError
				assert.NotErrorAs(t, err, &status, "there was no response")
				return retry.DefaultRetryable(ctx, err)
			}})).Observed(seen)
			resp, err := (&httpx.Transport{Base: b, Policy: p}).RoundTrip(row.request())
			require.Error(t, err)
			require.Nil(t, resp)
			if row.retried {
				assert.Equal(t, 3, b.sent())
				assert.ErrorIs(t, err, retry.ErrAttemptsExhausted)
			} else {
				assert.Equal(t, 1, b.sent())
				assert.Zero(t, asked)
				assert.Equal(t, map[string]int64{"not_retryable": 1}, seen.counts("switchgear.retry.calls"))
				_, again := b.RoundTripper.RoundTrip(row.request())
				assert.Equal(t, again.Error(), err.Error(), "the error is the base's")
			}
		})
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func TestStatus501IsFinal(t *testing.T) {
	srv := serve(t, "HTTP/1.1", answers(501))
	resp, err := (&httpx.Transport{Base: srv.base, Policy: attempts(3)}).RoundTrip(request(t, t.Context(), http.MethodGet, srv.URL))
	require.NoError(t, err)
	assert.Equal(t, 501, resp.StatusCode)
	readAll(t, resp)
	assert.Equal(t, 1, srv.base.sent())
}

func TestATimeoutTellsTheSameOverBothProtocols(t *testing.T) {
	onEach(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(t *testing.T, srv *server) {
		for name, p := range map[string]policy.Policy{
			"alone":       policy.Timeout(20 * time.Millisecond),
			"two":         policy.NewPipeline("two", policy.Timeout(time.Hour), policy.Timeout(20*time.Millisecond)),
			"with others": policy.NewPipeline("others", policy.Timeout(20*time.Millisecond), retry.NewHedge(retry.HedgeConfig{Delay: time.Hour})),
		} {
			t.Run(name, func(t *testing.T) {
				_, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(request(t, t.Context(), http.MethodGet, srv.URL))
				var limit *policy.TimeoutError
				require.ErrorAs(t, err, &limit)
				assert.Equal(t, 20*time.Millisecond, limit.Limit)
				require.NotErrorIs(t, err, context.Canceled)
				assert.Equal(t, "policy: timeout after 20ms: context deadline exceeded", err.Error())
			})
		}
	})
}

func TestACallersEndIsToldAsNetHTTPDoes(t *testing.T) {
	reason := errors.New("changed my mind")
	began := make(chan struct{}, 10)
	onEach(t, func(_ http.ResponseWriter, r *http.Request) { began <- struct{}{}; <-r.Context().Done() }, func(t *testing.T, srv *server) {
		for name, p := range map[string]policy.Policy{
			"no timeout": policy.NewPipeline("none"),
			"timeout":    policy.NewPipeline("timeout", policy.Timeout(time.Hour)),
			"hedge":      policy.NewPipeline("hedge", policy.Timeout(time.Hour), retry.NewHedge(retry.HedgeConfig{Delay: time.Hour})),
		} {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				go func() { <-began; cancel(reason) }()
				_, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(request(t, ctx, http.MethodGet, srv.URL))
				assert.Equal(t, reason, err)
			})
			t.Run(name+", deadline", func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				_, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(request(t, ctx, http.MethodGet, srv.URL))
				assert.Equal(t, context.DeadlineExceeded, err)
				assert.NotErrorIs(t, err, policy.ErrTimeout)
				<-began
			})
			t.Run(name+", before", func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				cancel(reason)
				sent := srv.base.sent()
				_, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(request(t, ctx, http.MethodGet, srv.URL))
				require.ErrorIs(t, err, context.Canceled)
				assert.Equal(t, sent, srv.base.sent())
			})
			t.Run(name+", http.Client.Timeout", func(t *testing.T) {
				client := &http.Client{Timeout: 20 * time.Millisecond, Transport: &httpx.Transport{Base: srv.base, Policy: p}}
				_, err := client.Get(srv.URL)
				var u *url.Error
				require.ErrorAs(t, err, &u)
				assert.True(t, u.Timeout())
				<-began
			})
		}
	})
}
