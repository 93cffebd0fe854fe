// Package httpx puts policies around HTTP requests: [Transport] around those of a client, [Middleware] around those of a
// server.
//
//	client := &http.Client{Transport: &httpx.Transport{Policy: pipeline}}
//	handler = httpx.Middleware(bulkhead)(handler)
//
// Policies see these results, on either side:
//
//   - a status of 5xx, and on the client's side 429, is a failure: a [StatusError];
//   - any other status is nil, a 4xx too: the server is well and has answered;
//   - an error of the base transport, on the client's side, is that error.
package httpx

import (
	"net/http"

	"github.com/switchgear-go/switchgear/policy"
)

// Transport is an [http.RoundTripper] that runs each request under a policy, such as a [policy.Pipeline] with a timeout, a
// retry and a breaker. Its zero value is [http.DefaultTransport]. It is safe for concurrent use; do not change its fields
// once it is in use.
//
// Callers get what they know from net/http. Where the policies end on a response that they took for a failure, the last of
// the attempts, that response comes back with a nil error and its body unread. Where they end on an error that does not hold
// such a response, the error comes back: that of the base transport, a timeout, or a refusal such as that of an open circuit
// (see [policy.ErrRejected]).
//
// A request is sent again, or a second time beside a slow one, only if that is safe: its method is GET, HEAD, OPTIONS,
// TRACE, PUT or DELETE, or it has an Idempotency-Key (or X-Idempotency-Key) header, or [WithReplay] says so; and its body,
// if any, comes from GetBody, as [http.NewRequest] arranges for buffers and strings. To a retry, the failure of any other
// request is final, and so is what no further attempt can mend: status 501, a certificate that does not verify, too many
// redirects, a URL or a header that cannot be sent, an error of GetBody. A policy that still runs such a request again gets
// a [policy.RejectedError] for [ErrNotReplayable].
//
// Policies end when the header of the response has come: until then a send lives as long as the context that the policies
// give it, from then on as long as the request's own. So a timeout does not limit, and a bulkhead does not count, the
// reading of a body. Responses that a later attempt replaces are drained when that begins, up to 64 KiB and 100 ms, so that
// their connections can be used again, and closed.
//
// A [policy.FallbackValue] of *http.Response supplies the response to return.
type Transport struct {
	// Base sends the requests. If nil, http.DefaultTransport.
	Base http.RoundTripper

	// Policy runs each request. If nil, and For is or returns nil, requests go straight to Base.
	Policy policy.Policy

	// For returns the policy of a request, such as one of its host from a [policy.Group]. It must not change the request.
	// If nil, or where it returns nil, Policy is used.
	For func(*http.Request) policy.Policy
}

// RoundTrip sends a request under its policy. It does not change the request, apart from reading and closing its body.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	p := t.policyOf(req)
	if p == nil {
		return t.base().RoundTrip(req)
	}
	r := &roundTrip{base: t.base(), req: req, replayable: replayable(req)}
	return r.run(p)
}

// CloseIdleConnections closes the idle connections of Base, if it has a method for that.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base != nil {
		return t.Base
	}
	return http.DefaultTransport
}

func (t *Transport) policyOf(req *http.Request) policy.Policy {
	if t.For != nil {
		if p := t.For(req); p != nil {
			return p
		}
	}
	return t.Policy
}
