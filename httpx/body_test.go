package httpx_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/httpx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/retry"
)

// layers are pipelines that give an attempt a context of its own, in different ways, with a limit in each.
func layers() map[string]func(limit time.Duration) *policy.Pipeline {
	hedge := func() policy.Policy { return retry.NewHedge(retry.HedgeConfig{Delay: time.Hour}) }
	return map[string]func(limit time.Duration) *policy.Pipeline{
		"timeout": func(limit time.Duration) *policy.Pipeline {
			return policy.NewPipeline("t", policy.Timeout(limit))
		},
		"timeout, retry": func(limit time.Duration) *policy.Pipeline {
			return policy.NewPipeline("tr", policy.Timeout(limit), attempts(2))
		},
		"retry, timeout": func(limit time.Duration) *policy.Pipeline {
			return policy.NewPipeline("rt", attempts(2), policy.Timeout(limit))
		},
		"hedge": func(time.Duration) *policy.Pipeline {
			return policy.NewPipeline("h", hedge())
		},
		"timeout, retry, hedge": func(limit time.Duration) *policy.Pipeline {
			return policy.NewPipeline("trh", policy.Timeout(limit), attempts(2), hedge())
		},
		"timeout, retry, hedge, timeout": func(limit time.Duration) *policy.Pipeline {
			return policy.NewPipeline("trht", policy.Timeout(time.Hour), attempts(2), hedge(), policy.Timeout(limit))
		},
	}
}

// failsafe-go#123, asecurityteam/transport#18
func TestABodyIsReadWholeAfterThePoliciesAreDone(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 2<<20/16)
	for name, layered := range layers() {
		t.Run(name, func(t *testing.T) {
			var release chan struct{}
			onEach(t, func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).Flush()
				select {
				case <-release:
					_, _ = w.Write(content)
				case <-r.Context().Done(): // the limit was too short
				}
			}, func(t *testing.T, srv *server) {
				release = make(chan struct{})
				var resp *http.Response
				var err error
				limit := 10 * time.Millisecond
				for ; limit < eventually; limit *= 2 { // as short as the machine allows
					resp, err = (&httpx.Transport{Base: srv.base, Policy: layered(limit)}).RoundTrip(request(t, t.Context(), http.MethodGet, srv.URL))
					if !errors.Is(err, policy.ErrTimeout) {
						break
					}
				}
				require.NoError(t, err)
				time.Sleep(limit) // only after it is the limit known not to matter
				close(release)
				assert.Len(t, readAll(t, resp), len(content))
			})
		})
	}
}

func TestABodyOfTwoMebibytesIsWholeFiftyTimes(t *testing.T) {
	chunk := bytes.Repeat([]byte("x"), 128<<10)
	onEach(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 16 {
			_, _ = w.Write(chunk)
			_ = http.NewResponseController(w).Flush()
		}
	}, func(t *testing.T, srv *server) {
		p := policy.NewPipeline("whole", policy.Timeout(time.Hour), attempts(2), retry.NewHedge(retry.HedgeConfig{Delay: time.Millisecond, Budget: retry.Unlimited}))
		for range 50 {
			resp, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(request(t, t.Context(), http.MethodGet, srv.URL))
			require.NoError(t, err)
			n, err := io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			require.Equal(t, int64(2<<20), n)
			resp.Body.Close()
		}
	})
}

func TestABodyEndsWithTheCaller(t *testing.T) {
	reason := errors.New("changed my mind")
	for name, layered := range layers() {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}, func(t *testing.T, srv *server) {
				ctx, cancel := context.WithCancelCause(t.Context())
				resp, err := (&httpx.Transport{Base: srv.base, Policy: layered(time.Hour)}).RoundTrip(request(t, ctx, http.MethodGet, srv.URL))
				require.NoError(t, err)
				cancel(reason)
				_, err = io.ReadAll(resp.Body)
				if resp.ProtoMajor == 2 {
					assert.Equal(t, context.Canceled, err)
				} else {
					assert.Equal(t, reason, err)
				}
				resp.Body.Close()
			})
		})
	}
}

// openai-go#495, teamcity-cli#345
func TestDiscardedResponsesAreDrainedWhenTheNextSendBegins(t *testing.T) {
	var handler http.HandlerFunc
	onEach(t, func(w http.ResponseWriter, r *http.Request) { handler(w, r) }, func(t *testing.T, srv *server) {
		handler = answers(503, 503, 200)
		var looked atomic.Int64
		p := retry.New(retry.Config{BackOff: instantly, Budget: retry.Unlimited, Retryable: func(_ context.Context, err error) bool {
			var status *httpx.StatusError
			if assert.ErrorAs(t, err, &status) {
				head := make([]byte, 10)
				_, err := io.ReadFull(status.Response.Body, head)
				assert.NoError(t, err, "it is open")
				assert.Equal(t, "xxxxxxxxxx", string(head))
				looked.Add(1)
			}
			return true
		}})
		srv.base.before = func(*http.Request) {
			for i := range srv.base.sent() - 1 {
				assert.True(t, srv.base.body(i).eof.Load(), "body %d was not drained", i)
				assert.True(t, srv.base.body(i).closed.Load(), "body %d was not closed", i)
			}
		}
		resp, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(request(t, t.Context(), http.MethodGet, srv.URL))
		require.NoError(t, err)
		assert.Equal(t, 200, resp.StatusCode)
		assert.Equal(t, int64(2), looked.Load())
		assert.False(t, srv.base.body(2).closed.Load())
		assert.Len(t, readAll(t, resp), 300)
		assert.Equal(t, int64(1), srv.conns.Load(), "the connection was used again")
	})
}

func TestDrainingHasLimits(t *testing.T) {
	for name, row := range map[string]struct {
		failure http.HandlerFunc
		policy  policy.Policy
		read    int64
	}{
		"in bytes, when told the length": {
			failure: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "1000000")
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = io.WriteString(w, strings.Repeat("x", 1000000))
			},
			policy: attempts(2),
		},
		"in bytes": {
			failure: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusServiceUnavailable)
				_ = http.NewResponseController(w).Flush()
				_, _ = io.WriteString(w, strings.Repeat("x", 1000000))
			},
			policy: attempts(2),
			read:   64 << 10,
		},
		"in time": {
			failure: func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			},
			policy: attempts(2),
			read:   1,
		},
		"with the attempt": {
			failure: func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			},
			policy: policy.NewPipeline("short", attempts(3), policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
				if policy.Attempt(ctx) != 2 {
					return fn(ctx)
				}
				ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
				defer cancel()
				err := fn(ctx)
				assert.ErrorIs(t, err, context.DeadlineExceeded, "and nothing was sent")
				return err
			})),
			read: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int64
			onEach(t, func(w http.ResponseWriter, r *http.Request) {
				if n.Add(1) == 1 {
					row.failure(w, r)
				}
			}, func(t *testing.T, srv *server) {
				quickest, most := time.Hour, int64(0)
				for range 5 { // on a busy machine one of them is quick
					n.Store(0)
					first := srv.base.came()
					start := time.Now()
					resp, err := (&httpx.Transport{Base: srv.base, Policy: row.policy}).RoundTrip(request(t, t.Context(), http.MethodGet, srv.URL))
					quickest = min(quickest, time.Since(start))
					require.NoError(t, err)
					assert.Equal(t, 200, resp.StatusCode)
					readAll(t, resp)
					discarded := srv.base.body(first)
					assert.True(t, discarded.closed.Load())
					assert.False(t, discarded.eof.Load())
					most = max(most, discarded.read.Load())
				}
				assert.Equal(t, row.read, most)
				if name == "in time" {
					assert.GreaterOrEqual(t, quickest, 100*time.Millisecond)
				} else {
					assert.Less(t, quickest, 100*time.Millisecond)
				}
			})
		})
	}
}

func TestAConnectionThatSwitchesProtocolsStaysWhatItIs(t *testing.T) {
	for name, layered := range layers() {
		t.Run(name, func(t *testing.T) {
			srv := serve(t, "HTTP/1.1", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Connection", "Upgrade")
				w.Header().Set("Upgrade", "echo")
				w.WriteHeader(http.StatusSwitchingProtocols)
				conn, rw, err := http.NewResponseController(w).Hijack()
				if !assert.NoError(t, err) {
					return
				}
				defer conn.Close()
				line, _ := rw.ReadString('\n')
				_, _ = io.WriteString(conn, line)
			})
			req := request(t, t.Context(), http.MethodGet, srv.URL)
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", "echo")
			resp, err := (&httpx.Transport{Base: srv.base, Policy: layered(time.Hour)}).RoundTrip(req)
			require.NoError(t, err)
			require.Equal(t, 101, resp.StatusCode)
			conn, ok := resp.Body.(io.ReadWriteCloser)
			require.True(t, ok)
			_, err = io.WriteString(conn, "hello\n")
			require.NoError(t, err)
			assert.Equal(t, "hello\n", readAll(t, resp))
		})
	}
}

func TestTheBodyOfTheRequestIsClosedOnEveryPath(t *testing.T) {
	srv := serve(t, "HTTP/1.1", answers(503))
	done, cancel := context.WithCancel(t.Context())
	cancel()
	open := breaker.New("open", breaker.Config{})
	open.ForceOpen()
	never := policy.PolicyFunc(func(context.Context, policy.Func) error { return errors.New("never") })
	for name, row := range map[string]struct {
		ctx    context.Context
		policy policy.Policy
		base   http.RoundTripper
	}{
		"sent":          {policy: attempts(3)},
		"no policy":     {},
		"refused":       {policy: open},
		"not run":       {policy: never},
		"done before":   {policy: attempts(3), ctx: done},
		"base panics":   {policy: attempts(3), base: roundTripper(func(r *http.Request) (*http.Response, error) { defer r.Body.Close(); panic("base") })},
		"policy panics": {policy: policy.PolicyFunc(func(context.Context, policy.Func) error { panic("policy") })},
	} {
		t.Run(name, func(t *testing.T) {
			if row.ctx == nil {
				row.ctx = t.Context()
			}
			if row.base == nil {
				row.base = srv.base
			}
			body := &sentBody{Reader: strings.NewReader("hello")}
			req := request(t, row.ctx, http.MethodPost, srv.URL)
			req.Body = body
			func() {
				defer func() { _ = recover() }()
				resp, err := (&httpx.Transport{Base: row.base, Policy: row.policy}).RoundTrip(req)
				assert.NotEqual(t, resp == nil, err == nil)
				if err == nil {
					readAll(t, resp)
				}
			}()
			body.requireClosed(t)
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
