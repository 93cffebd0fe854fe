package errtree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
)

type refusal struct{}

func (refusal) Error() string        { return "no" }
func (refusal) Is(target error) bool { return target == ErrRejected }
func (refusal) Unwrap() error        { return Reason("full") }

type late struct{ inner error }

func (l late) Error() string        { return "late" }
func (l late) Is(target error) bool { return target == context.DeadlineExceeded }
func (l late) Unwrap() error        { return l.inner }

type hollow struct{}

func (hollow) Error() string { return "wraps nothing" }
func (hollow) Unwrap() error { return nil }

func TestSort(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want Kind
	}{
		{nil, None},
		{io.EOF, Failed},
		{hollow{}, Failed},
		{Reason("gave up"), Failed},
		{ErrRejected, Refusal},
		{refusal{}, Refusal},
		{late{refusal{}}, Failed},
		{&Mark{io.EOF}, Healthy},
		{fmt.Errorf("x: %w", &Mark{io.EOF}), Healthy},
		{errors.Join(Reason("gave up"), refusal{}), Refusal},
		{errors.Join(Reason("gave up"), io.EOF), Failed},
		{errors.Join(&Mark{io.EOF}, refusal{}), Refusal},
		{errors.Join(refusal{}, fmt.Errorf("x: %w", io.EOF)), Failed},
		{fmt.Errorf("%w and %w", refusal{}, refusal{}), Refusal},
	} {
		assert.Equal(t, tt.want, Sort(tt.err), "%v", tt.err)
	}
}

func TestFindAsksOutermostFirst(t *testing.T) {
	tree := errors.Join(io.EOF, fmt.Errorf("x: %w", late{late{nil}}), refusal{})
	asked := 0
	found, ok := Find(tree, func(l late) bool { asked++; return l.inner == nil })
	assert.True(t, ok)
	assert.Equal(t, late{}, found)
	assert.Equal(t, 2, asked)
	_, ok = Find(tree, func(hollow) bool { return true })
	assert.False(t, ok)
	_, ok = Find(nil, func(error) bool { return true })
	assert.False(t, ok)
}

type typed string

func (e typed) Error() string     { return string(e) }
func (e typed) ErrorType() string { return string(e) }

func TestTypeIsOfAClosedSet(t *testing.T) {
	for want, err := range map[string]error{
		"503":      fmt.Errorf("x: %w", typed("503")),
		"_OTHER":   typed("made up"),
		"timeout":  context.DeadlineExceeded,
		"canceled": errors.Join(io.EOF, context.Canceled),
	} {
		assert.Equal(t, want, Type(err))
	}
	assert.Equal(t, "_OTHER", Type(io.EOF))
}
