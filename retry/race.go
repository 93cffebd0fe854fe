package retry

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/internal/instant"
	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// race is one call of a hedge. Its methods run on the caller's goroutine, except isOver and end, which run on an attempt's.
type race struct {
	*boundHedge
	ctx context.Context
	fn  policy.Func

	attempts []*attempt // in the order in which they began
	running  int
	shut     bool // no more attempts are started

	wake chan struct{} // signals that an attempt was added to ended

	mu    sync.Mutex
	ended []*attempt // guarded by mu: attempts that have ended and are still to be handled
	over  bool       // guarded by mu: Do returns; no attempt is handled any more
}

// attempt is one run of fn.
type attempt struct {
	race    *race
	number  int
	start   time.Duration
	cancel  context.CancelCauseFunc
	settle  func(keep bool) // keeps or drops the value that fn returns to a Get
	payment payment
	handled bool // hasWon was called for it

	// How it ended; set before race.end.
	err    error
	panics any    // what fn panicked with
	stack  []byte // of the panic
	exited bool   // fn called runtime.Goexit
}

// run starts attempts until one succeeds or all have failed, and returns what Do returns.
func (r *race) run(now, delay time.Duration) error {
	r.start(now, payment{})
	timer := time.NewTimer(delay)
	defer timer.Stop()
	canceled := r.ctx.Done()
	for r.running > 0 {
		due := 0 // attempts to start
		select {
		case <-r.wake:
		case <-timer.C:
			due = 1
		case <-canceled:
			canceled = nil // go on waiting for the attempts that run; hedge starts no more
		}
		var failure error
		for _, a := range r.takeEnded() {
			if r.hasWon(a) {
				return a.err
			}
			failure = a.err
			due++
		}
		for ; due > 0 && r.hedge(failure); due-- {
			timer.Reset(delay)
		}
	}
	r.attempts[0].settle(true)
	return r.failures()
}

// start starts an attempt.
func (r *race) start(now time.Duration, paid payment) {
	a := &attempt{race: r, number: len(r.attempts) + 1, start: now, payment: paid}
	ctx, settle := policy.Fork(r.ctx)
	ctx, a.cancel = context.WithCancelCause(ctx)
	a.settle = settle
	if a.number > 1 {
		ctx = &call.Attempt{Context: ctx, Number: a.number, Start: call.Instant(now), Retry: insideRetry(ctx)}
	}
	r.attempts = append(r.attempts, a)
	r.running++
	go a.run(ctx)
}

// run runs fn on the attempt's goroutine. It recovers a panic, which would otherwise end the process, for the caller's
// goroutine to repeat. If the race is over before this goroutine gets to run, fn does not start.
func (a *attempt) run(ctx context.Context) {
	if a.race.isOver() {
		return
	}
	returned := false
	defer func() {
		if !returned {
			if a.panics = recover(); a.panics != nil {
				a.stack = debug.Stack()
			}
			a.exited = a.panics == nil
		}
		a.race.end(a)
	}()
	a.err = traced(ctx, a.race.spanner, a.number, a.race.fn)
	returned = true
}

func (r *race) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// end hands an attempt that has ended to the caller's goroutine.
func (r *race) end(a *attempt) {
	r.mu.Lock()
	late := r.over
	if !late {
		r.ended = append(r.ended, a)
	}
	r.mu.Unlock()
	if late {
		r.tellPanic(a)
		return
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *race) takeEnded() []*attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	ended := r.ended
	r.ended = nil
	return ended
}

// hasWon handles the end of an attempt and reports whether it decides the race. It panics or exits if the attempt did.
func (r *race) hasWon(a *attempt) bool {
	a.handled = true
	a.cancel(nil)
	r.running--
	if a.panics != nil || a.exited {
		r.count(a, originalFailed)
		r.tellPanic(a)
		if a.exited {
			runtime.Goexit()
		}
		panic(a.panics)
	}
	row := attemptOutcome(r.ctx, a.err, originalWon, originalFailed, originalLost)
	r.count(a, row)
	if row == originalWon {
		a.settle(true)
		r.learn(a)
		if a.err != nil {
			a.payment.giveBack() // a healthy answer
		}
		return true
	}
	if r.ctx.Err() == nil && (isPermanent(a.err) || isFinal(a.err) || !r.Retryable(r.ctx, a.err)) {
		a.payment.giveBack()
		r.shut = true
	}
	return false
}

// hedge starts another attempt, if the limits allow one. failure is the error of the attempt that it follows; nil if the
// delay has passed.
func (r *race) hedge(failure error) (started bool) {
	if r.shut || len(r.attempts) > r.MaxHedges || r.ctx.Err() != nil {
		return false
	}
	now := instant.Now()
	e := observe.Event{Kind: observe.Hedged, Attempt: len(r.attempts) + 1, Delay: now - r.attempts[len(r.attempts)-1].start, Err: failure}
	paid, ok := r.Budget.pay(now)
	if !ok {
		r.shut = true
		e.Reason = semconv.ResultBudgetExhausted
		r.tell(e, true)
		return false
	}
	defer func() {
		if !started {
			paid.giveBack()
		}
	}()
	r.tell(e, true)
	r.start(now, paid)
	return true
}

// failures returns the error of a race that no attempt won.
func (r *race) failures() error {
	if len(r.attempts) == 1 {
		return r.attempts[0].err
	}
	errs := make([]error, len(r.attempts))
	for i, a := range r.attempts {
		errs[i] = a.err
	}
	return errors.Join(errs...)
}

// close ends the race, whatever its result: attempts that still run have lost.
func (r *race) close() {
	r.mu.Lock()
	r.over = true
	ended := r.ended
	r.mu.Unlock()
	for _, a := range r.attempts {
		if !a.handled {
			a.cancel(ErrHedgeLost)
			r.count(a, originalLost)
		}
		a.settle(false) // does nothing to one that was kept
	}
	for _, a := range ended {
		r.tellPanic(a)
	}
}

// learn records how long the winner took, and how long the attempts had run that it overtook. Without those, the slowest
// attempts would never be recorded.
func (r *race) learn(winner *attempt) {
	if r.latencies == nil {
		return
	}
	now := instant.Now()
	for _, a := range r.attempts {
		if !a.handled || a == winner {
			r.latencies.record(now, now-a.start, a == winner)
		}
	}
}

// count counts an attempt. row is the row for the first attempt; those of hedges are in the same order.
func (r *race) count(a *attempt, row int) {
	if a.number > 1 {
		row += hedgeWon - originalWon
	}
	r.counts[row].Add(1)
}

// tellPanic reports the panic of an attempt, if it panicked, with its stack: the panic that the caller sees has another
// stack, and after Do has returned there is none.
func (r *race) tellPanic(a *attempt) {
	if a.panics == nil {
		return
	}
	r.tell(observe.Event{
		Kind: observe.Hedged, Attempt: a.number, Reason: "panic",
		Err: &panicError{value: a.panics, stack: a.stack},
	}, false)
}

func (r *race) tell(e observe.Event, fnReturned bool) {
	e.Policy, e.Name, e.Pipeline, e.Time = "hedge", r.name, call.Pipeline(r.ctx), time.Now()
	call.Tell(r.ctx, r.observer, e, fnReturned)
}

// panicError is the Err of the event for a panic on a goroutine of a hedge.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string     { return fmt.Sprintf("panic: %v\n\n%s", e.value, e.stack) }
func (e *panicError) ErrorType() string { return "panic" }

func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}
