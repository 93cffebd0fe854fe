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

// ExhaustedError is returned by a [Retry] that gave up on a call although its failure was retryable. errors.Is and errors.As
// find both the reason for giving up and the last failure.
type ExhaustedError struct {
	Attempts int   // attempts made
	Reason   error // why it gave up: one of the errors below, or the refusal or the context's error that ended the call
	Last     error // the last failure of an attempt; a refusal only if no attempt failed otherwise

	nested bool // the retry is Config.Nested: a retry around it may try again
}

// The reasons for giving up. [ErrDeadline] does not match [context.DeadlineExceeded], since the deadline has not passed yet.
var (
	ErrAttemptsExhausted error = errtree.Reason("retry: attempts exhausted")
	ErrElapsed           error = errtree.Reason("retry: the wait would exceed MaxElapsed")
	ErrDeadline          error = errtree.Reason("retry: the wait would exceed the context's deadline")
	ErrBudgetExhausted   error = errtree.Reason("retry: budget exhausted")
	ErrRetryAfter        error = errtree.Reason("retry: asked to wait longer than MaxRetryAfter")
	ErrStopped           error = errtree.Reason("retry: stopped by the backoff")
)

// Error says how many attempts were made, why there were no more, and what the last failure was.
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

// Timeout reports whether Last is a timeout: whether it has a Timeout method, as a [net.Error] has, that returns true.
func (e *ExhaustedError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.Last, &t) && t.Timeout()
}

// ErrorType returns "exhausted", the value of the attribute error.type in telemetry.
func (e *ExhaustedError) ErrorType() string { return "exhausted" }

// DefaultRetryable is the default of Config.Retryable. It returns true for every error, the timeout of an attempt included,
// unless
//
//   - ctx, the call's own, is done: nobody waits for another attempt;
//   - a policy refused the call ([policy.ErrRejected]): an open circuit or a full bulkhead is not asked again at once;
//   - the error is marked with [policy.Healthy] or [backoff.Permanent];
//   - an inner retry has given up already, unless its Config.Nested is set.
//
// It returns false for nil.
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

// stripped returns err without the mark of backoff.Permanent. It only removes an outermost mark: to remove one that is
// wrapped would lose what wraps it.
func stripped(err error) error {
	if p, ok := err.(*backoff.PermanentError); ok && p.Err != nil { //nolint:errorlint // only the outermost
		return p.Err
	}
	return err
}

// isFinal reports whether err is from an inner retry that gave up and is not nested.
func isFinal(err error) bool {
	_, final := errtree.Find(err, func(e *ExhaustedError) bool { return !e.nested })
	return final
}
