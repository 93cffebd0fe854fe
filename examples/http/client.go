package main

import (
	"net/http"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/httpx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/retry"
)

// This file is all that a service writes for its client.

const (
	attemptLimit = 100 * time.Millisecond
	cooldown     = 300 * time.Millisecond
)

// hosts has the policies of each host that the client talks to, and as many hosts as there are.
type hosts = policy.Group[*policy.Pipeline]

func newHosts() *hosts {
	return policy.NewGroup(policy.GroupConfig{Name: "upstreams", Max: 100}, func(string) *policy.Pipeline {
		return policy.NewPipeline("upstreams",
			policy.Timeout(time.Second),
			retry.New(retry.Config{Attempts: 2, BackOff: retry.FullJitter(10*time.Millisecond, 100*time.Millisecond)}),
			breaker.New("upstreams", breaker.Config{Consecutive: 5, Cooldown: cooldown, MaxCooldown: cooldown}),
			policy.Timeout(attemptLimit),
		)
	})
}

// newClient returns a client that keeps a host that is down from being asked, and its callers from waiting for it. Each
// attempt is a span of its own, since otelhttp stands inside.
func newClient(h *hosts, base http.RoundTripper) *http.Client {
	return &http.Client{Transport: &httpx.Transport{
		For:  func(r *http.Request) policy.Policy { return h.Get(r.URL.Host) },
		Base: otelhttp.NewTransport(resend{base}),
	}}
}
