// Package errtree reads trees of errors for the packages that judge them.
package errtree

import (
	"context"
	"errors"
	"slices"
)

// Kind is what a tree of errors counts as.
type Kind uint8

// The kinds. A tree has the highest kind of its leaves.
const (
	None    Kind = iota // nil
	Healthy             // a healthy answer, and nothing that failed
	Refusal             // refusals by policies, and nothing that failed
	Failed              // at least one real failure
)

// ErrRejected is policy.ErrRejected, which every refusal by a policy matches.
var ErrRejected error = Reason("call rejected")

// A Reason says why a policy gave up or refused. In a tree it stands beside the error that it is about, and does not change
// what the tree counts as.
type Reason string

func (r Reason) Error() string { return string(r) }

// Mark marks an error as a healthy answer.
type Mark struct{ Err error }

func (m *Mark) Error() string { return m.Err.Error() }
func (m *Mark) Unwrap() error { return m.Err }

// Sort returns the kind of err: Failed if any leaf of its tree is a real failure, else Refusal if one is a refusal, else
// Healthy. A tree of nothing but Reasons is Failed.
func Sort(err error) Kind {
	if err == nil {
		return None
	}
	if k := sort(err); k != None {
		return k
	}
	return Failed
}

// sort is Sort, but returns None for a tree of nothing but Reasons.
func sort(err error) Kind {
	switch err := err.(type) {
	case nil:
		return None
	case *Mark:
		return Healthy
	case Reason:
		if err == ErrRejected {
			return Refusal
		}
		return None
	}
	if is, ok := err.(interface{ Is(error) bool }); ok {
		if is.Is(ErrRejected) {
			return Refusal
		}
		if is.Is(context.DeadlineExceeded) {
			return Failed // a timeout is a failure, whatever fn returned when its context ended
		}
	}
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		if inner := err.Unwrap(); inner != nil {
			return sort(inner)
		}
	case interface{ Unwrap() []error }:
		kind := None
		for _, inner := range err.Unwrap() {
			kind = max(kind, sort(inner))
		}
		return kind
	}
	return Failed
}

// Find returns the first error in err's tree, outermost first, that match accepts.
func Find[T error](err error, match func(T) bool) (found T, ok bool) {
	if err == nil {
		return found, false
	}
	if t, is := err.(T); is && match(t) {
		return t, true
	}
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		return Find(err.Unwrap(), match)
	case interface{ Unwrap() []error }:
		for _, inner := range err.Unwrap() {
			if t, ok := Find(inner, match); ok {
				return t, true
			}
		}
	}
	return found, false
}

// Types are the values of the attribute error.type. It is a closed set, so that no error can add a series.
var Types = [...]string{"exhausted", "timeout", "rejected", "panic", "canceled", "429", "500", "502", "503", "504", "_OTHER"}

// Type returns the value of error.type for err: that of the outermost error with an ErrorType method, else timeout or
// canceled for the errors of contexts, else _OTHER.
func Type(err error) string {
	var typed interface{ ErrorType() string }
	switch {
	case errors.As(err, &typed):
		// Only a value of Types: an error may have a method that returns anything.
		if t := typed.ErrorType(); slices.Contains(Types[:], t) {
			return t
		}
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "_OTHER"
}
