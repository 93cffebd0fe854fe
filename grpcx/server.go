package grpcx

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/switchgear-go/switchgear/policy"
)

// UnaryServerInterceptor returns an interceptor that runs the handler of each unary call under p: a bulkhead or a rate
// limiter that keeps a server within its capacity, a timeout, a breaker around what a handler depends on. It panics if p is
// nil.
//
// The handler runs once at most; a policy that runs it again gets a refusal for [ErrNotReplayable]. The status that it gives
// is what the client gets, whatever the policies make of it. Where it gives none, and for a refusal, the client gets a status
// as the package says; a refusal's tells who refused and why, and nothing of what failed behind that. Any other error of a
// policy is what gRPC makes of it: Unknown.
//
// Timeouts are cooperative: the handler has to heed its context. A [policy.FallbackValue] of any supplies the reply.
func UnaryServerInterceptor(p policy.Policy) grpc.UnaryServerInterceptor {
	checkPolicy("UnaryServerInterceptor", p)
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		s := serving{sends: sends{replay: never}}
		value, err := policy.Get(ctx, p, func(ctx context.Context) (any, error) {
			return nil, s.run(ctx, func() (any, error) { return handler(ctx, req) })
		})
		reply, own, ran := s.result()
		switch {
		case err != nil:
			return reply, serverError(ctx, err, own)
		case value != nil: // a fallback's
			return value, nil
		case !ran:
			return nil, errNoReply
		}
		return reply, own
	}
}

var errNoReply = status.Error(codes.Internal, "grpcx: the policy returned neither a reply nor an error")

// StreamServerInterceptor returns an interceptor that runs the handler of each stream under p, as one call from its beginning
// to its end. The rules are those of [UnaryServerInterceptor]; it panics if p is nil. The stream's Context is that of the
// policies. A handler that waits in RecvMsg or SendMsg learns of the end of its own client's context only: it has to look at
// the stream's Context for that of a timeout.
func StreamServerInterceptor(p policy.Policy) grpc.StreamServerInterceptor {
	checkPolicy("StreamServerInterceptor", p)
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		s := serving{sends: sends{replay: never}}
		ctx := stream.Context()
		err := p.Do(ctx, func(ctx context.Context) error {
			return s.run(ctx, func() (any, error) { return nil, handler(srv, &serverStream{stream, ctx}) })
		})
		_, own, _ := s.result()
		if err != nil {
			return serverError(ctx, err, own)
		}
		return own
	}
}

// serving is one call of a server under its policies.
type serving struct {
	sends sends

	mu    sync.Mutex
	ran   bool  // guarded by mu: the handler has returned
	reply any   // guarded by mu: its reply
	err   error // guarded by mu: its error
}

// run runs the handler, unless it has run, and returns how policies see it.
func (s *serving) run(ctx context.Context, handler func() (any, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.sends.begin(); err != nil {
		return err
	}
	var f *failure
	defer func() { s.sends.end(f) }()
	reply, err := handler()
	s.mu.Lock()
	s.ran, s.reply, s.err = true, reply, err
	s.mu.Unlock()
	if f = s.sends.failure(ctx, err, nil, nil); f != nil {
		return f
	}
	return nil
}

// result is for when the policies have returned. It returns what the handler did, and whether it has.
func (s *serving) result() (reply any, err error, ran bool) {
	s.sends.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reply, s.err, s.ran
}

// serverStream is a stream with the context of the policies.
type serverStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *serverStream) Context() context.Context { return s.ctx }
