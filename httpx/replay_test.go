package httpx_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/httpx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/retry"
)

func TestOnlyRequestsThatMayBeAreSentAgain(t *testing.T) {
	withReplay := func(allow bool) context.Context { return httpx.WithReplay(t.Context(), allow) }
	for name, row := range map[string]struct {
		ctx    context.Context
		method string
		header string
		body   string
		opaque bool // a body without GetBody
		sends  int
	}{
		"GET":                                    {method: "GET", sends: 3},
		"no method is GET":                       {method: "", sends: 3},
		"HEAD":                                   {method: "HEAD", sends: 3},
		"OPTIONS":                                {method: "OPTIONS", sends: 3},
		"TRACE":                                  {method: "TRACE", sends: 3},
		"PUT":                                    {method: "PUT", body: "x", sends: 3},
		"DELETE":                                 {method: "DELETE", sends: 3},
		"POST":                                   {method: "POST", body: "x", sends: 1},
		"PATCH":                                  {method: "PATCH", body: "x", sends: 1},
		"an unknown method":                      {method: "PROPFIND", sends: 1},
		"methods have a case":                    {method: "get", sends: 1},
		"POST with a key":                        {method: "POST", header: "Idempotency-Key", body: "x", sends: 3},
		"POST with the other key":                {method: "POST", header: "X-Idempotency-Key", body: "x", sends: 3},
		"POST opted in":                          {method: "POST", ctx: withReplay(true), body: "x", sends: 3},
		"GET opted out":                          {method: "GET", ctx: withReplay(false), sends: 1},
		"a key opted out":                        {method: "POST", header: "Idempotency-Key", ctx: withReplay(false), sends: 1},
		"PUT with a body that is read once":      {method: "PUT", body: "x", opaque: true, sends: 1},
		"POST opted in with a body read once":    {method: "POST", ctx: withReplay(true), body: "x", opaque: true, sends: 1},
		"POST with a key and a body read once":   {method: "POST", header: "Idempotency-Key", body: "x", opaque: true, sends: 1},
		"opted in without any body":              {method: "POST", ctx: withReplay(true), sends: 3},
		"opted in and out, the innermost counts": {method: "POST", ctx: httpx.WithReplay(withReplay(false), true), sends: 3},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t, "HTTP/1.1", answers(503))
			ctx := row.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			req := request(t, ctx, row.method, srv.URL, []byte(row.body)...)
			req.Method = row.method
			if row.header != "" {
				req.Header.Set(row.header, "1")
			}
			if row.opaque {
				req.Body, req.GetBody = io.NopCloser(strings.NewReader(row.body)), nil
			}
			seen, budget := &ledger{}, retry.NewBudget("", retry.BudgetConfig{Ratio: -1, PerSecond: 1})
			available := budget.Stats().Available
			p := retry.New(retry.Config{BackOff: instantly, Budget: budget, Observer: seen})

			resp, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(req)
			require.NoError(t, err)
			assert.Equal(t, 503, resp.StatusCode)
			if row.method != "HEAD" {
				assert.NotEmpty(t, readAll(t, resp), "the answer of the last attempt can be read")
			}
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, row.sends, srv.base.sent())
			if row.sends == 1 {
				assert.Equal(t, map[string]int64{"not_retryable": 1}, seen.counts("switchgear.retry.calls"))
				assert.Empty(t, seen.events, "no wait began")
				assert.InDelta(t, available, budget.Stats().Available, 0.1)
			} else {
				assert.Equal(t, map[string]int64{"exhausted": 1}, seen.counts("switchgear.retry.calls"))
			}
		})
	}
}

// okta-sdk-golang#204, bdd/runitor#181
func TestEveryAttemptSendsTheWholeBody(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789"), 10_000)
	for name, reads := range map[string]bool{"read": true, "left unread": false} {
		t.Run(name, func(t *testing.T) {
			status := answers(500, 500, 200)
			got := make(chan string, 3)
			onEach(t, func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, int64(len(body)), r.ContentLength)
				if reads {
					text, err := io.ReadAll(r.Body)
					assert.NoError(t, err)
					got <- string(text)
				}
				status(w, r)
			}, func(t *testing.T, srv *server) {
				status = answers(500, 500, 200)
				req := request(t, t.Context(), http.MethodPost, srv.URL, body...)
				req.Header.Set("Idempotency-Key", "1")
				resp, err := (&httpx.Transport{Base: srv.base, Policy: attempts(3)}).RoundTrip(req)
				require.NoError(t, err)
				assert.Equal(t, 200, resp.StatusCode)
				readAll(t, resp)
				assert.Equal(t, 3, srv.base.sent())
				for range 3 {
					if reads {
						assert.Equal(t, string(body), <-got)
					}
				}
			})
		})
	}
}

func TestAnErrorOfGetBodyIsFinal(t *testing.T) {
	srv := serve(t, "HTTP/1.1", answers(503))
	broken := errors.New("cannot read it again")
	req := request(t, t.Context(), http.MethodPut, srv.URL, 'x')
	req.GetBody = func() (io.ReadCloser, error) { return nil, broken }
	p := retry.New(retry.Config{BackOff: instantly, Budget: retry.Unlimited, Retryable: func(_ context.Context, err error) bool {
		assert.NotErrorIs(t, err, broken)
		return true
	}})
	resp, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(req)
	assert.Nil(t, resp)
	assert.Equal(t, broken, err)
	assert.Equal(t, 1, srv.base.sent())
}

func TestAPolicyThatRunsAnUnsafeRequestAgainIsRefused(t *testing.T) {
	srv := serve(t, "HTTP/1.1", answers(503, 200))
	var second error
	insists := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		_ = fn(ctx)
		second = fn(ctx)
		return second
	})
	resp, err := (&httpx.Transport{Base: srv.base, Policy: insists}).RoundTrip(request(t, t.Context(), http.MethodPost, srv.URL, 'x'))
	require.NoError(t, err, "the answer in hand is worth more than the refusal")
	assert.Equal(t, 503, resp.StatusCode)
	assert.Len(t, readAll(t, resp), 100)
	assert.Equal(t, 1, srv.base.sent())

	var refusal *policy.RejectedError
	require.ErrorAs(t, second, &refusal)
	assert.Equal(t, "http", refusal.Policy)
	assert.Equal(t, httpx.ErrNotReplayable, refusal.Reason)
	assert.True(t, refusal.RetryAt.IsZero())
}

func TestTheMarkOfAFinalFailureIsGoneAfterwards(t *testing.T) {
	wrapped := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		err := fn(ctx)
		var mark *backoff.PermanentError
		require.ErrorAs(t, err, &mark, "policies see it")
		return errors.Join(errors.New("wrapped"), err)
	})
	plain := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error { return fn(ctx) })
	for name, p := range map[string]policy.Policy{"outermost": plain, "further in": wrapped, "retry": attempts(3)} {
		t.Run(name, func(t *testing.T) {
			req := request(t, t.Context(), http.MethodPost, "http://"+unused(t))
			_, plainErr := http.DefaultTransport.RoundTrip(req)
			_, err := (&httpx.Transport{Policy: p}).RoundTrip(req)
			require.Error(t, err)
			var mark *backoff.PermanentError
			assert.NotErrorAs(t, err, &mark, "a retry further out decides for itself")
			if name != "further in" {
				assert.Equal(t, reflect.TypeOf(plainErr), reflect.TypeOf(err))
			}
		})
	}
}
