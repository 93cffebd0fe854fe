package grpcx

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/switchgear-go/switchgear/policy"
)

// ErrNotReplayable is the Reason of the refusal, a [policy.RejectedError] of the policy "grpc", that a policy gets when it
// runs a call again that must not be sent again, or a handler that has run.
var ErrNotReplayable = errors.New("grpcx: must not run a second time")

var errOver = errors.New("grpcx: the policy ran its function after it had returned")

func errNotReplayable() error {
	return policy.Rejection("grpc", "", ErrNotReplayable, time.Time{}, nil)
}

type replayKey struct{}

// WithReplay returns a context whose calls may be sent again after any failure, and a second time beside a slow one, if allow
// is true: they are idempotent. If it is false, they are sent once. Without it a call is repeated only after the codes
// Unavailable and ResourceExhausted, which a server gives for what it has not begun.
//
// A stream has limits of its own; see [StreamClientInterceptor].
func WithReplay(ctx context.Context, allow bool) context.Context {
	return context.WithValue(ctx, replayKey{}, allow)
}

// replay says how much may be repeated.
type replay int8

const (
	afterUnserved replay = iota
	always
	never
)

func replayOf(ctx context.Context) replay {
	switch allow, set := ctx.Value(replayKey{}).(bool); {
	case !set:
		return afterUnserved
	case allow:
		return always
	}
	return never
}

// sends keeps track of the sends of one call: the policies decide when there is another one, and this whether it may be.
type sends struct {
	replay   replay
	overlaps bool        // a replayable one may run beside others
	over     atomic.Bool // the policies have returned; written under mu

	mu      sync.Mutex
	begun   bool     // guarded by mu
	running int      // guarded by mu
	stopped bool     // guarded by mu: one ended after which there must be no other
	last    *failure // guarded by mu: the newest
}

// begin admits a send, or returns what the policies get in its place.
func (s *sends) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over.Load() {
		return errOver
	}
	beside := s.running > 0 && (s.replay != always || !s.overlaps)
	if s.begun && (s.stopped || beside) {
		return errNotReplayable()
	}
	s.begun = true
	s.running++
	return nil
}

// failure makes a failure of a send's own error, or returns nil where the policies are to see none. ctx is what they gave,
// of the send.
func (s *sends) failure(ctx context.Context, err error, trailer metadata.MD, of any) *failure {
	f := judge(ctx, err, trailer)
	if f != nil {
		f.sends, f.of = s, of
		f.final = f.stop || s.replay == never || s.replay == afterUnserved && !unserved(f.status.Code())
	}
	return f
}

// end ends a send: with a failure, or, if that is nil, with an answer or a panic.
func (s *sends) end(f *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if f != nil {
		s.last = f
	}
	if f != nil && f.final || f == nil && s.replay != always {
		s.stopped = true
	}
}

// close is for when the policies have returned: no send begins any more.
func (s *sends) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over.Store(true)
}

// newest returns the failure of the send that has failed last, or nil.
func (s *sends) newest() *failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// toldIn returns the first failure of these sends in err's tree, or nil.
func (s *sends) toldIn(err error) *failure {
	f, ok := err.(*failure) //nolint:errorlint // it walks the tree itself
	if ok && f.sends == s {
		return f
	}
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case interface{ Unwrap() error }:
		return s.toldIn(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if f := s.toldIn(inner); f != nil {
				return f
			}
		}
	}
	return nil
}
