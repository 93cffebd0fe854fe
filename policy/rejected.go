package policy

import (
	"time"

	"github.com/switchgear-go/switchgear/internal/errtree"
)

// ErrRejected is matched by every refusal of a policy: the call did not run because a policy kept it from running.
var ErrRejected = errtree.ErrRejected

// RejectedError is a refusal. It matches [ErrRejected] and its Reason. One value may serve many calls: do not change it.
type RejectedError struct {
	Policy  string    // the refusing policy's type: circuit_breaker, bulkhead, rate_limiter
	Name    string    // its name
	Reason  error     // which refusal, such as breaker.ErrCircuitOpen
	RetryAt time.Time // when asking again makes sense; zero if nobody knows
	Why     string    // what brought the policy to refuse: failure_ratio, say
	Cause   error     // the failure that did; told in Error, but not part of the tree

	clock func() time.Time
}

// Rejection returns a refusal by the policy of that type and name. clock is what RetryAfter measures by; if nil, [time.Now].
func Rejection(policy, name string, reason error, retryAt time.Time, clock func() time.Time) *RejectedError {
	return &RejectedError{Policy: policy, Name: name, Reason: reason, RetryAt: retryAt, clock: clock}
}

// Error tells who refused and why.
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

// RetryAfter returns how long from now RetryAt is; 0 if it is unknown or has passed.
func (e *RejectedError) RetryAfter() time.Duration {
	if e.RetryAt.IsZero() {
		return 0
	}
	if e.clock == nil {
		return max(0, time.Until(e.RetryAt))
	}
	return max(0, e.RetryAt.Sub(e.clock()))
}

// ErrorType returns rejected, the value of error.type in telemetry.
func (e *RejectedError) ErrorType() string { return "rejected" }

// RetryAfter returns the first wait above 0 that an error in err's tree asks for through a method
// RetryAfter() time.Duration, and whether there is one.
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
