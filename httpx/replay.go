package httpx

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/cenkalti/backoff/v4"

	"github.com/switchgear-go/switchgear/internal/errtree"
)

// ErrNotReplayable is the Reason of the refusal that a policy gets when it runs a request again that must be sent once only,
// or a handler that has run.
var ErrNotReplayable error = errtree.Reason("httpx: must not run a second time")

type replayKey struct{}

// WithReplay returns a context whose requests may, or may not, be sent again, whatever their method and headers say. A request
// with a body needs GetBody all the same.
func WithReplay(ctx context.Context, allow bool) context.Context {
	return context.WithValue(ctx, replayKey{}, allow)
}

// replayable reports whether a request may be sent more than once.
func replayable(req *http.Request) bool {
	if hasBody(req) && req.GetBody == nil {
		return false
	}
	if allow, ok := req.Context().Value(replayKey{}).(bool); ok {
		return allow
	}
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	_, key := req.Header["Idempotency-Key"] // present and without a value: meant for the transport alone, as in net/http
	_, xKey := req.Header["X-Idempotency-Key"]
	return key || xKey
}

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// marks is what the marks of one call have in common.
type marks struct{ over atomic.Bool }

// final marks an error that another attempt cannot mend, or must not try to. While the call runs it is a
// [backoff.PermanentError] to everyone who looks for one. Then the mark is gone, wherever in a tree the error stands: it must
// not stop a retry of the caller's own, further out.
type final struct {
	err   error
	marks *marks
}

func (f *final) Error() string { return f.err.Error() }
func (f *final) Unwrap() error { return f.err }

// As makes a permanent error of f for those who ask for one.
func (f *final) As(target any) bool {
	p, ok := target.(**backoff.PermanentError)
	if !ok || f.marks.over.Load() {
		return false
	}
	*p = &backoff.PermanentError{Err: f.err}
	return true
}

// unmarked returns err without a mark around it.
func unmarked(err error) error {
	if f, ok := err.(*final); ok { //nolint:errorlint // further in, it is part of what somebody else says
		return f.err
	}
	return err
}

// mark marks err as final if the fault is the request's own, or if the request must not be sent again.
func (r *roundTrip) mark(err error, fault bool) error {
	if r.replayable && !fault {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.marks == nil {
		r.marks = new(marks)
	}
	return &final{err, r.marks}
}
