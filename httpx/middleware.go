package httpx

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchgear-go/switchgear/internal/errtree"
	"github.com/switchgear-go/switchgear/policy"
)

// Middleware returns what puts a policy around each request of a handler: a bulkhead or a rate limiter that keeps a server
// within its capacity, a timeout, a breaker around what an endpoint depends on. It panics if p is nil.
//
// The policy judges the handler by its response: a status of 5xx is a failure ([StatusError]), any other is none, 429
// included. A client that goes away makes the result say nothing. The handler runs once at most; a policy that repeats it
// gets a refusal for [ErrNotReplayable].
//
// Where the policy ends on an error and nothing has been written, Middleware answers:
//
//   - 429 for the refusal of a rate limiter, 503 for any other; with Retry-After, in whole seconds rounded up, if the refusal
//     knows when to come back;
//   - 503 where a [policy.Timeout] or a deadline has passed. Timeouts are cooperative: the handler has to heed its request's
//     context, and what it has begun to write it finishes;
//   - 499, which nobody reads, where the client has gone;
//   - 500 else.
//
// A panic of the handler passes. That with [http.ErrAbortHandler] passes the policy as that error, so that an abort since the
// client has gone counts for nothing, and is raised again behind it.
//
// The handler's ResponseWriter can flush, hijack and be used with an [http.ResponseController] like the server's own.
func Middleware(p policy.Policy) func(http.Handler) http.Handler {
	if p == nil {
		panic("httpx: Middleware with a nil policy")
	}
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("httpx: Middleware around a nil handler")
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s := &serving{next: next, request: r, writer: writer{ResponseWriter: w}}
			s.running.Add(1)
			s.answer(p.Do(r.Context(), s.run))
		})
	}
}

// serving is one request under a policy.
type serving struct {
	next    http.Handler
	request *http.Request
	writer  writer
	begun   atomic.Bool    // the handler has, or must not any more
	running sync.WaitGroup // done when the handler is
	aborted bool           // by http.ErrAbortHandler
}

// ran is for marks of handlers: those have run, for good.
var ran marks

// run runs the handler and returns how it went.
func (s *serving) run(ctx context.Context) error {
	if !s.begun.CompareAndSwap(false, true) {
		return policy.Rejection("http", "", ErrNotReplayable, time.Time{}, nil)
	}
	defer s.running.Done()
	s.handle(s.request.WithContext(ctx))
	if err := s.result(ctx); err != nil {
		return &final{err, &ran}
	}
	return nil
}

// handle calls the handler.
func (s *serving) handle(r *http.Request) {
	defer func() {
		// The server removes the files of the form from its own request, and what stands around reads the pattern from there.
		s.request.MultipartForm, s.request.Pattern = r.MultipartForm, r.Pattern
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			s.aborted = true
		default:
			panic(v)
		}
	}()
	s.next.ServeHTTP(s.writer.flushing(), r)
}

// result returns what the policy is told of a handler that has returned.
func (s *serving) result(ctx context.Context) error {
	switch {
	case s.aborted:
		return http.ErrAbortHandler
	case s.writer.status >= 500:
		return &StatusError{StatusCode: s.writer.status, Header: s.writer.Header()}
	case s.clientGone():
		return context.Canceled
	case s.writer.status == 0 && ctx.Err() != nil:
		return endOf(ctx)
	}
	return nil
}

// answer ends a request for which the policy has returned err.
func (s *serving) answer(err error) {
	ran := !s.begun.CompareAndSwap(false, true)
	if ran {
		s.running.Wait() // should a policy have left it behind: the server takes its writer away
	}
	if s.aborted {
		panic(http.ErrAbortHandler)
	}
	if s.writer.status != 0 || ran && err == nil {
		return
	}
	status := s.statusOf(err)
	if wait, ok := policy.RetryAfter(err); ok && errtree.Sort(err) == errtree.Refusal {
		s.writer.Header().Set("Retry-After", strconv.FormatInt(seconds(wait), 10))
	}
	http.Error(s.writer.ResponseWriter, textOf(status), status)
}

const statusClientGone = 499 // as nginx has it

func (s *serving) statusOf(err error) int {
	var refusal *policy.RejectedError
	switch {
	case errtree.Sort(err) == errtree.Refusal:
		if errors.As(err, &refusal) && refusal.Policy == "rate_limiter" {
			return http.StatusTooManyRequests
		}
		return http.StatusServiceUnavailable
	case s.clientGone():
		return statusClientGone
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// clientGone reports whether whoever asked has left: the server cancels the request's context then.
func (s *serving) clientGone() bool {
	return s.request.Context().Err() == context.Canceled
}

func textOf(status int) string {
	if status == statusClientGone {
		return "Client Closed Request"
	}
	return http.StatusText(status)
}

// seconds returns d in whole seconds, rounded up.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}
