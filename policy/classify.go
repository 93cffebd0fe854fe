package policy

import (
	"context"

	"github.com/switchgear-go/switchgear/internal/errtree"
)

// Outcome is what the result of a call says about the health of the dependency that was called.
type Outcome int8

// The outcomes. Ignored counts neither for nor against the dependency.
const (
	Success Outcome = iota
	Failure
	Ignored
)

// String returns "success", "failure" or "ignored".
func (o Outcome) String() string {
	switch o {
	case Success:
		return "success"
	case Failure:
		return "failure"
	case Ignored:
		return "ignored"
	}
	return "unknown"
}

// Classify is how policies judge the error of a call by default. ctx is the context that the policy was called with, not
// the one that it gave to fn. The first rule that applies decides:
//
//   - nil, and an error marked with [Healthy], is a [Success];
//   - any error is [Ignored] if the caller has cancelled (ctx.Err() is [context.Canceled]);
//   - a refusal by a policy ([ErrRejected]) is Ignored, since the dependency was not called;
//   - any other error is a [Failure]: also a timeout, the caller's deadline, and a [context.Canceled] although ctx was not
//     cancelled.
//
// An error that joins a refusal and a failure, such as that of a retry that met an open circuit, is a Failure.
func Classify(ctx context.Context, err error) Outcome {
	if err == nil {
		return Success
	}
	kind := errtree.Sort(err)
	switch {
	case kind == errtree.Healthy:
		return Success
	case ctx.Err() == context.Canceled:
		return Ignored
	case kind == errtree.Refusal:
		return Ignored
	}
	return Failure
}

// Healthy marks err as the answer of a healthy dependency, such as "no such row" or "insufficient funds". A breaker counts it
// as a [Success], a retry does not repeat it, and a fallback does not replace it. The mark keeps the text of err and unwraps
// to it, for errors.Is and errors.As. Healthy(nil) is nil.
func Healthy(err error) error {
	if err == nil {
		return nil
	}
	return &errtree.Mark{Err: err}
}
