package retry

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy"
)

func TestExhaustedErrorTellsItsStory(t *testing.T) {
	tests := []struct {
		err  *ExhaustedError
		want string
	}{
		{&ExhaustedError{3, ErrAttemptsExhausted, errDown, false}, "retry: gave up after 3 attempts (attempts exhausted): down"},
		{&ExhaustedError{1, ErrDeadline, errDown, false}, "retry: gave up after 1 attempt (the wait would exceed the context's deadline): down"},
		{&ExhaustedError{2, context.Canceled, errDown, false}, "retry: gave up after 2 attempts (context canceled): down"},
		{&ExhaustedError{}, "retry: gave up after 0 attempts"},
	}
	for _, test := range tests {
		require.EqualError(t, test.err, test.want)
		assert.Equal(t, "exhausted", test.err.ErrorType())
	}
	var timeout interface{ Timeout() bool } = &ExhaustedError{Last: fmt.Errorf("read: %w", os.ErrDeadlineExceeded)}
	assert.True(t, timeout.Timeout())
	timeout = &ExhaustedError{Reason: context.DeadlineExceeded, Last: errDown}
	assert.False(t, timeout.Timeout())
	assert.False(t, (&ExhaustedError{}).Timeout())
	assert.Empty(t, (&ExhaustedError{}).Unwrap())
}

func TestReasonsAreDistinctAndNamed(t *testing.T) {
	seen := map[string]bool{}
	for _, reason := range []error{ErrAttemptsExhausted, ErrElapsed, ErrDeadline, ErrBudgetExhausted, ErrRetryAfter, ErrStopped, ErrHedgeLost} {
		assert.Regexp(t, "^retry: ", reason.Error())
		assert.False(t, seen[reason.Error()], "%v", reason)
		seen[reason.Error()] = true
		require.NotErrorIs(t, reason, context.DeadlineExceeded)
		assert.NotErrorIs(t, reason, policy.ErrRejected)
	}
}
