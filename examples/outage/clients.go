package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel"
)

// clients is how many there are. Each makes one call after the other, with a short pause between them.
const clients = 50

// pause returns about 10 ms. Not exactly: clients in lockstep would be no crowd.
func pause() time.Duration { return 8*time.Millisecond + rand.N(4*time.Millisecond) }

// tracer starts a span for each call. The pipeline adds what happens to it, a transition, a retry, a fallback, as events.
var tracer = otel.Tracer("github.com/switchgear-go/switchgear/examples/outage")

// client calls until ctx is done.
func client(ctx context.Context, api *quotesAPI, ask ask, r *recorder) {
	for sleep(ctx, pause()) {
		callOnce(ctx, api, ask, r)
	}
}

func callOnce(ctx context.Context, api *quotesAPI, ask ask, r *recorder) {
	ctx, span := tracer.Start(ctx, "quote")
	defer span.End()
	c := call{begin: r.now()}
	quote, err := ask(ctx, func(ctx context.Context) (Quote, error) {
		c.sent++
		return api.quote(ctx, symbol)
	})
	switch {
	case ctx.Err() != nil:
		r.cutShort()
		return
	case err != nil && !errors.Is(err, errUnknownSymbol):
		c.answer = failed
	case quote.Stale:
		c.answer = stale
	}
	r.called(c)
}
