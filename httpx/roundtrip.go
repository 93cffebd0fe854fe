package httpx

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/switchgear-go/switchgear/internal/errtree"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

var (
	errNoResponse = errors.New("httpx: the policy returned no error and no open response")
	errNothing    = errors.New("httpx: Base returned neither a response nor an error")
	errOver       = errors.New("httpx: the policy ran its function after it had returned")
)

// roundTrip is one request under its policy. It keeps track of all that is sent, since attempts may overlap, begin after
// another one has won, and end after the policy has returned: of their responses one goes to the caller, and the others have
// to be closed.
type roundTrip struct {
	base       http.RoundTripper
	req        *http.Request // of the caller; never changed, and not read any more once over
	replayable bool

	mu     sync.Mutex
	begun  int              // guarded by mu: sends
	open   []*send          // guarded by mu: those whose response has come and was not closed, in the order of arrival
	stale  []*http.Response // guarded by mu: failed ones that a later send has replaced
	over   bool             // guarded by mu: the policy has returned
	marks  *marks           // guarded by mu: made when first needed
	first  send
	opened [1]*send // room for open
}

// run runs the request under p.
func (r *roundTrip) run(p policy.Policy) (*http.Response, error) {
	returned := false
	defer func() {
		if !returned {
			_, _ = r.settle(nil, observe.ErrPanicked) //nolint:bodyclose // there is none
		}
	}()
	resp, err := policy.Get(r.req.Context(), p, r.send)
	returned = true
	return r.settle(resp, err)
}

// send sends the request once, for the attempt that ctx belongs to. The response of a failure comes back beside it.
func (r *roundTrip) send(ctx context.Context) (*http.Response, error) {
	if ctx.Err() != nil {
		return nil, endOf(ctx) // it was overtaken before it began
	}
	s, err := r.begin(ctx)
	if err != nil {
		return nil, err
	}
	resp, err := s.do(r.base)
	if err != nil {
		return nil, r.mark(err, faultOf(s.req, err))
	}
	if resp.Request == nil || resp.Request.URL == s.req.URL { // HTTP/2 may name its own shallow copy
		resp.Request = r.req
	}
	if failed(resp.StatusCode) {
		s.failure = &StatusError{StatusCode: resp.StatusCode, Header: resp.Header, Response: resp}
	}
	if !r.arrived(s) {
		s.close()
		return nil, errOver
	}
	if s.failure != nil {
		return resp, r.mark(s.failure, resp.StatusCode == http.StatusNotImplemented)
	}
	return resp, nil
}

// begin prepares a send, unless the request must not be sent.
func (r *roundTrip) begin(ctx context.Context) (*send, error) {
	s, replaced, err := r.admit(ctx)
	if err != nil {
		return nil, err
	}
	for _, old := range replaced {
		old.drain(ctx)
	}
	if len(replaced) > 0 && ctx.Err() != nil {
		s.end()
		return nil, endOf(ctx)
	}
	if s != &r.first && hasBody(s.req) {
		if s.req.Body, err = s.req.GetBody(); err != nil {
			s.end()
			return nil, r.mark(err, true)
		}
	}
	return s, nil
}

// admit returns a new send, and the failed responses that it replaces. It copies the request under the lock: once over, the
// caller may change it.
func (r *roundTrip) admit(ctx context.Context) (s *send, replaced []*send, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.over:
		return nil, nil, errOver
	case r.begun > 0 && !r.replayable:
		return nil, nil, policy.Rejection("http", "", ErrNotReplayable, time.Time{}, nil)
	case r.begun == 0:
		s = &r.first
	default:
		s = new(send)
		r.open = slices.DeleteFunc(r.open, func(old *send) bool {
			if old.failure == nil {
				return false // it may have won
			}
			replaced = append(replaced, old)
			r.stale = append(r.stale, old.resp) //nolint:bodyclose // begin drains it
			return true
		})
	}
	r.begun++
	s.start(r.req, ctx)
	return s, replaced, nil
}

// arrived takes the response of a send into account; it reports false if the policy has returned already.
func (r *roundTrip) arrived(s *send) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return false
	}
	if r.open == nil {
		r.open = r.opened[:0]
	}
	r.open = append(r.open, s)
	return true
}

// settle ends the round trip: it turns what the policy returned into what RoundTrip returns, and closes all other responses.
func (r *roundTrip) settle(resp *http.Response, err error) (*http.Response, error) {
	r.mu.Lock()
	r.over = true
	if r.marks != nil {
		r.marks.over.Store(true)
	}
	unsent := r.begun == 0
	answer := r.answerLocked(resp, err)
	var own bool
	rest := slices.DeleteFunc(r.open, func(s *send) bool {
		own = own || s.resp == answer
		return s.resp == answer
	})
	r.open = nil
	r.mu.Unlock()
	closeAll(rest)
	if unsent && r.req.Body != nil {
		_ = r.req.Body.Close()
	}
	switch {
	case answer == nil && err == nil:
		return nil, errNoResponse
	case answer == nil:
		return nil, unmarked(err)
	case !own: // a fallback's
		if answer.Body == nil {
			answer.Body = http.NoBody
		}
		if answer.Request == nil {
			answer.Request = r.req
		}
	}
	return answer, nil
}

// answerLocked returns the response for the caller, or nil for err.
func (r *roundTrip) answerLocked(resp *http.Response, err error) *http.Response {
	if err == nil && resp != nil && !slices.Contains(r.stale, resp) {
		return resp
	}
	refused := errtree.Sort(err) == errtree.Refusal
	for _, s := range slices.Backward(r.open) {
		if err == nil || s.failure != nil && r.req.Context().Err() == nil && (refused || errors.Is(err, s.failure)) {
			return s.resp
		}
	}
	return nil
}
