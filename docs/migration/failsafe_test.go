package migration

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/httpx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/retry"
)

func Example_failsafe() {
	quotes := policy.NewPipeline("quotes", // once, at start
		policy.FallbackValue(func(context.Context, error) (Quote, error) { return Quote{Price: 41}, nil }),
		retry.New(retry.Config{BackOff: retry.FullJitter(50*time.Millisecond, 5*time.Second)}),
		breaker.New("quotes-api", breaker.Config{Window: 10 * time.Second, MinCalls: 20, FailureRatio: 0.5}),
		policy.Timeout(time.Second),
	)
	quote, err := policy.Get(ctx, quotes, fetchQuote)
	fmt.Println(quote.Price, err)
	// Output: 42 <nil>
}

func Example_failsafeHTTP() {
	url, down := up(503, 503, 200)
	defer down()

	client := &http.Client{Transport: &httpx.Transport{
		Policy: policy.NewPipeline("quotes",
			retry.New(retry.Config{BackOff: retry.FullJitter(time.Millisecond, time.Second)}),
			breaker.New("quotes-api", breaker.Config{}),
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

func Example_failsafeHandler() {
	handler := http.NotFoundHandler()
	guarded := httpx.Middleware(bulkhead.New("quotes", bulkhead.Config{Max: 10}))(handler)
	fmt.Printf("%T\n", guarded)
	// Output: http.HandlerFunc
}

func Example_failsafeHedge() {
	quotes := policy.NewPipeline("quotes",
		retry.NewHedge(retry.HedgeConfig{Percentile: 0.95, MaxHedges: 1}),
		breaker.New("quotes-api", breaker.Config{}),
	)
	quote, err := policy.Get(ctx, quotes, fetchQuote)
	fmt.Println(quote.Price, err)
	// Output: 42 <nil>
}

func Example_failsafePermits() {
	limit := bulkhead.New("quotes", bulkhead.Config{Max: 10, Queue: 100, MaxWait: time.Second})
	release, err := limit.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer release()
	fmt.Println(limit.Stats().Running)
	// Output: 1
}
