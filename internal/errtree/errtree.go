// Package errtree reads trees of errors for the packages that judge them.
package errtree

import (
	"context"
	"errors"
)

// Kind says what a tree of errors amounts to.
type Kind uint8

// What a tree amounts to. Of a tree's parts the greatest wins.
const (
	None    Kind = iota // nil
	Healthy             // a healthy answer, and nothing that failed
	Refusal             // refusals by policies, and nothing that failed
	Failed              // at least one real failure
)

// ErrRejected is matched by every refusal of a policy.
var ErrRejected error = Reason("call rejected")

// A Reason says why a policy gave up. It stands in a tree beside the error that it is about and weighs nothing in it.
type Reason string

func (r Reason) Error() string { return string(r) }

// Mark marks an error as a healthy answer.
type Mark struct{ Err error }

func (m *Mark) Error() string { return m.Err.Error() }
func (m *Mark) Unwrap() error { return m.Err }

// Sort returns what err amounts to: failed where any leaf of it is a real failure, else refusal, else healthy. A tree of
// reasons alone is a failure.
func Sort(err error) Kind {
	if err == nil {
		return None
	}
	if k := sort(err); k != None {
		return k
	}
	return Failed
}

// sort returns None for what weighs nothing.
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
			return Failed // a policy's timeout is one whatever fn said when it was cut
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

// Types are the values of error.type: a closed set, so that no error can add a series.
var Types = [...]string{"exhausted", "timeout", "rejected", "panic", "canceled", "429", "500", "502", "503", "504", "_OTHER"}

// Type returns the value of error.type for err: that of the outermost error with an ErrorType method, else timeout or
// canceled for the errors of contexts, else _OTHER.
func Type(err error) string {
	name := ""
	if typed := interface{ ErrorType() string }(nil); errors.As(err, &typed) {
		name = typed.ErrorType()
	} else if errors.Is(err, context.DeadlineExceeded) {
		name = "timeout"
	} else if errors.Is(err, context.Canceled) {
		name = "canceled"
	}
	for _, t := range Types {
		if t == name {
			return t
		}
	}
	return "_OTHER"
}
