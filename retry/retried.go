package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/internal/errtree"
	"github.com/switchgear-go/switchgear/internal/instant"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// retried is a call whose first attempt has failed. It decides after each failure: it waits and tries again, or gives up.
type retried struct {
	*boundRetry
	ctx   context.Context
	fn    policy.Func
	start time.Duration // of the call

	attempt  int             // the number of the latest attempt
	backoff  backoff.BackOff // nil before the first wait
	replaced bool            // the last wait was an error's hint in place of the backoff's, which then starts again
	payment  payment         // of the latest attempt or, while waiting, of the next one
	waiting  bool            // the attempt that was paid for has not begun
	running  bool            // fn runs: should it panic, that stays so
	last     error           // the last real failure or, as long as there is none, the last refusal
	real     bool            // last is a real failure
	waited   time.Duration   // total
	result   int             // the row that the call counts in
}

func (r *boundRetry) failed(ctx context.Context, start call.Instant, fn policy.Func, err error) error {
	c := &retried{boundRetry: r, ctx: ctx, fn: fn, start: time.Duration(start), attempt: 1, result: callNotRetryable}
	defer c.settle()
	c.counts[attemptOutcome(ctx, err, originalSuccess, originalFailure, originalCanceled)].Add(1)
	for {
		wait, final := c.judge(err)
		if final != nil {
			return final
		}
		began, stopped := c.wait(wait, err)
		if stopped != nil {
			return stopped
		}
		if err = c.again(began); err == nil {
			c.result = callRecovered
			return nil
		}
	}
}

// settle counts the call's result and gives back what was paid for an attempt that has not begun.
func (c *retried) settle() {
	c.counts[c.result].Add(1)
	if c.waiting {
		c.payment.giveBack()
	}
	defer call.Hush(!c.running)
	if c.attempt > 1 && c.probe.Enabled(c.ctx) {
		c.probe.Record(c.ctx, 0, c.waited)
	}
}

// judge decides what follows an attempt that failed with err. It returns the wait before the next attempt, which is then paid
// for, or the error for Do to return.
func (c *retried) judge(err error) (wait time.Duration, final error) {
	kind := errtree.Sort(err)
	if kind == errtree.Healthy {
		c.payment.giveBack()
		c.result = callFirstTry
		if c.attempt > 1 {
			c.result = callRecovered
		}
		return 0, err
	}
	if ended := c.ctx.Err(); ended != nil {
		return 0, c.canceled(err, kind, ended)
	}
	retryable := !isPermanent(err) && !isFinal(err) && c.Retryable(c.ctx, err)
	switch {
	case !c.Nested && insideRetry(c.ctx):
		return 0, c.standAside(err, retryable)
	case !retryable:
		return 0, c.notRetryable(err, kind)
	}
	c.keep(err, kind)
	if c.Attempts > 0 && c.attempt >= c.Attempts {
		return 0, c.giveUp(callExhausted, ErrAttemptsExhausted, 0)
	}
	return c.decide(err)
}

// keep makes err the last failure, unless err is a refusal and there is a real failure already.
func (c *retried) keep(err error, kind errtree.Kind) {
	if kind == errtree.Failed || !c.real {
		c.last, c.real = err, kind == errtree.Failed
	}
}

// decide returns the wait before another attempt, if there is time and budget for one; else the error for Do to return.
func (c *retried) decide(err error) (wait time.Duration, final error) {
	wait, hinted := c.nextWait(err)
	now := instant.Now()
	deadline, limited := c.ctx.Deadline()
	switch {
	case wait < 0:
		return 0, c.giveUp(callExhausted, ErrStopped, 0)
	case hinted && wait > c.MaxRetryAfter:
		return 0, c.giveUp(callNotRetryable, ErrRetryAfter, wait)
	case limited && wait >= time.Until(deadline):
		return 0, c.giveUp(callDeadline, ErrDeadline, wait)
	case c.MaxElapsed > 0 && wait > c.MaxElapsed-(now-c.start):
		return 0, c.giveUp(callExhausted, ErrElapsed, wait)
	}
	paid, ok := c.Budget.pay(now)
	if !ok {
		return 0, c.giveUp(callBudgetExhausted, ErrBudgetExhausted, wait)
	}
	c.payment, c.waiting = paid, true
	return wait, nil
}

// nextWait returns the wait before the next attempt and whether err asked for it. A negative wait means to stop.
func (c *retried) nextWait(err error) (wait time.Duration, hinted bool) {
	hint, refusal := hintOf(err)
	replaced := hint > 0 && !refusal
	switch {
	case c.backoff == nil:
		if c.backoff = c.BackOff(); c.backoff == nil {
			panic("retry: " + c.name + ": BackOff returned nil")
		}
		c.backoff.Reset()
	case c.replaced && !replaced:
		c.backoff.Reset()
	}
	c.replaced = replaced
	wait = c.backoff.NextBackOff() // called even if a hint replaces it, since it may count attempts and stop
	if wait < 0 || hint <= 0 || refusal && hint <= wait {
		return wait, false
	}
	return hint, true
}

// hintOf returns the first wait above 0 that an error in err's tree asks for, and whether that error is a policy's refusal.
func hintOf(err error) (hint time.Duration, refusal bool) {
	type hinter interface {
		error
		RetryAfter() time.Duration
	}
	from, _ := errtree.Find(err, func(h hinter) bool {
		hint = h.RetryAfter()
		return hint > 0
	})
	return hint, from != nil && errors.Is(from, policy.ErrRejected)
}

// wait waits before the next attempt. It returns the instant at which that begins; or, if ctx ended, the error for Do to
// return.
func (c *retried) wait(wait time.Duration, err error) (end time.Duration, final error) {
	c.tell(observe.Event{Kind: observe.Attempt, Attempt: c.attempt + 1, Delay: wait, Err: err})
	start := instant.Now()
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.ctx.Done():
		}
	}
	end = instant.Now()
	c.waited += end - start
	if ended := c.ctx.Err(); ended != nil {
		return end, c.giveUp(callCanceled, ended, 0)
	}
	return end, nil
}

// again makes the next attempt.
func (c *retried) again(now time.Duration) (err error) {
	c.attempt++
	c.waiting = false
	ctx := &call.Attempt{Context: c.ctx, Number: c.attempt, Start: call.Instant(now), Retry: true}
	row := retryFailure
	defer func() { c.counts[row].Add(1) }()
	c.running = true
	err = traced(ctx, c.spanner, c.attempt, c.fn)
	c.running = false
	row = attemptOutcome(c.ctx, err, retrySuccess, retryFailure, retryCanceled)
	return err
}

// canceled ends a call whose context ended during an attempt that returned err. It returns err as it is if there is nothing
// to add, else an ExhaustedError.
func (c *retried) canceled(err error, kind errtree.Kind, ended error) error {
	c.result = callCanceled
	if !errors.Is(err, ended) {
		c.keep(err, kind)
		return c.giveUp(callCanceled, ended, 0)
	}
	if c.attempt == 1 {
		return err
	}
	return c.giveUp(callCanceled, err, 0)
}

// notRetryable ends a call with an error that is not retryable. It returns err without the mark of backoff.Permanent, or an
// ExhaustedError if err is a refusal that would hide a real failure.
func (c *retried) notRetryable(err error, kind errtree.Kind) error {
	c.payment.giveBack()
	c.result = callNotRetryable
	if kind == errtree.Refusal && c.real {
		return c.giveUp(callNotRetryable, err, 0)
	}
	if isFinal(err) {
		c.tell(observe.Event{Kind: observe.Exhausted, Reason: resultOf(c.result), Attempt: c.attempt, Err: err})
	}
	return stripped(err)
}

// standAside ends the single attempt that a retry makes inside an attempt that another retry repeats.
func (c *retried) standAside(err error, retryable bool) error {
	if retryable {
		c.result = callExhausted
		c.tell(observe.Event{
			Kind: observe.Exhausted, Reason: resultOf(c.result), Attempt: c.attempt,
			Err: fmt.Errorf("left to the retry around this one: %w", err),
		})
	}
	return err // with its marks, for the outer retry to judge
}

// giveUp ends the call for reason. delay is the wait that was too long or not paid for; 0 if it did not come to that.
func (c *retried) giveUp(result int, reason error, delay time.Duration) error {
	c.result = result
	err := &ExhaustedError{Attempts: c.attempt, Reason: reason, Last: c.last, nested: c.Nested}
	c.tell(observe.Event{Kind: observe.Exhausted, Reason: resultOf(result), Attempt: c.attempt, Delay: delay, Err: err})
	return err
}

func (c *retried) tell(e observe.Event) {
	e.Policy, e.Name, e.Pipeline, e.Time = "retry", c.name, call.Pipeline(c.ctx), time.Now()
	c.observer.Observe(c.ctx, e)
}

// insideRetry reports whether ctx belongs to an attempt that a retry repeats.
func insideRetry(ctx context.Context) bool {
	outer := call.AttemptOf(ctx)
	return outer != nil && outer.Retry
}

// attemptOutcome returns the row of an attempt that ended with err.
func attemptOutcome(ctx context.Context, err error, success, failure, canceled int) int {
	switch {
	case err == nil || errtree.Sort(err) == errtree.Healthy:
		return success
	case ctx.Err() == context.Canceled:
		return canceled
	}
	return failure
}
