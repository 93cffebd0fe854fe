package policy

import (
	"context"

	"github.com/switchgear-go/switchgear/internal/errtree"
)

// Outcome is what a result says about the health of what was called.
type Outcome int8

// The outcomes. Ignored says nothing: it counts neither for nor against.
const (
	Success Outcome = iota
	Failure
	Ignored
)

// String returns success, failure or ignored.
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

// Classify is the default judge of results. ctx is the context the policy was called with, not the one it gave to fn.
//
//   - nil and errors marked [Healthy] are a Success;
//   - a caller who cancelled (ctx.Err() is [context.Canceled]) makes whatever fn returned Ignored;
//   - a refusal by a policy ([ErrRejected]) is Ignored, since the dependency was not asked;
//   - anything else is a Failure: a timeout, the caller's deadline, a Canceled that the caller did not ask for.
//
// An error that holds both a real failure and a refusal, such as that of a retry which ended on an open circuit, is a Failure.
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

// Healthy marks err as a healthy answer of the dependency: no such row, invalid input, insufficient funds. Breakers take it
// for a [Success], retries return it at once, fallbacks let it pass. errors.Is and errors.As see through the mark. Nil stays nil.
func Healthy(err error) error {
	if err == nil {
		return nil
	}
	return &errtree.Mark{Err: err}
}
