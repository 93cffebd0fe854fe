package httpx_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/httpx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/ratelimit"
	"github.com/switchgear-go/switchgear/retry"
)

// ask asks a server once.
func ask(t *testing.T, srv *server, path string) (*http.Response, string) {
	t.Helper()
	resp, err := srv.base.RoundTrip(request(t, t.Context(), http.MethodGet, srv.URL+path))
	require.NoError(t, err)
	return resp, readAll(t, resp)
}

func refuse(kind string, reason error, in time.Duration) policy.Policy {
	return policy.PolicyFunc(func(context.Context, policy.Func) error {
		at := time.Time{}
		if in != 0 {
			at = time.Unix(0, 0).Add(in)
		}
		return policy.Rejection(kind, "name", reason, at, func() time.Time { return time.Unix(0, 0) })
	})
}

func TestWhatAMiddlewareAnswers(t *testing.T) {
	own := errors.New("own")
	open := breaker.New("open", breaker.Config{Cooldown: time.Hour, Jitter: -1})
	open.Trip()
	forced := breaker.New("forced", breaker.Config{})
	forced.ForceOpen()
	full := bulkhead.New("full", bulkhead.Config{Max: 1})
	_, err := full.Acquire(t.Context())
	require.NoError(t, err)
	empty := ratelimit.New("empty", ratelimit.Config{Rate: 0.1, Burst: 1})
	require.NoError(t, empty.Allow(t.Context()))
	fail := func(err error) policy.Policy {
		return policy.PolicyFunc(func(context.Context, policy.Func) error { return err })
	}
	for name, row := range map[string]struct {
		policy     policy.Policy
		status     int
		retryAfter string
	}{
		"open circuit":                  {open, 503, "3600"},
		"forced open, for nobody knows": {forced, 503, ""},
		"full bulkhead":                 {full, 503, ""},
		"rate limiter":                  {empty, 429, "10"},
		"rate limiter in a pipeline":    {policy.NewPipeline("p", policy.Timeout(time.Hour), attempts(3), empty), 429, "10"},
		"another's rate limiter":        {refuse("rate_limiter", own, 0), 429, ""},
		"rounded up":                    {refuse("circuit_breaker", own, time.Second+time.Nanosecond), 503, "2"},
		"whole":                         {refuse("circuit_breaker", own, 2*time.Second), 503, "2"},
		"at least a second":             {refuse("circuit_breaker", own, time.Nanosecond), 503, "1"},
		"passed":                        {refuse("circuit_breaker", own, -time.Second), 503, ""},
		"an error":                      {fail(own), 500, ""},
		"an error with a hint":          {fail(&httpx.StatusError{StatusCode: 503, Header: http.Header{"Retry-After": {"5"}}}), 500, ""},
		"a timeout":                     {fail(&policy.TimeoutError{Limit: 1}), 503, ""},
		"a refusal after a failure":     {fail(errors.Join(own, policy.Rejection("rate_limiter", "x", own, time.Time{}, nil))), 500, ""},
		"nothing run and no error":      {fail(nil), 500, ""},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t, "HTTP/1.1", httpx.Middleware(row.policy)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				t.Error("the handler ran")
			})).ServeHTTP)
			resp, body := ask(t, srv, "/")
			assert.Equal(t, row.status, resp.StatusCode)
			assert.Equal(t, row.retryAfter, resp.Header.Get("Retry-After"))
			assert.Equal(t, http.StatusText(row.status)+"\n", body, "and no more than that")
		})
	}
}

func TestAMiddlewareAddsNothingToAnAnswer(t *testing.T) {
	own := errors.New("own")
	after := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error { return errors.Join(fn(ctx), own) })
	for name, row := range map[string]struct {
		policy  policy.Policy
		handler http.HandlerFunc
		status  int
		body    string
	}{
		"200":                           {attempts(3), answers(200), 200, strings.Repeat("x", 100)},
		"404":                           {attempts(3), answers(404), 404, strings.Repeat("x", 100)},
		"503":                           {attempts(3), answers(503), 503, strings.Repeat("x", 100)},
		"nothing written":               {attempts(3), func(http.ResponseWriter, *http.Request) {}, 200, ""},
		"an error after the answer":     {after, answers(201), 201, strings.Repeat("x", 100)},
		"an error after the header":     {after, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }, 202, ""},
		"an error after a flush":        {after, func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }, 200, ""},
		"an error after a rc.Flush":     {after, func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() }, 200, ""},
		"an error after an empty write": {after, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(nil) }, 200, ""},
		"an error after a string":       {after, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "s") }, 200, "s"},
		"an error after a copy": {after, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.Copy(w, io.LimitReader(strings.NewReader("abc"), 2))
		}, 200, "ab"},
		"an error after nothing":    {after, func(http.ResponseWriter, *http.Request) {}, 500, "Internal Server Error\n"},
		"an error after a hint":     {after, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints) }, 500, "Internal Server Error\n"},
		"an error after a bad copy": {after, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, failing{}) }, 500, "Internal Server Error\n"},
		"the first status counts": {after, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			w.WriteHeader(http.StatusInternalServerError)
		}, 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, httpx.Middleware(row.policy)(row.handler).ServeHTTP, func(t *testing.T, srv *server) {
				resp, body := ask(t, srv, "/")
				assert.Equal(t, row.status, resp.StatusCode)
				if name != "404" && name != "503" && name != "200" && name != "an error after the answer" {
					assert.Equal(t, row.body, body)
				}
			})
		})
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("failing") }

func TestHowPoliciesJudgeAHandler(t *testing.T) {
	for status, failure := range map[int]bool{200: false, 301: false, 404: false, 429: false, 500: true, 501: true, 503: true} {
		b := breaker.New("b", breaker.Config{})
		srv := serve(t, "HTTP/1.1", httpx.Middleware(b)(answers(status)).ServeHTTP)
		ask(t, srv, "/")
		stats := b.Stats()
		assert.Equal(t, 1, stats.Calls, status)
		assert.Equal(t, failure, stats.Failed == 1, status)
		if failure {
			var told *httpx.StatusError
			require.ErrorAs(t, stats.LastFailure, &told)
			assert.Equal(t, status, told.StatusCode)
			assert.Nil(t, told.Response)
			assert.NotNil(t, told.Header)
		}
	}
}

func TestAHandlerRunsOnce(t *testing.T) {
	seen := &ledger{}
	for name, p := range map[string]policy.Policy{
		"retry": retry.New(retry.Config{Observer: seen}),
		"hedge": hedge(time.Millisecond),
		"again": policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
			first := fn(ctx)
			again := fn(ctx)
			require.ErrorIs(t, again, policy.ErrRejected)
			assert.ErrorIs(t, again, httpx.ErrNotReplayable)
			return first
		}),
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int64
			onEach(t, httpx.Middleware(p)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n.Add(1)
				if name == "hedge" {
					time.Sleep(10 * time.Millisecond) // the hedge's delay passes
				}
				w.WriteHeader(503)
			})).ServeHTTP, func(t *testing.T, srv *server) {
				n.Store(0)
				resp, _ := ask(t, srv, "/")
				assert.Equal(t, 503, resp.StatusCode)
				assert.Equal(t, int64(1), n.Load())
			})
		})
	}
	assert.Equal(t, map[string]int64{"not_retryable": 2}, seen.counts("switchgear.retry.calls"), "no wait for what cannot come")
	assert.Equal(t, map[string]int64{"original failure": 2}, seen.counts("switchgear.retry.attempts"))
}

func TestAPolicyThatLeavesTheHandlerBehindIsWaitedFor(t *testing.T) {
	began, returned := make(chan struct{}), make(chan struct{})
	p := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		go func() { _ = fn(ctx) }()
		<-began
		close(returned)
		return errors.New("too slow")
	})
	srv := serve(t, "HTTP/1.1", httpx.Middleware(p)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-returned
		w.WriteHeader(http.StatusNoContent)
	})).ServeHTTP)
	resp, _ := ask(t, srv, "/")
	assert.Equal(t, 204, resp.StatusCode)
}

// golang/go#9162, echo#1761
func TestATimeoutsResponseIsWhollyTheHandlersOrWhollyIts(t *testing.T) {
	const requests = 5000
	limit := 2 * time.Millisecond
	seen := &ledger{}
	p := policy.NewPipeline("p", policy.Timeout(limit)).Observed(seen)
	handler := strings.Repeat("handler", 1000)
	onEach(t, httpx.Middleware(p)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		select {
		case <-r.Context().Done():
		case <-timer.C:
			w.Header().Set("By", "handler")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, handler)
		}
	})).ServeHTTP, func(t *testing.T, srv *server) {
		var answered, timedOut atomic.Int64
		req := request(t, t.Context(), http.MethodGet, srv.URL)
		work := make(chan struct{})
		done := make(chan struct{})
		for range 16 {
			go func() {
				defer func() { done <- struct{}{} }()
				for range work {
					resp, err := srv.base.RoundTrip(req.Clone(t.Context()))
					if !assert.NoError(t, err) {
						continue
					}
					body, err := io.ReadAll(resp.Body)
					assert.NoError(t, err)
					resp.Body.Close()
					switch resp.StatusCode {
					case 201:
						answered.Add(1)
						assert.Equal(t, handler, string(body))
						assert.Equal(t, "handler", resp.Header.Get("By"))
					case 503:
						timedOut.Add(1)
						assert.Equal(t, "Service Unavailable\n", string(body))
						assert.Empty(t, resp.Header.Get("By"))
					default:
						t.Error(resp.Status)
					}
				}
			}()
		}
		for range requests / 2 {
			work <- struct{}{}
		}
		close(work)
		for range 16 {
			<-done
		}
		assert.Equal(t, int64(requests/2), answered.Load()+timedOut.Load())
		assert.NotZero(t, timedOut.Load())
	})
}

func TestAHandlerThatHasBegunToWriteFinishesAfterTheLimit(t *testing.T) {
	seen := &ledger{}
	p := policy.NewPipeline("p", policy.Timeout(time.Millisecond)).Observed(seen)
	onEach(t, httpx.Middleware(p)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun ")
		<-r.Context().Done()
		_, _ = io.WriteString(w, "ended")
	})).ServeHTTP, func(t *testing.T, srv *server) {
		resp, body := ask(t, srv, "/")
		assert.Equal(t, 200, resp.StatusCode)
		assert.Equal(t, "begun ended", body)
	})
	assert.Equal(t, map[string]int64{"late": 2}, seen.counts("switchgear.timeout.calls"))
}

func TestAClientThatGoesAwaySaysNothing(t *testing.T) {
	for name, end := range map[string]func(w http.ResponseWriter){
		"nothing written": func(http.ResponseWriter) {},
		"a 200":           func(w http.ResponseWriter) { w.WriteHeader(200) },
		"a 500":           func(w http.ResponseWriter) { w.WriteHeader(500) },
		"an abort":        func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			seen := &ledger{}
			b := breaker.New("b", breaker.Config{Observer: seen})
			b.Trip()
			b.Probe()
			began, answered := make(chan struct{}), make(chan int, 1)
			guarded := httpx.Middleware(b)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				close(began)
				<-r.Context().Done()
				end(w)
			}))
			onEach(t, func(w http.ResponseWriter, r *http.Request) {
				status := &statusWriter{ResponseWriter: w}
				defer func() { answered <- status.status }()
				guarded.ServeHTTP(status, r)
			}, func(t *testing.T, srv *server) {
				began = make(chan struct{})
				ctx, cancel := context.WithCancel(t.Context())
				go func() { <-began; cancel() }()
				_, err := srv.base.RoundTrip(request(t, ctx, http.MethodGet, srv.URL))
				require.ErrorIs(t, err, context.Canceled)
				status := <-answered
				if name == "nothing written" {
					assert.Equal(t, 499, status, "what stands around is not told of a success or a server's fault")
				}
				assert.Equal(t, breaker.HalfOpen, b.State())
				assert.Zero(t, b.Stats().Probing, "the slot is free again")
			})
			assert.Equal(t, map[string]int64{"half_open ignored": 2}, seen.counts("switchgear.circuit_breaker.calls"))
		})
	}
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// golang/go#22084
func TestAPanicOfTheHandlerPasses(t *testing.T) {
	own := errors.New("own")
	for name, layered := range map[string]func(p policy.Policy) policy.Policy{
		"alone":   func(p policy.Policy) policy.Policy { return p },
		"timeout": func(p policy.Policy) policy.Policy { return policy.NewPipeline("t", policy.Timeout(time.Hour), p) },
		"retry":   func(p policy.Policy) policy.Policy { return policy.NewPipeline("r", attempts(3), p) },
		"hedge":   func(p policy.Policy) policy.Policy { return policy.NewPipeline("h", hedge(time.Hour), p) },
		"swallows": func(p policy.Policy) policy.Policy {
			return policy.NewPipeline("f", policy.Fallback(func(context.Context, error) error { return nil }), p)
		},
	} {
		for what, value := range map[string]any{"abort": http.ErrAbortHandler, "error": own, "text": "text", "not comparable": []int{1}} {
			t.Run(name+", "+what, func(t *testing.T) {
				b := breaker.New("b", breaker.Config{})
				limit := bulkhead.New("b", bulkhead.Config{Max: 1})
				raised := make(chan any, 1)
				var calls atomic.Int64
				guarded := httpx.Middleware(layered(policy.NewPipeline("inner", b, limit)))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
					calls.Add(1)
					panic(value)
				}))
				srv := serve(t, "HTTP/1.1", func(w http.ResponseWriter, r *http.Request) {
					defer func() {
						raised <- recover()
						panic(http.ErrAbortHandler)
					}()
					guarded.ServeHTTP(w, r)
				})
				req := request(t, t.Context(), http.MethodPost, srv.URL, 'x')
				_, err := srv.base.RoundTrip(req)
				require.Error(t, err, "the connection is cut")
				got := <-raised
				assert.Equal(t, value, got)
				if what == "abort" {
					assert.Same(t, http.ErrAbortHandler, got)
				}
				assert.Equal(t, int64(1), calls.Load())
				assert.Equal(t, 1, b.Stats().Failed)
				assert.Zero(t, limit.Stats().Running)
			})
		}
	}
}

func TestTheAbortOfAReverseProxyDoesNotTripABreakerWhenTheClientHasGone(t *testing.T) {
	backendEnds := make(chan struct{})
	backend := serve(t, "HTTP/1.1", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		backendEnds <- struct{}{}
	})
	target, err := url.Parse(backend.URL)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: backend.base,
		ErrorLog:  discardLog,
	}
	b := breaker.New("proxy", breaker.Config{Consecutive: 1})
	front := serve(t, "HTTP/1.1", httpx.Middleware(b)(proxy).ServeHTTP)
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := front.base.RoundTrip(request(t, ctx, http.MethodGet, front.URL))
		require.NoError(t, err)
		_, err = io.ReadFull(resp.Body, make([]byte, 5))
		require.NoError(t, err)
		cancel()
		resp.Body.Close()
		<-backendEnds
	}
	assert.Equal(t, breaker.Closed, b.State())
	assert.Zero(t, b.Stats().Failed)
}

func TestWhatAServersWriterCanDoTheHandlersCan(t *testing.T) {
	through := policy.NewPipeline("p", policy.Timeout(time.Hour))
	onEach(t, httpx.Middleware(through)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		assert.NoError(t, rc.SetReadDeadline(time.Time{}))
		assert.NoError(t, rc.SetWriteDeadline(time.Time{}))
		_, flusher := w.(http.Flusher)
		assert.True(t, flusher)
		_, from := w.(io.ReaderFrom)
		assert.True(t, from)
		conn, _, err := rc.Hijack()
		if r.ProtoMajor == 1 {
			assert.NoError(t, err)
			conn.Close()
		} else {
			assert.ErrorIs(t, err, http.ErrNotSupported)
			w.Header().Set("Link", "</style.css>")
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, "hello")
			assert.NoError(t, rc.Flush())
		}
	})).ServeHTTP, func(t *testing.T, srv *server) {
		resp, err := srv.base.RoundTrip(request(t, t.Context(), http.MethodGet, srv.URL))
		if srv.EnableHTTP2 {
			require.NoError(t, err)
			assert.Equal(t, 200, resp.StatusCode)
			assert.Equal(t, "hello", readAll(t, resp))
			return
		}
		assert.Error(t, err, "nothing was written on the hijacked connection")
	})

	httpx.Middleware(through)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, flusher := w.(http.Flusher)
		assert.False(t, flusher)
		assert.ErrorIs(t, http.NewResponseController(w).Flush(), http.ErrNotSupported)
		assert.ErrorIs(t, w.(http.Pusher).Push("/", nil), http.ErrNotSupported)
	})).ServeHTTP(onlyWriter{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "/", nil))
}

func TestAWriterThatFlushesWithAnErrorFlushes(t *testing.T) {
	inner := &flushWriter{onlyWriter: onlyWriter{httptest.NewRecorder()}}
	httpx.Middleware(attempts(2))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
	})).ServeHTTP(inner, httptest.NewRequest(http.MethodGet, "/", nil))
	assert.Equal(t, 1, inner.flushed)
}

type flushWriter struct {
	onlyWriter
	flushed int
}

func (f *flushWriter) FlushError() error {
	f.flushed++
	return nil
}

// onlyWriter can do nothing but what a ResponseWriter must.
type onlyWriter struct{ w http.ResponseWriter }

func (o onlyWriter) Header() http.Header         { return o.w.Header() }
func (o onlyWriter) Write(p []byte) (int, error) { return o.w.Write(p) }
func (o onlyWriter) WriteHeader(status int)      { o.w.WriteHeader(status) }

func TestAHijackedConnectionIsTheHandlers(t *testing.T) {
	p := policy.NewPipeline("p", policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		return errors.Join(fn(ctx), errors.New("after"))
	}))
	guarded := httpx.Middleware(p)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
		_ = rw.Flush()
	}))
	written := make(chan int, 1)
	srv := serve(t, "HTTP/1.1", func(w http.ResponseWriter, r *http.Request) {
		outer := &statusWriter{ResponseWriter: w}
		guarded.ServeHTTP(outer, r)
		written <- outer.status
	})
	_, body := ask(t, srv, "/")
	assert.Equal(t, "hello", body)
	assert.Zero(t, <-written, "nothing more is written")
}

func TestHintsPassBeforeTheAnswer(t *testing.T) {
	srv := serve(t, "HTTP/1.1", httpx.Middleware(attempts(2))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusTeapot)
	})).ServeHTTP)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(srv.URL, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	text, err := io.ReadAll(bufio.NewReader(conn))
	require.NoError(t, err)
	assert.Regexp(t, `(?s)^HTTP/1.1 103 Early Hints\r\n.*\r\nHTTP/1.1 418 I'm a teapot\r\n`, string(text))
}

func TestTheServerCleansUpAfterAFormThatTheHandlerParsed(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	files := func() []string {
		found, err := filepath.Glob(filepath.Join(dir, "multipart-*"))
		require.NoError(t, err)
		return found
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /upload/{name}", func(_ http.ResponseWriter, r *http.Request) {
		assert.NoError(t, r.ParseMultipartForm(1))
		assert.Len(t, files(), 1)
	})
	guarded := httpx.Middleware(attempts(2))(mux)
	pattern := make(chan string, 1)
	srv := serve(t, "HTTP/1.1", func(w http.ResponseWriter, r *http.Request) {
		guarded.ServeHTTP(w, r)
		pattern <- r.Pattern
	})
	var body strings.Builder
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "name")
	require.NoError(t, err)
	_, err = io.WriteString(part, strings.Repeat("x", 20<<20))
	require.NoError(t, err)
	require.NoError(t, form.Close())
	req := request(t, t.Context(), http.MethodPost, srv.URL+"/upload/a", []byte(body.String())...)
	req.Header.Set("Content-Type", form.FormDataContentType())
	resp, err := srv.base.RoundTrip(req)
	require.NoError(t, err)
	readAll(t, resp)
	assert.Equal(t, "POST /upload/{name}", <-pattern, "what stands around sees the route, as without a middleware")
	require.Eventually(t, func() bool { return len(files()) == 0 }, eventually, time.Millisecond)
}

func TestAMiddlewareIsMadeOfAPolicyAndAHandler(t *testing.T) {
	assert.PanicsWithValue(t, "httpx: Middleware with a nil policy", func() { httpx.Middleware(nil) })
	assert.PanicsWithValue(t, "httpx: Middleware around a nil handler", func() { httpx.Middleware(retry.New(retry.Config{}))(nil) })
}
