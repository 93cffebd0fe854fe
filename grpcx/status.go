package grpcx

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/switchgear-go/switchgear/policy"
)

// statusError is an error of the policies' with a status for gRPC.
type statusError struct {
	err    error
	status *status.Status
}

func (e *statusError) Error() string              { return e.err.Error() }
func (e *statusError) Unwrap() error              { return e.err }
func (e *statusError) GRPCStatus() *status.Status { return e.status }

// statused is what has a status.
type statused interface{ GRPCStatus() *status.Status }

// clientError turns an error of the policies' into that of a client's call, and returns the failure of a send that it tells,
// if it does. ctx is the caller's.
func clientError(ctx context.Context, err error, sends *sends) (told *failure, _ error) {
	told = sends.toldIn(err)
	if ended := ctx.Err(); ended != nil {
		code := status.FromContextError(ended).Code()
		if f, ok := err.(*failure); ok && f.status.Code() == code { //nolint:errorlint // only if nobody added to it
			return told, f.asCame()
		}
		return told, &statusError{err, status.New(code, err.Error())}
	}
	switch e := err.(type) { //nolint:errorlint // what is in the tree is looked for below
	case *failure:
		return told, e.asCame()
	case statused:
		return told, err
	}
	if refused(err) {
		last := sends.newest()
		if last == nil {
			return nil, &statusError{err, refusal(err, err.Error())}
		}
		err, told = errors.Join(err, last), last // another try was refused: what is known is how the last one went
	}
	st := statusIn(err, true)
	if st == nil {
		st = status.FromContextError(err)
	}
	return told, &statusError{err, withMessage(st, err.Error())}
}

// serverError turns an error of the policies' into that of a server's call. A status that the handler, or a policy of the
// user's, has given stays. ctx is that of the call, own what the handler returned.
func serverError(ctx context.Context, err, own error) error {
	if f, ok := err.(*failure); ok && (!f.plain || ctx.Err() == nil) { //nolint:errorlint // only if nobody added to it
		return f.err
	}
	st := statusIn(err, false)
	if st == nil && own != nil {
		if given, ok := status.FromError(own); ok {
			st, err = given, errors.Join(err, own)
		}
	}
	switch {
	case st != nil:
	case ctx.Err() != nil:
		st = status.New(status.FromContextError(ctx.Err()).Code(), err.Error())
	case refused(err): // the client learns who refused and why, but not what failed behind that
		st = refusal(err, refusalText(err))
	case errors.Is(err, policy.ErrTimeout):
		st = status.New(codes.DeadlineExceeded, err.Error())
	default:
		return err
	}
	return &statusError{err, st}
}

// refused reports whether err tells of refusals only.
func refused(err error) bool {
	return errors.Is(err, policy.ErrRejected) && policy.Classify(context.Background(), err) == policy.Ignored
}

// refusal returns the status of a refusal.
func refusal(err error, text string) *status.Status {
	code := codes.Unavailable
	var r *policy.RejectedError
	if errors.As(err, &r) && (r.Policy == "bulkhead" || r.Policy == "rate_limiter") {
		code = codes.ResourceExhausted
	}
	st := status.New(code, text)
	if wait, ok := policy.RetryAfter(err); ok {
		if with, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)}); err == nil {
			return with
		}
	}
	return st
}

func refusalText(err error) string {
	var r *policy.RejectedError
	if !errors.As(err, &r) || r.Reason == nil {
		return policy.ErrRejected.Error()
	}
	return r.Policy + ": " + r.Reason.Error()
}

// statusIn returns the first status in err's tree, outermost first, or nil. Where timeouts decide, one stands for what was
// cut short by it. Refusals, which stand in a tree beside what failed, have none.
func statusIn(err error, timeouts bool) *status.Status {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case nil:
		return nil
	case *policy.TimeoutError:
		if timeouts {
			return status.New(codes.DeadlineExceeded, "")
		}
	case *failure:
		if e.plain {
			return nil
		}
		return e.status
	case statused:
		return e.GRPCStatus()
	}
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case interface{ Unwrap() error }:
		return statusIn(e.Unwrap(), timeouts)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if st := statusIn(inner, timeouts); st != nil {
				return st
			}
		}
	}
	return nil
}

// withMessage returns st with another message.
func withMessage(st *status.Status, text string) *status.Status {
	p := st.Proto() // a copy
	p.Message = text
	return status.FromProto(p)
}
