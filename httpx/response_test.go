package httpx_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/httpx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/retry"
)

// dapr#4568
func TestWhichStatusIsAFailure(t *testing.T) {
	srv := serve(t, "HTTP/1.1", func(w http.ResponseWriter, r *http.Request) {
		var status int
		for _, c := range r.URL.Path[1:] {
			status = status*10 + int(c-'0')
		}
		w.WriteHeader(status)
	})
	for status, failure := range map[string]bool{
		"200": false, "204": false, "301": false, "304": false,
		"400": false, "401": false, "403": false, "404": false, "408": false, "409": false, "422": false, "425": false, "451": false,
		"429": true, "500": true, "501": true, "502": true, "503": true, "504": true, "505": true, "599": true,
	} {
		b := breaker.New("status", breaker.Config{})
		var seen error
		p := policy.NewPipeline("status", policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
			seen = fn(ctx)
			return seen
		}), b)
		resp, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(request(t, t.Context(), http.MethodGet, srv.URL+"/"+status))
		require.NoError(t, err, status)
		assert.Equal(t, status, resp.Status[:3])
		readAll(t, resp)
		if !failure {
			require.NoError(t, seen, status)
			assert.Zero(t, b.Stats().Failed, status)
			continue
		}
		var told *httpx.StatusError
		require.ErrorAs(t, seen, &told, status)
		assert.Same(t, resp, told.Response)
		assert.Equal(t, resp.StatusCode, told.StatusCode)
		assert.Equal(t, resp.Header, told.Header)
		assert.Equal(t, 1, b.Stats().Failed, status)
	}
}

func TestAStatusErrorTellsTheStatus(t *testing.T) {
	assert.Equal(t, "http: status 503 Service Unavailable", (&httpx.StatusError{StatusCode: 503}).Error())
	assert.Equal(t, "http: status 599", (&httpx.StatusError{StatusCode: 599}).Error())
	for status, kind := range map[int]string{429: "429", 500: "500", 502: "502", 503: "503", 504: "504", 501: "_OTHER", 599: "_OTHER"} {
		assert.Equal(t, kind, (&httpx.StatusError{StatusCode: status}).ErrorType())
	}
}

// go-retryablehttp#138, #144
func TestRetryAfterIsReadInSecondsOrAsADate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the bubble's clock stands still at a whole second
		in := func(d time.Duration) time.Time { return time.Now().UTC().Add(d) }
		for value, want := range map[string]time.Duration{
			"3": 3 * time.Second, " 3 ": 3 * time.Second, "007": 7 * time.Second, "86400": 24 * time.Hour,
			"": 0, "0": 0, "-1": 0, "+1": 0, "1.5": 0, "abc": 0, "3s": 0, "1e3": 0, "0x10": 0, "٣": 0,
			in(5 * time.Second).Format(http.TimeFormat):  5 * time.Second,
			in(5 * time.Second).Format(time.RFC850):      5 * time.Second,
			in(5 * time.Second).Format(time.ANSIC):       5 * time.Second,
			in(0).Format(http.TimeFormat):                0,
			in(-5 * time.Second).Format(http.TimeFormat): 0,
			in(5 * time.Second).Format(time.RFC3339):     0,
			"Fri, 31 Dec 9999 23:59:59 GMT":              math.MaxInt64,
			"9223372036":                                 9223372036 * time.Second,
			"9223372037":                                 math.MaxInt64,
			"9223372036854775807":                        math.MaxInt64,
			"99999999999999999999999999":                 math.MaxInt64,
		} {
			err := &httpx.StatusError{StatusCode: 503, Header: http.Header{"Retry-After": {value}}}
			assert.Equal(t, want, err.RetryAfter(), "%q", value)
			hint, ok := policy.RetryAfter(err)
			assert.Equal(t, want > 0, ok, "%q", value)
			assert.Equal(t, want, hint, "%q", value)
		}
		assert.Zero(t, (&httpx.StatusError{}).RetryAfter())
	})
}

// openai-go#828
func TestAHintBeyondTheLimitStopsTheRetry(t *testing.T) {
	for _, hint := range []string{"86400", "99999999999999999999"} {
		srv := serve(t, "HTTP/1.1", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", hint)
			w.WriteHeader(429)
			_, _ = io.WriteString(w, "later")
		})
		resp, err := (&httpx.Transport{Base: srv.base, Policy: retry.New(retry.Config{})}).RoundTrip(request(t, t.Context(), http.MethodGet, srv.URL))
		require.NoError(t, err)
		assert.Equal(t, 429, resp.StatusCode)
		assert.Equal(t, "later", readAll(t, resp))
		assert.Equal(t, 1, srv.base.sent())
	}
}

func TestACallerWhoLeavesEndsTheWaitAndIsToldSo(t *testing.T) {
	srv := serve(t, "HTTP/1.1", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(503)
	})
	ctx, cancel := context.WithCancel(t.Context())
	p := retry.New(retry.Config{Observer: &onEvent{cancel}})
	start := time.Now()
	resp, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(request(t, ctx, http.MethodGet, srv.URL))
	assert.Nil(t, resp, "its body could not be read")
	require.ErrorIs(t, err, context.Canceled)
	var status *httpx.StatusError
	require.ErrorAs(t, err, &status, "and why it waited")
	assert.Less(t, time.Since(start), 10*time.Second)
}

// dapr#5862, go-retryablehttp#156
func TestTheLastResponseComesBackOpen(t *testing.T) {
	for name, row := range map[string]struct {
		statuses []int
		policy   func() policy.Policy
		status   int
		sends    int
	}{
		"recovered":        {[]int{429, 429, 200}, func() policy.Policy { return attempts(3) }, 200, 3},
		"429 to the end":   {[]int{429}, func() policy.Policy { return attempts(3) }, 429, 3},
		"503 to the end":   {[]int{500, 502, 503}, func() policy.Policy { return attempts(3) }, 503, 3},
		"one attempt":      {[]int{503}, func() policy.Policy { return attempts(1) }, 503, 1},
		"no retry":         {[]int{503}, func() policy.Policy { return breaker.New("b", breaker.Config{}) }, 503, 1},
		"a healthy answer": {[]int{503, 404}, func() policy.Policy { return attempts(3) }, 404, 2},
		"inside a timeout": {[]int{503}, func() policy.Policy { return policy.NewPipeline("t", policy.Timeout(time.Hour), attempts(2)) }, 503, 2},
		"a spent budget": {[]int{503}, func() policy.Policy {
			return retry.New(retry.Config{BackOff: instantly, Budget: retry.NewBudget("b", retry.BudgetConfig{Ratio: 0.001, PerSecond: -1})})
		}, 503, 1},
		"of a hedge": {[]int{500, 503}, func() policy.Policy {
			return retry.NewHedge(retry.HedgeConfig{Delay: time.Hour, Budget: retry.Unlimited})
		}, 503, 2},
		"refused after one": {[]int{503}, func() policy.Policy {
			return policy.NewPipeline("r", attempts(3), breaker.New("b", breaker.Config{Consecutive: 1}))
		}, 503, 1},
		"beside another": {[]int{503}, func() policy.Policy {
			return policy.Fallback(func(context.Context, error) error { return errors.New("own") })
		}, 503, 1},
		"swallowed":          {[]int{503}, func() policy.Policy { return policy.Fallback(func(context.Context, error) error { return nil }) }, 503, 1},
		"chosen by fallback": {[]int{503}, func() policy.Policy { return policy.FallbackValue(ofStatus) }, 503, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var handler http.HandlerFunc
			onEach(t, func(w http.ResponseWriter, r *http.Request) { handler(w, r) }, func(t *testing.T, srv *server) {
				handler = answers(row.statuses...)
				req := request(t, t.Context(), http.MethodGet, srv.URL)
				resp, err := (&httpx.Transport{Base: srv.base, Policy: row.policy()}).RoundTrip(req)
				require.NoError(t, err)
				assert.Equal(t, row.status, resp.StatusCode)
				assert.Same(t, req, resp.Request)
				assert.Equal(t, row.sends, srv.base.sent())
				assert.Equal(t, strings.Repeat("x", 100*min(row.sends, len(row.statuses))), readAll(t, resp))
			})
		})
	}
}

// ofStatus returns the response that err tells of.
func ofStatus(_ context.Context, err error) (*http.Response, error) {
	var status *httpx.StatusError
	if errors.As(err, &status) {
		return status.Response, nil
	}
	return nil, err
}

func TestAnErrorThatDoesNotTellOfTheResponseWins(t *testing.T) {
	own := errors.New("own")
	run := func(err error) policy.Policy {
		return policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error { _ = fn(ctx); return err })
	}
	open := breaker.New("open", breaker.Config{})
	open.ForceOpen()
	for name, row := range map[string]struct {
		status int
		policy policy.Policy
		is     error
	}{
		"after a failure":          {503, run(own), own},
		"after a success":          {200, run(own), own},
		"another's status":         {503, run(&httpx.StatusError{StatusCode: 503}), nil},
		"refused before":           {503, open, breaker.ErrCircuitOpen},
		"refused after a success":  {200, run(policy.Rejection("x", "", own, time.Time{}, nil)), own},
		"nil without a response":   {200, policy.PolicyFunc(func(context.Context, policy.Func) error { return nil }), nil},
		"fallback, refused before": {200, policy.NewPipeline("f", policy.Fallback(func(context.Context, error) error { return nil }), open), nil},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t, "HTTP/1.1", answers(row.status))
			resp, err := (&httpx.Transport{Base: srv.base, Policy: row.policy}).RoundTrip(request(t, t.Context(), http.MethodGet, srv.URL))
			require.Error(t, err)
			assert.Nil(t, resp)
			if row.is != nil {
				require.ErrorIs(t, err, row.is)
			}
			srv.base.requireAllClosed(t)
		})
	}
}

func TestAFallbackSuppliesTheResponse(t *testing.T) {
	open := breaker.New("open", breaker.Config{})
	open.ForceOpen()
	srv := serve(t, "HTTP/1.1", answers(503))
	canned := policy.FallbackValue(func(context.Context, error) (*http.Response, error) {
		return &http.Response{StatusCode: 203, Header: http.Header{}}, nil
	})
	for name, p := range map[string]policy.Policy{"refused": policy.NewPipeline("r", canned, open), "failed": policy.NewPipeline("f", canned, attempts(2))} {
		t.Run(name, func(t *testing.T) {
			req := request(t, t.Context(), http.MethodGet, srv.URL)
			resp, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(req)
			require.NoError(t, err)
			assert.Equal(t, 203, resp.StatusCode)
			assert.Empty(t, readAll(t, resp))
			assert.Same(t, req, resp.Request)
			srv.base.requireAllClosed(t)
		})
	}
}

func TestABaseThatBreaksItsContractIsAnError(t *testing.T) {
	own := errors.New("own")
	body := &sentBody{Reader: strings.NewReader("")}
	for name, row := range map[string]struct {
		resp *http.Response
		err  error
	}{"neither": {}, "both": {&http.Response{StatusCode: 200, Body: body}, own}} {
		t.Run(name, func(t *testing.T) {
			b := roundTripper(func(*http.Request) (*http.Response, error) { return row.resp, row.err })
			resp, err := (&httpx.Transport{Base: b, Policy: policy.Timeout(time.Hour)}).RoundTrip(request(t, t.Context(), http.MethodGet, "http://a.test"))
			assert.Nil(t, resp)
			require.Error(t, err)
			if row.resp != nil {
				assert.Equal(t, own, err)
				body.requireClosed(t)
			}
		})
	}
	b := roundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil })
	resp, err := (&httpx.Transport{Base: b, Policy: policy.Timeout(time.Hour)}).RoundTrip(request(t, t.Context(), http.MethodGet, "http://a.test"))
	require.NoError(t, err)
	assert.Empty(t, readAll(t, resp), "no body is an empty one")
}

func TestARequestGoesToThePolicyOfItsHost(t *testing.T) {
	bad, good := serve(t, "HTTP/1.1", answers(503)), serve(t, "HTTP/1.1", answers(200))
	hosts := policy.NewGroup(policy.GroupConfig{Name: "hosts"}, func(string) *breaker.Breaker {
		return breaker.New("hosts", breaker.Config{Consecutive: 2})
	})
	var others atomic.Int64
	rt := &httpx.Transport{
		Base: bad.base,
		For: func(r *http.Request) policy.Policy {
			if r.URL.Path == "/other" {
				return nil
			}
			return hosts.Get(r.URL.Host)
		},
		Policy: policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error { others.Add(1); return fn(ctx) }),
	}
	for i := range 4 {
		resp, err := rt.RoundTrip(request(t, t.Context(), http.MethodGet, bad.URL))
		if i < 2 {
			require.NoError(t, err)
			readAll(t, resp)
			continue
		}
		require.ErrorIs(t, err, breaker.ErrCircuitOpen)
	}
	resp, err := rt.RoundTrip(request(t, t.Context(), http.MethodGet, good.URL))
	require.NoError(t, err, "the other host has a breaker of its own")
	readAll(t, resp)
	resp, err = rt.RoundTrip(request(t, t.Context(), http.MethodGet, bad.URL+"/other"))
	require.NoError(t, err)
	readAll(t, resp)
	assert.Equal(t, int64(1), others.Load(), "nil from For: Policy")
	rt.CloseIdleConnections() // those to the other server, too
}

func TestIdleConnectionsAreClosedThroughTheTransport(t *testing.T) {
	srv := serve(t, "HTTP/1.1", answers(200))
	closed := make(chan struct{}, 1)
	client := &http.Client{Transport: &httpx.Transport{Base: closer{srv.base, closed}, Policy: attempts(2)}}
	client.CloseIdleConnections()
	<-closed
	(&httpx.Transport{Base: roundTripper(nil)}).CloseIdleConnections() // has no such method
}

type closer struct {
	http.RoundTripper
	closed chan struct{}
}

func (c closer) CloseIdleConnections() { c.closed <- struct{}{} }
