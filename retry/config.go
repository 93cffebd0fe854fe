package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/switchgear-go/switchgear/policy/observe"
)

// Config configures a [Retry]. The zero value makes up to 3 attempts with jittered waits, waits as long as the server asks
// (Retry-After), and limits retries to a share of the traffic.
type Config struct {
	// Name is what the retry reports under. If empty, the name of its pipeline, or "retry" if it is used alone.
	Name string

	// Attempts is how many times fn may run, the first included. If zero, 3. If negative, there is no limit.
	Attempts int

	// MaxElapsed limits the time for retrying, measured from the start of the call: a wait that would end later is not
	// begun. It does not cut an attempt short. If zero, there is no limit.
	MaxElapsed time.Duration

	// BackOff returns the backoff that sets the waits of one call; it is called on the call's first failure. It must return
	// a new value each time, since backoffs keep state. A negative wait, such as [backoff.Stop], ends the retrying. If nil,
	// FullJitter(50ms, 5s).
	//
	// After a wait that an error has asked for, the backoff is Reset. [backoff.WithMaxRetries] then counts from the start
	// again, so only Attempts is a firm limit. A [backoff.ExponentialBackOff] stops after 15 minutes unless its
	// MaxElapsedTime is set to 0.
	BackOff func() backoff.BackOff

	// MaxRetryAfter is the longest wait that an error may ask for, by a method RetryAfter() time.Duration. If an error asks
	// for more, the retry gives up. If zero, 30s.
	MaxRetryAfter time.Duration

	// Retryable reports whether the call may be tried again after an attempt that failed with err; ctx is the call's. It is
	// not asked about errors that always end the retrying: those marked with [policy.Healthy] or [backoff.Permanent], and
	// that of an inner retry that gave up. If it says yes to a refusal by a policy ([policy.ErrRejected]), the wait is at
	// least as long as the refusal asks for. If nil, [DefaultRetryable].
	Retryable func(ctx context.Context, err error) bool

	// Budget limits retries to a share of the calls. Policies with the same Budget share its limit. If nil, the retry has a
	// budget of its own with the defaults of [BudgetConfig]. Use [Unlimited] for no limit.
	Budget *Budget

	// Nested lets the retry repeat even inside an attempt that another retry repeats, so that their attempts multiply. By
	// default it makes a single attempt there.
	Nested bool

	// Observer is told of retries, and of calls that are given up. If nil, the pipeline's observer, or OpenTelemetry
	// ([otelx.Default]) if the retry is used alone.
	Observer observe.Observer
}

const (
	defaultAttempts      = 3
	defaultMaxRetryAfter = 30 * time.Second
	defaultBase          = 50 * time.Millisecond
	defaultLimit         = 5 * time.Second
)

// Validate returns an error that names each invalid field, its value and what is allowed; nil if c is valid.
func (c Config) Validate() error {
	var faults []error
	if c.MaxElapsed < 0 {
		faults = append(faults, fmt.Errorf("retry: Config.MaxElapsed is %v, must be 0 (no limit) or more", c.MaxElapsed))
	}
	if c.MaxRetryAfter < 0 {
		faults = append(faults, fmt.Errorf("retry: Config.MaxRetryAfter is %v, must be 0 (%v) or more", c.MaxRetryAfter, defaultMaxRetryAfter))
	}
	faults = append(faults, c.Budget.validate())
	return errors.Join(faults...)
}

// withDefaults returns c with its zero fields filled in.
func (c Config) withDefaults() Config {
	if c.Attempts == 0 {
		c.Attempts = defaultAttempts
	}
	if c.MaxRetryAfter == 0 {
		c.MaxRetryAfter = defaultMaxRetryAfter
	}
	if c.BackOff == nil {
		c.BackOff = FullJitter(defaultBase, defaultLimit)
	}
	if c.Retryable == nil {
		c.Retryable = DefaultRetryable
	}
	if c.Budget == nil {
		c.Budget = NewBudget("", BudgetConfig{})
	}
	return c
}
