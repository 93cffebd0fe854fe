package policytest

import (
	"context"
	"runtime"
	"time"
)

// Script is what fn does, run by run: the first run does the first step, the second run the second, and so on. Once the
// script is at its end, every further run does the last step.
type Script []Step

// Step is what fn does in one run. Any func(ctx) error is one.
type Step func(ctx context.Context) error

// OK returns nil.
func OK(context.Context) error { return nil }

// Hang waits for the end of its context and returns its error.
func Hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// Goexit ends the goroutine by [runtime.Goexit].
func Goexit(context.Context) error {
	runtime.Goexit()
	return nil
}

// Fail returns a step that returns err.
func Fail(err error) Step {
	return func(context.Context) error { return err }
}

// Panic returns a step that panics with value.
func Panic(value any) Step {
	return func(context.Context) error { panic(value) }
}

// Outage returns a step that returns err while the time since the start of the case is at least from and less than to, and
// nil before and after.
func Outage(err error, from, to time.Duration) Step {
	return func(ctx context.Context) error {
		start, ok := ctx.Value(startKey{}).(time.Time)
		if !ok {
			panic("policytest: Outage in a run whose context is not derived from that of the call")
		}
		if at := time.Since(start); at < from || at >= to {
			return nil
		}
		return err
	}
}

// After returns a step that takes d and then does s. If its context ends first, it returns the context's error.
func After(d time.Duration, s Step) Step {
	return func(ctx context.Context) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return s(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Deaf returns a step that takes d and then does s, even if its context ends first.
func Deaf(d time.Duration, s Step) Step {
	return func(ctx context.Context) error {
		time.Sleep(d)
		return s(ctx)
	}
}

// Late returns a step that does s only d after its context has ended.
func Late(d time.Duration, s Step) Step {
	return func(ctx context.Context) error {
		<-ctx.Done()
		return Deaf(d, s)(ctx)
	}
}

// Times returns the script of n times s.
func Times(n int, s Step) Script {
	script := make(Script, n)
	for i := range script {
		script[i] = s
	}
	return script
}

// Then returns the script with steps added at its end.
func (s Script) Then(steps ...Step) Script {
	return append(s[:len(s):len(s)], steps...)
}

// step returns what the n-th run does, counted from 0.
func (s Script) step(n int) Step {
	if len(s) == 0 {
		return OK
	}
	return s[min(n, len(s)-1)]
}
