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

func hedge(delay time.Duration) policy.Policy {
	return retry.NewHedge(retry.HedgeConfig{Delay: delay, Budget: retry.Unlimited})
}

// failsafe-go#65, go-resty#1197
func TestTheWinnerOfAHedgeIsReadWholeAndTheLoserCancelled(t *testing.T) {
	content := bytes.Repeat([]byte("x"), 512<<10)
	for name, layered := range map[string]func() policy.Policy{
		"alone":        func() policy.Policy { return hedge(time.Millisecond) },
		"inside retry": func() policy.Policy { return policy.NewPipeline("r", attempts(2), hedge(time.Millisecond)) },
		"inside timeout": func() policy.Policy {
			return policy.NewPipeline("t", policy.Timeout(time.Hour), hedge(time.Millisecond))
		},
		"around timeout": func() policy.Policy {
			return policy.NewPipeline("ht", hedge(time.Millisecond), policy.Timeout(time.Hour))
		},
	} {
		for winner := range 2 {
			t.Run(name+[]string{", the first wins", ", the second wins"}[winner], func(t *testing.T) {
				var n atomic.Int64
				both, lost := make(chan struct{}), make(chan struct{})
				onEach(t, func(w http.ResponseWriter, r *http.Request) {
					number := n.Add(1)
					if number == 2 {
						close(both)
					}
					<-both
					if int(number) != winner+1 {
						<-r.Context().Done()
						close(lost)
						return
					}
					_ = http.NewResponseController(w).Flush()
					<-lost // the body comes when the loser is gone
					_, _ = w.Write(content)
				}, func(t *testing.T, srv *server) {
					n.Store(0)
					both, lost = make(chan struct{}), make(chan struct{})
					resp, err := (&httpx.Transport{Base: srv.base, Policy: layered()}).RoundTrip(request(t, t.Context(), http.MethodGet, srv.URL))
					require.NoError(t, err)
					select {
					case <-lost:
					case <-time.After(eventually):
						t.Fatal("the loser was not cancelled")
					}
					assert.Len(t, readAll(t, resp), len(content))
					assert.Equal(t, 2, srv.base.sent())
				})
			})
		}
	}
}

// hedgedhttp#61
func TestAnUnsafeRequestIsNotHedged(t *testing.T) {
	for _, status := range []int{200, 503} {
		seen := &ledger{}
		hedged := make(chan struct{})
		onEach(t, func(w http.ResponseWriter, _ *http.Request) {
			<-hedged
			w.WriteHeader(status)
		}, func(t *testing.T, srv *server) {
			hedged = make(chan struct{})
			tell := &onEvent{func() { close(hedged) }}
			p := retry.NewHedge(retry.HedgeConfig{Delay: time.Millisecond, Budget: retry.Unlimited, Observer: tee{seen, tell}})
			resp, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(request(t, t.Context(), http.MethodPost, srv.URL, 'x'))
			require.NoError(t, err)
			assert.Equal(t, status, resp.StatusCode)
			readAll(t, resp)
			assert.Equal(t, 1, srv.base.sent())
		})
	}
}

// The runs of these policies overlap in ways that a hedge's seldom do.
func TestOfResponsesThatOverlapOneIsTheCallersAndTheOthersAreClosed(t *testing.T) {
	ended, second := make(chan error, 1), make(chan struct{}, 1)
	// start starts a run of fn on a goroutine of its own.
	start := func(ctx context.Context, fn policy.Func) (result chan error, settle func(bool)) {
		fork, settle := policy.Fork(ctx)
		result = make(chan error, 1)
		go func() { result <- fn(fork) }()
		return result, settle
	}
	for name, row := range map[string]struct {
		policy func(release chan struct{}) policy.PolicyFunc
		after  func(release chan struct{}) // what happens after RoundTrip
		sends  int
		held   bool   // by the server, the second one
		answer string // that is the caller's
	}{
		"both succeed, the first is kept": {
			policy: func(chan struct{}) policy.PolicyFunc {
				return func(ctx context.Context, fn policy.Func) error {
					a, keepA := start(ctx, fn)
					errA := <-a
					b, keepB := start(ctx, fn)
					errB := <-b
					keepA(true)
					keepB(false)
					return errors.Join(errA, errB)
				}
			},
			sends: 2, answer: "1",
		},
		"both succeed, the second is kept": {
			policy: func(chan struct{}) policy.PolicyFunc {
				return func(ctx context.Context, fn policy.Func) error {
					a, keepA := start(ctx, fn)
					errA := <-a
					b, keepB := start(ctx, fn)
					errB := <-b
					keepB(true)
					keepA(false)
					return errors.Join(errA, errB)
				}
			},
			sends: 2, answer: "2",
		},
		"one ends after the return": {
			policy: func(chan struct{}) policy.PolicyFunc {
				return func(ctx context.Context, fn policy.Func) error {
					a, keepA := start(ctx, fn)
					err := <-a
					b, keepB := start(ctx, fn)
					<-second // the server holds it
					keepA(true)
					keepB(false)
					go func() { ended <- <-b }()
					return err
				}
			},
			after: func(release chan struct{}) { close(release); <-ended },
			held:  true,
			sends: 2, answer: "1",
		},
		"one begins after the return": {
			policy: func(release chan struct{}) policy.PolicyFunc {
				return func(ctx context.Context, fn policy.Func) error {
					fork, _ := policy.Fork(ctx)
					go func() { <-release; ended <- fn(fork) }()
					return fn(ctx)
				}
			},
			after: func(release chan struct{}) { close(release); <-ended },
			sends: 1, answer: "1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int64
			var release chan struct{}
			onEach(t, func(w http.ResponseWriter, r *http.Request) {
				number := n.Add(1)
				if number == 2 && row.held {
					second <- struct{}{}
					<-release
				}
				_, _ = io.WriteString(w, string('0'+rune(number)))
			}, func(t *testing.T, srv *server) {
				n.Store(0)
				release = make(chan struct{})
				p := row.policy(release)
				req := request(t, t.Context(), http.MethodGet, srv.URL)
				resp, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(req)
				require.NoError(t, err)
				assert.Equal(t, row.answer, readAll(t, resp))
				if row.after != nil {
					row.after(release)
				}
				assert.Equal(t, row.sends, srv.base.sent())
			})
		})
	}
}

func TestAResponseThatWasDiscardedIsNotReturned(t *testing.T) {
	onEach(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, func(t *testing.T, srv *server) {
		var kept *http.Response
		p := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
			first, keep := policy.Fork(ctx)
			err := fn(first)
			var status *httpx.StatusError
			if assert.ErrorAs(t, err, &status) {
				kept = status.Response
			}
			second, drop := policy.Fork(ctx)
			_ = fn(second)
			keep(true)
			drop(false)
			return nil
		})
		resp, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(request(t, t.Context(), http.MethodGet, srv.URL))
		require.NoError(t, err)
		assert.NotSame(t, kept, resp)
		assert.Empty(t, readAll(t, resp))
	})
}

func TestAnAttemptThatWasOvertakenBeforeItBeganSendsNothing(t *testing.T) {
	srv := serve(t, "HTTP/1.1", answers(200))
	own := errors.New("own")
	p := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		overtaken, cancel := context.WithCancelCause(ctx)
		cancel(own)
		assert.Equal(t, own, fn(overtaken))
		return fn(ctx)
	})
	resp, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(request(t, t.Context(), http.MethodPost, srv.URL, 'x'))
	require.NoError(t, err)
	readAll(t, resp)
	assert.Equal(t, 1, srv.base.sent())
}

func TestOfFailedResponsesThatAreOpenTheNewestComesBack(t *testing.T) {
	var handler http.HandlerFunc
	onEach(t, func(w http.ResponseWriter, r *http.Request) { handler(w, r) }, func(t *testing.T, srv *server) {
		var n atomic.Int64
		both := make(chan struct{})
		last := make(chan struct{})
		handler = func(w http.ResponseWriter, r *http.Request) {
			number := n.Add(1)
			if number == 2 {
				close(both)
			}
			<-both
			if number == 1 {
				<-last
			}
			w.WriteHeader(500 + int(number))
			_, _ = io.WriteString(w, "hello")
		}
		p := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
			results := make(chan error, 2)
			for range 2 {
				go func() { results <- fn(ctx) }()
			}
			first := <-results
			close(last)
			return errors.Join(<-results, first)
		})
		resp, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(request(t, t.Context(), http.MethodGet, srv.URL))
		require.NoError(t, err)
		assert.Equal(t, 501, resp.StatusCode)
		assert.Equal(t, "hello", readAll(t, resp))
	})
}

func TestTheRequestIsNotChangedAndIsTheCallersAgainOnceTheBodyIsClosed(t *testing.T) {
	onEach(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // until then the server does not see that a client has gone
		if r.Header.Get("Number") == "1" {
			<-r.Context().Done()
		}
	}, func(t *testing.T, srv *server) {
		var n atomic.Int64
		srv.base.before = func(r *http.Request) { r.Header.Set("Number", string('0'+rune(n.Add(1)))) } // it must not, but then it is its own copy
		body := &sentBody{Reader: strings.NewReader("hello")}
		req := request(t, t.Context(), http.MethodPut, srv.URL)
		req.Body, req.GetBody = body, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("hello")), nil }
		req.ContentLength = 5
		before, url := req.Clone(req.Context()), *req.URL
		p := policy.NewPipeline("p", policy.Timeout(time.Hour), hedge(time.Millisecond))
		resp, err := (&httpx.Transport{Base: srv.base, Policy: p}).RoundTrip(req)
		require.NoError(t, err)
		assert.Equal(t, before.Header, req.Header)
		assert.Equal(t, url, *req.URL)
		assert.Same(t, body, req.Body)
		assert.Equal(t, before.Context(), req.Context())
		assert.Same(t, req, resp.Request)
		readAll(t, resp)
		req.Header.Set("Number", "changed") // races with a loser, if that had the caller's
		req.URL.Path = "/changed"
		body.requireClosed(t)
	})
}

// golang/go#22084
func TestAPanicOfTheBaseReachesTheCaller(t *testing.T) {
	for name, layered := range map[string]func(b policy.Policy) policy.Policy{
		"alone":   func(b policy.Policy) policy.Policy { return b },
		"timeout": func(b policy.Policy) policy.Policy { return policy.NewPipeline("t", policy.Timeout(time.Hour), b) },
		"hedge":   func(b policy.Policy) policy.Policy { return policy.NewPipeline("h", hedge(time.Hour), b) },
	} {
		t.Run(name, func(t *testing.T) {
			b := breaker.New("b", breaker.Config{})
			rt := &httpx.Transport{
				Base:   roundTripper(func(*http.Request) (*http.Response, error) { panic(http.ErrAbortHandler) }),
				Policy: layered(b),
			}
			assert.PanicsWithValue(t, http.ErrAbortHandler, func() {
				_, _ = rt.RoundTrip(request(t, t.Context(), http.MethodGet, "http://a.test"))
			})
			assert.Equal(t, 1, b.Stats().Failed)
		})
	}
}

// kitex and cadence users meet this: a retry of one's own around a client that retries.
func TestARetryAroundAClientThatRetriesDoesNotMultiply(t *testing.T) {
	srv := serve(t, "HTTP/1.1", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if assert.NoError(t, err) {
			conn.Close()
		}
	})
	client := &http.Client{Transport: &httpx.Transport{Base: srv.base, Policy: attempts(3)}}
	calls := 0
	err := attempts(3).Do(t.Context(), func(ctx context.Context) error {
		calls++
		resp, err := client.Do(request(t, ctx, http.MethodGet, srv.URL))
		if err == nil {
			resp.Body.Close()
		}
		return err
	})
	require.ErrorIs(t, err, retry.ErrAttemptsExhausted)
	assert.Equal(t, 1, calls)
	assert.Equal(t, 3, srv.base.sent())
}
