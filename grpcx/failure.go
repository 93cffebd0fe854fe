package grpcx

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// failure is what policies see of a call that failed. To those who look for a [backoff.PermanentError] it is one as long as
// the policies run, if no other send may follow: to a retry of the caller's own, further out, it must not be.
type failure struct {
	err    error // as it came
	status *status.Status
	plain  bool          // err has no status of its own
	wait   time.Duration // that the server asks for; 0: none
	stop   bool          // the server asks not to be tried again
	final  bool
	sends  *sends // that it is one of
	of     any    // the send itself: an *answer or a *streamSend; nil for a handler
}

func (f *failure) Error() string              { return f.err.Error() }
func (f *failure) Unwrap() error              { return f.err }
func (f *failure) GRPCStatus() *status.Status { return f.status }
func (f *failure) RetryAfter() time.Duration  { return f.wait }

// asCame returns the error as it came, with a status if it came without.
func (f *failure) asCame() error {
	if f.plain {
		return &statusError{f.err, f.status}
	}
	return f.err
}

// Is makes the codes of contexts match the errors of contexts.
func (f *failure) Is(target error) bool {
	switch f.status.Code() {
	case codes.DeadlineExceeded:
		return target == context.DeadlineExceeded
	case codes.Canceled:
		return target == context.Canceled
	}
	return false
}

// As makes a permanent error of a final failure for those who ask for one.
func (f *failure) As(target any) bool {
	p, ok := target.(**backoff.PermanentError)
	if !ok || !f.final || f.sends.over.Load() {
		return false
	}
	*p = &backoff.PermanentError{Err: f.err}
	return true
}

// judge returns the failure in err, or nil where the policies are to see none. ctx is what the policies gave.
func judge(ctx context.Context, err error, trailer metadata.MD) *failure {
	if err == nil {
		return nil
	}
	st, own := statusOf(err)
	code := st.Code()
	if !failed(code) && (code != codes.Canceled || ctx.Err() == nil) {
		return nil
	}
	f := &failure{err: err, status: st, plain: !own}
	f.wait, f.stop = hintOf(st, trailer)
	return f
}

// early is how long before a client's clock a server may find that the client's deadline has passed.
const early = 10 * time.Millisecond

// awaitDeadline waits for a deadline that is about to pass, if a server says that it has: it was told the deadline and may be
// first to see it pass. But whose timeout that is, the contexts here have to tell.
func awaitDeadline(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil || status.Code(err) != codes.DeadlineExceeded {
		return
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= early {
		<-ctx.Done()
	}
}

// hintOf returns the wait that a server asks for before another try, 0 if it does not, and whether it asks for none at all:
// that is the meaning of a pushback that is negative or cannot be read.
func hintOf(st *status.Status, trailer metadata.MD) (wait time.Duration, stop bool) {
	if pushback := trailer.Get("grpc-retry-pushback-ms"); len(pushback) > 0 {
		ms, err := strconv.ParseInt(pushback[0], 10, 64)
		if err != nil || ms < 0 || len(pushback) > 1 {
			return 0, true
		}
		if ms > int64(math.MaxInt64/time.Millisecond) {
			return math.MaxInt64, false
		}
		return time.Duration(ms) * time.Millisecond, false
	}
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return max(0, info.GetRetryDelay().AsDuration()), false
		}
	}
	return 0, false
}
