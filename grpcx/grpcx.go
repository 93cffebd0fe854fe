// Package grpcx puts policies around gRPC calls: those of a client, unary and streaming, and those that a server handles.
//
//	conn, err := grpc.NewClient(target,
//		grpc.WithUnaryInterceptor(grpcx.UnaryClientInterceptor(pipeline)),
//		grpc.WithStreamInterceptor(grpcx.StreamClientInterceptor(pipeline)))
//
// Policies see these results, on either side:
//
//   - the codes Unavailable, DeadlineExceeded, Internal, Unknown, DataLoss and ResourceExhausted are failures: an error that
//     [status.FromError] reads;
//   - any other code is nil, a Canceled of the server's own too: the server is well and has answered;
//   - where the context that the policies gave has ended, Canceled and DeadlineExceeded are errors, of which that context
//     tells whose they are.
//
// What a caller gets is always a status. [errors.Is] and [errors.As] find in it what the policies returned.
//
//   - An answer that the policies let pass comes back as it came.
//   - A refusal ([policy.ErrRejected]) is ResourceExhausted if it is a bulkhead's or a rate limiter's, else Unavailable. It
//     has a RetryInfo that tells when to come back, if the refusal knows.
//   - A [policy.Timeout] that ended is DeadlineExceeded.
//   - Where the caller's own context has ended, its code stands before all others.
package grpcx

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/switchgear-go/switchgear/policy"
)

// failed reports whether policies see a failure in a code.
func failed(code codes.Code) bool {
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Unknown, codes.DataLoss, codes.ResourceExhausted:
		return true
	}
	return false
}

// unserved reports whether a failure's code says that the server has not begun to serve the call.
func unserved(code codes.Code) bool {
	return code == codes.Unavailable || code == codes.ResourceExhausted
}

// statusOf returns the status of an error, and whether it has one of its own. The errors of contexts have a code without.
func statusOf(err error) (st *status.Status, own bool) {
	if st, ok := status.FromError(err); ok {
		return st, true
	}
	return status.FromContextError(err), false
}

func checkPolicy(interceptor string, p policy.Policy) {
	if p == nil {
		panic("grpcx: " + interceptor + " with a nil policy")
	}
}
