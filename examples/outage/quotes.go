package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/switchgear-go/switchgear/policy"
)

// Quote is what the dependency sells.
type Quote struct {
	Symbol string  `json:"symbol"`
	Price  float64 `json:"price"`
	Stale  bool    `json:"-"` // it comes from the fallback
}

const symbol = "ACME"

// fetch asks the dependency once.
type fetch = func(ctx context.Context) (Quote, error)

// ask gets a quote by means of fetch, with or without protection.
type ask func(ctx context.Context, fetch fetch) (Quote, error)

var errUnknownSymbol = errors.New("quotes: unknown symbol")

// quotesAPI is the client of the dependency.
type quotesAPI struct {
	url  string
	http *http.Client
}

func (a *quotesAPI) quote(ctx context.Context, symbol string) (Quote, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+"/quotes/"+symbol, nil)
	if err != nil {
		return Quote{}, err
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return Quote{}, err
	}
	defer resp.Body.Close()
	var q Quote
	switch resp.StatusCode {
	case http.StatusOK:
		err = json.NewDecoder(resp.Body).Decode(&q)
	case http.StatusNotFound:
		// An error to whoever asked, but the dependency is well: the breaker must not count it against it.
		err = policy.Healthy(fmt.Errorf("%w %s", errUnknownSymbol, symbol))
	default:
		err = fmt.Errorf("quotes: status %s", resp.Status)
	}
	_, _ = io.Copy(io.Discard, resp.Body) // read to the end, or the connection cannot be used again
	return q, err
}
