package policy

import (
	"time"

	"github.com/switchgear-go/switchgear/internal/errtree"
)

// ErrRejected is what every refusal by a policy matches, with errors.Is: the policy did not run the call.
var ErrRejected = errtree.ErrRejected

// RejectedError is the refusal of a call by a policy. It matches [ErrRejected] and its Reason. The same value may be returned
// for many calls, so it must not be changed.
type RejectedError struct {
	Policy  string    // the type of the policy: circuit_breaker, bulkhead, rate_limiter
	Name    string    // the name of the policy
	Reason  error     // such as breaker.ErrCircuitOpen
	RetryAt time.Time // when it makes sense to try again; zero if that is not known
	Why     string    // more about the reason, such as failure_ratio for what opened a breaker
	Cause   error     // the failure that led to it; part of the text, but errors.Is and errors.As do not find it

	clock func() time.Time
}

// Rejection returns a refusal by the policy of that type and name, for authors of policies. retryAt is zero if it is not
// known. clock is what the error's RetryAfter method reads; if nil, [time.Now].
func Rejection(policy, name string, reason error, retryAt time.Time, clock func() time.Time) *RejectedError {
	return &RejectedError{Policy: policy, Name: name, Reason: reason, RetryAt: retryAt, clock: clock}
}

// Error says which policy refused, and why.
func (e *RejectedError) Error() string {
	who := e.Policy
	if e.Name != "" {
		who += " " + e.Name
	}
	reason := e.Reason
	if reason == nil {
		reason = ErrRejected
	}
	text := who + ": " + reason.Error()
	switch {
	case e.Why != "" && e.Cause != nil:
		text += " (" + e.Why + ": " + e.Cause.Error() + ")"
	case e.Why != "":
		text += " (" + e.Why + ")"
	case e.Cause != nil:
		text += " (" + e.Cause.Error() + ")"
	}
	return text
}

// Is reports whether target is [ErrRejected].
func (e *RejectedError) Is(target error) bool { return target == ErrRejected }

// Unwrap returns the Reason.
func (e *RejectedError) Unwrap() error { return e.Reason }

// RetryAfter returns the time from now until RetryAt; 0 if RetryAt is zero or has passed.
func (e *RejectedError) RetryAfter() time.Duration {
	if e.RetryAt.IsZero() {
		return 0
	}
	if e.clock == nil {
		return max(0, time.Until(e.RetryAt))
	}
	return max(0, e.RetryAt.Sub(e.clock()))
}

// ErrorType returns "rejected", the value of the attribute error.type in telemetry.
func (e *RejectedError) ErrorType() string { return "rejected" }

// RetryAfter returns how long to wait before trying again, and whether err says so. It is the first result above 0 of a
// method RetryAfter() time.Duration of an error in err's tree.
func RetryAfter(err error) (time.Duration, bool) {
	var wait time.Duration
	_, ok := errtree.Find(err, func(e retryAfterer) bool {
		wait = e.RetryAfter()
		return wait > 0
	})
	if !ok {
		return 0, false
	}
	return wait, true
}

type retryAfterer interface {
	error
	RetryAfter() time.Duration
}
