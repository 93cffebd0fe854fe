package policytest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchgear-go/switchgear/policy"
)

// Opens checks that p refuses call after at most within failed calls: that a breaker in p sees the failures of call. Use the
// same function that the program runs under p, and let it call a dependency that is down. Opens finds mistakes such as a
// function that returns nil for a status of 500, one that starts a goroutine and returns, and a breaker that is created for
// each call.
//
// If the policy is inside call, such as in a client's transport, p is nil.
//
// Opens runs in real time and stops at the first refusal.
func Opens(t *testing.T, p policy.Policy, call policy.Func, within int) {
	t.Helper()
	if report := opens(t.Context(), p, call, within); report != "" {
		t.Error(report)
	}
}

// try is one call of Opens.
type try struct {
	err  error // what p returned
	took time.Duration

	mu   sync.Mutex
	runs []error // guarded by mu: what call returned
}

// ran returns what call returned so far. A run that lost a race may still be to come.
func (t *try) ran() []error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.runs)
}

func opens(ctx context.Context, p policy.Policy, call policy.Func, within int) (report string) {
	if p == nil {
		p = policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error { return fn(ctx) })
	}
	before := runtime.NumGoroutine()
	tries := make([]*try, 0, within+1)
	for range within + 1 {
		now := &try{}
		start := time.Now()
		now.err = p.Do(ctx, func(ctx context.Context) error {
			err := call(ctx)
			now.mu.Lock()
			defer now.mu.Unlock()
			now.runs = append(now.runs, err)
			return err
		})
		now.took = time.Since(start)
		if errors.Is(now.err, policy.ErrRejected) {
			return ""
		}
		tries = append(tries, now)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "the call was not refused after %d had failed.\n%s\n", within, diagnosis(ctx, tries, runtime.NumGoroutine()-before))
	for i, try := range tries {
		if i == 10 {
			fmt.Fprintf(&b, "\n  … %d more", len(tries)-i)
			break
		}
		fmt.Fprintf(&b, "\n  call %d: %s", i+1, try)
	}
	return b.String()
}

func (t *try) String() string {
	ran := t.ran()
	if len(ran) == 0 {
		return fmt.Sprintf("did not run; Do returned %s after %v", oneLine(t.err), t.took)
	}
	runs := make([]string, len(ran))
	for i, err := range ran {
		runs[i] = oneLine(err)
	}
	return fmt.Sprintf("returned %s; Do returned %s after %v", strings.Join(runs, ", then "), oneLine(t.err), t.took)
}

// diagnosis says what the policy saw, and so where the fault may be.
func diagnosis(ctx context.Context, tries []*try, moreGoroutines int) string {
	seen := map[policy.Outcome]int{}
	runs, healthy := 0, 0
	for _, t := range tries {
		for _, err := range t.ran() {
			runs++
			outcome := policy.Classify(ctx, err)
			seen[outcome]++
			if err != nil && outcome == policy.Success {
				healthy++
			}
		}
	}
	switch {
	case runs == 0:
		return "The policy never ran it."
	case seen[policy.Success] == runs && healthy == runs:
		return "Each time it returned an error marked with policy.Healthy, which speaks for the dependency."
	case seen[policy.Success] == runs && moreGoroutines > 0:
		return fmt.Sprintf("Each time it returned nil, and %d goroutines more are running than before: a failure in a goroutine "+
			"that it does not wait for reaches no policy.", moreGoroutines)
	case seen[policy.Success] == runs:
		return "Each time it returned nil, so the policy saw successes: a bad answer, such as a status of 500, has to become an " +
			"error, and what it starts has to be waited for."
	case seen[policy.Ignored] == runs:
		return "Each time its error was one that says nothing about the dependency: a refusal by another policy, or a caller that cancelled."
	}
	return fmt.Sprintf("Of %d runs %d were failures by policy.Classify. Is there a breaker in the policy, and the same one in each "+
		"call? Does a Classify of its own call them healthy? Is its rule within reach: 20 calls at least, unless MinCalls says otherwise?",
		runs, seen[policy.Failure])
}
