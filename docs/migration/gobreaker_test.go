package migration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/httpx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

func Example_gobreaker() {
	quotes := breaker.New("quotes-api", breaker.Config{
		Window:         10 * time.Second,             // Interval, as a sliding window
		MinCalls:       20,                           // ReadyToTrip:
		FailureRatio:   0.5,                          // Requests >= 20 && TotalFailures/Requests >= 0.5
		Cooldown:       30 * time.Second,             // Timeout
		Probes:         3,                            // MaxRequests: at once,
		ProbeSuccesses: 3,                            // and in a row to close
		Observer:       observe.Slog(slog.Default()), // OnStateChange; without it, OpenTelemetry
	})
	quote, err := policy.Get(ctx, quotes, fetchQuote)
	fmt.Println(quote.Price, err)
	// Output: 42 <nil>
}

func Example_gobreakerConsecutive() {
	quotes := breaker.New("quotes-api", breaker.Config{Consecutive: 6, Cooldown: time.Minute, Growth: 1, Jitter: -1})
	fmt.Println(quotes.State())
	// Output: closed
}

func Example_gobreakerErrors() {
	quotes := breaker.New("quotes-api", breaker.Config{Cooldown: 30 * time.Second, Jitter: -1})
	quotes.Trip()
	_, err := policy.Get(ctx, quotes, fetchQuote)
	if errors.Is(err, breaker.ErrCircuitOpen) { // ErrOpenState and ErrTooManyRequests
		wait, _ := policy.RetryAfter(err)
		fmt.Println("again in", wait.Round(time.Second))
	}
	// Output: again in 30s
}

func Example_gobreakerIsSuccessful() {
	quotes := breaker.New("quotes-api", breaker.Config{Consecutive: 1})
	err := quotes.Do(ctx, func(context.Context) error {
		return policy.Healthy(errNoRows) // the database is well
	})
	fmt.Println(errors.Is(err, errNoRows), quotes.State())

	selective := breaker.New("quotes-api", breaker.Config{
		Classify: func(ctx context.Context, err error) policy.Outcome { // for errors you do not make yourself
			if errors.Is(err, errNoRows) {
				return policy.Success
			}
			return policy.Classify(ctx, err)
		},
	})
	fmt.Println(selective.Do(ctx, func(context.Context) error { return errNoRows }))
	// Output:
	// true closed
	// no such quote
}

func Example_gobreakerTwoStep() {
	quotes := breaker.New("quotes-api", breaker.Config{})
	permit, err := quotes.Allow(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = fetchQuote(ctx)
	permit.Done(err) // the first call counts, later ones do nothing
	fmt.Println(err, quotes.Stats().Calls)
	// Output: <nil> 1
}

func Example_gobreakerHTTP() {
	url, down := up(404)
	defer down()

	client := &http.Client{Transport: &httpx.Transport{Policy: breaker.New("quotes-api", breaker.Config{})}}
	resp, err := client.Get(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 404 Not Found
}
