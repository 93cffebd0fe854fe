package retry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cenkalti/backoff/v4"

	"github.com/switchgear-go/switchgear/internal/errtree"
	"github.com/switchgear-go/switchgear/policy"
)

// ExhaustedError says that a [Retry] gave up on a failure that it might have retried. It holds why, and the last real
// failure: both are in its tree.
type ExhaustedError struct {
	Attempts int   // made
	Reason   error // one of the reasons below, or the refusal or cancellation that ended it
	Last     error // what the last attempt that really failed returned; a refusal only if there was nothing else

	nested bool // by a retry that works inside others, so that those may go on
}

// The reasons for giving up. [ErrDeadline] does not match [context.DeadlineExceeded]: the deadline has not passed yet.
var (
	ErrAttemptsExhausted error = errtree.Reason("retry: attempts exhausted")
	ErrElapsed           error = errtree.Reason("retry: the wait would exceed MaxElapsed")
	ErrDeadline          error = errtree.Reason("retry: the wait would exceed the context's deadline")
	ErrBudgetExhausted   error = errtree.Reason("retry: budget exhausted")
	ErrRetryAfter        error = errtree.Reason("retry: asked to wait longer than MaxRetryAfter")
	ErrStopped           error = errtree.Reason("retry: stopped by the backoff")
)

// Error tells how often the call was tried, why no more, and the last failure.
func (e *ExhaustedError) Error() string {
	text := fmt.Sprintf("retry: gave up after %d attempts", e.Attempts)
	if e.Attempts == 1 {
		text = "retry: gave up after 1 attempt"
	}
	if e.Reason != nil {
		text += " (" + strings.TrimPrefix(e.Reason.Error(), "retry: ") + ")"
	}
	if e.Last != nil {
		text += ": " + e.Last.Error()
	}
	return text
}

// Unwrap returns the Reason and the Last error.
func (e *ExhaustedError) Unwrap() []error {
	tree := make([]error, 0, 2)
	if e.Reason != nil {
		tree = append(tree, e.Reason)
	}
	if e.Last != nil {
		tree = append(tree, e.Last)
	}
	return tree
}

// Timeout reports whether the last failure was a timeout, as a net.Error's does.
func (e *ExhaustedError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.Last, &t) && t.Timeout()
}

// ErrorType returns exhausted, the value of error.type in telemetry.
func (e *ExhaustedError) ErrorType() string { return "exhausted" }

// DefaultRetryable reports whether err is a failure that another attempt may mend. It is not if
//
//   - ctx, the call's own, is done: nobody waits for another attempt;
//   - a policy refused the call ([policy.ErrRejected]): asking an open circuit again at once only adds load;
//   - it is an answer marked [policy.Healthy], or an error marked [backoff.Permanent];
//   - a retry further in has given up already, unless that one is Nested.
//
// Everything else is, a timeout of an attempt among it.
func DefaultRetryable(ctx context.Context, err error) bool {
	return err != nil &&
		ctx.Err() == nil &&
		!errors.Is(err, policy.ErrRejected) &&
		errtree.Sort(err) != errtree.Healthy &&
		!isPermanent(err) &&
		!isFinal(err)
}

func isPermanent(err error) bool {
	var p *backoff.PermanentError
	return errors.As(err, &p)
}

// stripped returns err without its mark as permanent. A mark further in stays: what wraps it would be lost.
func stripped(err error) error {
	if p, ok := err.(*backoff.PermanentError); ok && p.Err != nil { //nolint:errorlint // only the outermost
		return p.Err
	}
	return err
}

// isFinal reports whether a retry further in gave up.
func isFinal(err error) bool {
	_, final := errtree.Find(err, func(e *ExhaustedError) bool { return !e.nested })
	return final
}
