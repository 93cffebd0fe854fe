package migration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/switchgear-go/switchgear/httpx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/retry"
)

func Example_retryablehttp() {
	url, down := up(503, 503, 200)
	defer down()

	client := &http.Client{Transport: &httpx.Transport{
		Policy: policy.NewPipeline("quotes", retry.New(retry.Config{
			Attempts: 5,                                                 // RetryMax 4, and the first one
			BackOff:  retry.FullJitter(time.Millisecond, 5*time.Second), // RetryWaitMin, RetryWaitMax
		})),
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

func Example_retryablehttpCheckRetry() {
	url, down := up(500)
	defer down()

	policyOfQuotes := retry.New(retry.Config{
		Retryable: func(ctx context.Context, err error) bool {
			var status *httpx.StatusError
			if errors.As(err, &status) && status.StatusCode == http.StatusInternalServerError {
				return false
			}
			return retry.DefaultRetryable(ctx, err)
		},
	})
	client := &http.Client{Transport: &httpx.Transport{Policy: policyOfQuotes}}
	resp, err := client.Get(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 500 Internal Server Error
}

func Example_retryablehttpPost() {
	url, down := up(503, 200)
	defer down()

	client := &http.Client{Transport: &httpx.Transport{
		Policy: retry.New(retry.Config{BackOff: retry.FullJitter(time.Millisecond, time.Second)}),
	}}
	req, err := http.NewRequestWithContext(httpx.WithReplay(ctx, true), http.MethodPost, url, strings.NewReader("q=search"))
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 200 OK
}

func Example_retryablehttpHooks() {
	url, down := up(503, 200)
	defer down()

	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: onlyWhatStaysTheSame}))
	client := &http.Client{Transport: &httpx.Transport{
		Policy: retry.New(retry.Config{
			BackOff:  retry.FullJitter(time.Millisecond, time.Second),
			Observer: observe.Slog(log), // instead of OpenTelemetry
		}),
		Base: signing{http.DefaultTransport}, // sees each attempt
	}}
	resp, err := client.Get(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	// Output:
	// attempt 1
	// level=INFO msg="retry retry tries again"
	// attempt 2
}

// signing signs each attempt anew.
type signing struct{ base http.RoundTripper }

func (s signing) RoundTrip(r *http.Request) (*http.Response, error) {
	fmt.Println("attempt", policy.Attempt(r.Context()))
	r = r.Clone(r.Context()) // a RoundTripper must not change its request
	r.Header.Set("Signature", "…")
	return s.base.RoundTrip(r)
}

func onlyWhatStaysTheSame(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.LevelKey || a.Key == slog.MessageKey {
		return a
	}
	return slog.Attr{}
}
