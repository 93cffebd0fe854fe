package httpx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/httpx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/ratelimit"
	"github.com/switchgear-go/switchgear/retry"
)

// up starts a server and returns its URL and what stops it.
func up(handler http.Handler) (url string, down func()) {
	srv := httptest.NewServer(handler)
	return srv.URL, func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		srv.Close()
	}
}

func Example() {
	url, down := up(answers(503, 503, 200))
	defer down()

	client := &http.Client{Transport: &httpx.Transport{
		Policy: policy.NewPipeline("quotes",
			policy.Timeout(5*time.Second),               // for the whole call
			retry.New(retry.Config{BackOff: instantly}), // 3 attempts; here without waits
			breaker.New("quotes-api", breaker.Config{}), // opens when half of the attempts fail
			policy.Timeout(time.Second),                 // for each attempt
		),
	}}
	resp, err := client.Get(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 200 OK
}

// The last response comes back as it would without policies, and a refusal as an error.
func ExampleTransport() {
	url, down := up(answers(503))
	defer down()

	client := &http.Client{Transport: &httpx.Transport{
		Policy: breaker.New("quotes-api", breaker.Config{Consecutive: 2, Cooldown: 30 * time.Second, Jitter: -1}),
	}}
	for range 3 {
		resp, err := client.Get(url)
		switch {
		case errors.Is(err, breaker.ErrCircuitOpen):
			wait, _ := policy.RetryAfter(err)
			fmt.Println("not asked; again in", wait.Round(time.Second))
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println(resp.Status)
			resp.Body.Close()
		}
	}
	// Output:
	// 503 Service Unavailable
	// 503 Service Unavailable
	// not asked; again in 30s
}

// A breaker for each host, from a group that stays bounded however many hosts come.
func ExampleTransport_perHost() {
	bad, down := up(answers(503))
	defer down()
	good, down := up(answers(200))
	defer down()

	hosts := policy.NewGroup(policy.GroupConfig{Name: "hosts", Max: 100}, func(string) *policy.Pipeline {
		return policy.NewPipeline("hosts",
			policy.Timeout(5*time.Second),
			retry.New(retry.Config{Attempts: 2, BackOff: instantly}),
			breaker.New("hosts", breaker.Config{Consecutive: 2}),
		)
	})
	client := &http.Client{Transport: &httpx.Transport{
		For: func(r *http.Request) policy.Policy { return hosts.Get(r.URL.Host) },
	}}
	for _, url := range []string{bad, bad, good} {
		resp, err := client.Get(url)
		if err != nil {
			fmt.Println("refused:", errors.Is(err, breaker.ErrCircuitOpen))
			continue
		}
		fmt.Println(resp.Status)
		resp.Body.Close()
	}
	// Output:
	// 503 Service Unavailable
	// refused: true
	// 200 OK
}

// A fallback may answer in the server's place.
func ExampleTransport_fallback() {
	url, down := up(answers(503))
	defer down()

	client := &http.Client{Transport: &httpx.Transport{
		Policy: policy.NewPipeline("quotes",
			policy.FallbackValue(func(context.Context, error) (*http.Response, error) {
				return &http.Response{
					StatusCode: http.StatusOK,
					Status:     "200 OK",
					Header:     http.Header{"Warning": {`110 - "Response is Stale"`}},
					Body:       io.NopCloser(strings.NewReader("yesterday's")),
				}, nil
			}),
			breaker.New("quotes-api", breaker.Config{}),
		),
	}}
	resp, err := client.Get(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	quote, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.Status, string(quote))
	// Output: 200 OK yesterday's
}

func ExampleTransport_RoundTrip() {
	url, down := up(answers(500, 200))
	defer down()

	transport := &httpx.Transport{Policy: retry.New(retry.Config{BackOff: instantly})}
	req, _ := http.NewRequest(http.MethodPut, url, strings.NewReader("a body that can be sent again"))
	resp, err := transport.RoundTrip(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode)
	// Output: 200
}

func ExampleTransport_CloseIdleConnections() {
	base := http.DefaultTransport.(*http.Transport).Clone()
	client := &http.Client{Transport: &httpx.Transport{Base: base}}
	client.CloseIdleConnections() // of base
	// Output:
}

// A POST is sent once, unless somebody knows that it may be repeated.
func ExampleWithReplay() {
	var sent int
	url, down := up(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent++
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer down()

	client := &http.Client{Transport: &httpx.Transport{Policy: retry.New(retry.Config{BackOff: instantly})}}
	post := func(ctx context.Context) {
		sent = 0
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("q=search"))
		if resp, err := client.Do(req); err == nil {
			resp.Body.Close()
		}
		fmt.Println("sent", sent)
	}
	post(context.Background())
	post(httpx.WithReplay(context.Background(), true)) // it only reads
	// Output:
	// sent 1
	// sent 3
}

// What policies see of a failed response: here a breaker takes 503 for what a deployment does, and lets it pass.
func ExampleStatusError() {
	url, down := up(answers(503))
	defer down()

	b := breaker.New("quotes-api", breaker.Config{
		Consecutive: 1,
		Classify: func(ctx context.Context, err error) policy.Outcome {
			var status *httpx.StatusError
			if errors.As(err, &status) && status.StatusCode == http.StatusServiceUnavailable {
				return policy.Ignored
			}
			return policy.Classify(ctx, err)
		},
	})
	client := &http.Client{Transport: &httpx.Transport{Policy: b}}
	resp, err := client.Get(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status, b.State())
	// Output: 503 Service Unavailable closed
}

// A server that asks to be left alone is: the breaker opens for as long as Retry-After says.
func ExampleStatusError_retryAfter() {
	url, down := up(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer down()

	b := breaker.New("quotes-api", breaker.Config{TripOn: policy.RetryAfter})
	client := &http.Client{Transport: &httpx.Transport{Policy: b}}
	resp, err := client.Get(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	fmt.Println(b.State(), "for", b.Stats().Cooldown)
	// Output:
	// 429 Too Many Requests
	// open for 20s
}

// A policy of your own that repeats whatever it gets is kept from it.
func ExampleErrNotReplayable() {
	url, down := up(answers(503))
	defer down()

	twice := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		if err := fn(ctx); err == nil {
			return nil
		}
		err := fn(ctx)
		fmt.Println(errors.Is(err, httpx.ErrNotReplayable))
		return err
	})
	client := &http.Client{Transport: &httpx.Transport{Policy: twice}}
	resp, err := client.Post(url, "text/plain", strings.NewReader("once"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output:
	// true
	// 503 Service Unavailable
}

// A server that answers what it can, and refuses the rest at once.
func ExampleMiddleware() {
	report := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "report")
	})
	limit := bulkhead.New("reports", bulkhead.Config{Max: 1})

	handler := httpx.Middleware(policy.NewPipeline("reports", limit, policy.Timeout(2*time.Second)))(report)

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/report", nil))
	fmt.Println(w.Code, w.Body)

	release, _ := limit.Acquire(context.Background()) // another request runs
	defer release()
	w = httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/report", nil))
	fmt.Println(w.Code)
	// Output:
	// 200 report
	// 503
}

// A limit for each tenant: the group reads the key from the request's context.
func ExampleMiddleware_perTenant() {
	limits := policy.NewGroup(policy.GroupConfig{Name: "tenants"}, func(string) *ratelimit.Limiter {
		return ratelimit.New("tenants", ratelimit.Config{Rate: .1, Burst: 1})
	})
	limited := httpx.Middleware(limits.Policy(tenantOf))(answers(200))

	for _, tenant := range []string{"a", "a", "b"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r = r.WithContext(context.WithValue(r.Context(), tenantKey{}, tenant)) // authentication does that
		w := httptest.NewRecorder()
		limited.ServeHTTP(w, r)
		fmt.Printf("%s: %d, Retry-After %q\n", tenant, w.Code, w.Header().Get("Retry-After"))
	}
	// Output:
	// a: 200, Retry-After ""
	// a: 429, Retry-After "10"
	// b: 200, Retry-After ""
}

type tenantKey struct{}

func tenantOf(ctx context.Context) string { return fmt.Sprint(ctx.Value(tenantKey{})) }
