package policytest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/retry"
)

func TestOpensFindsTheBreakerThatIsNotWired(t *testing.T) {
	opensAfter := func(n int) policy.Policy {
		return breaker.New("api", breaker.Config{Consecutive: n, Observer: observe.Discard})
	}
	stop := make(chan struct{})
	defer close(stop)
	gone, cancel := context.WithCancel(t.Context())
	for _, tt := range []struct {
		name   string
		ctx    context.Context
		policy policy.Policy
		call   policy.Func
		within int
		says   string // nothing, if the breaker opens in time
	}{
		{name: "it opens", policy: opensAfter(5), call: Fail(errDown), within: 5},
		{name: "it opens sooner", policy: opensAfter(5), call: Fail(errDown), within: 100},
		{name: "it opens one call too late", policy: opensAfter(6), call: Fail(errDown), within: 5, says: "was not refused after 5 had failed.\nOf 6 runs 6 were failures"},
		{name: "a retry outside", policy: policy.NewPipeline("p", retry.New(retry.Config{Budget: retry.Unlimited}), opensAfter(1)), call: Fail(errDown), within: 1},
		{name: "inside the call", call: policy.Wrap(opensAfter(2), Fail(errDown)), within: 2},
		{name: "nil beside a 500", policy: opensAfter(1), call: OK, within: 20, says: "Each time it returned nil, so the policy saw successes: a bad answer, such as a status of 500, has to become an error"},
		{name: "a goroutine and nil", policy: opensAfter(1), call: func(context.Context) error { go func() { <-stop }(); return nil }, within: 20, says: "goroutines more are running than before: a failure in a goroutine that it does not wait for reaches no policy"},
		{name: "healthy", policy: opensAfter(1), call: Fail(policy.Healthy(errDown)), within: 20, says: "an error marked with policy.Healthy"},
		{name: "cancelled", ctx: gone, policy: opensAfter(1), call: func(context.Context) error { cancel(); return errDown }, within: 20, says: "says nothing about the dependency"},
		{name: "no breaker", policy: plain, call: Fail(errDown), within: 2, says: "Is there a breaker in the policy"},
		{name: "never run", policy: policy.PolicyFunc(func(context.Context, policy.Func) error { return errors.New("no") }), call: OK, within: 2, says: "The policy never ran it.\n\n  call 1: did not run; Do returned no after "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.ctx == nil {
				tt.ctx = t.Context()
			}
			report := opens(tt.ctx, tt.policy, tt.call, tt.within)
			if tt.says == "" {
				assert.Empty(t, report)
			} else {
				assert.Contains(t, report, tt.says)
			}
		})
	}
}

func TestOpensToldAtLengthStaysShort(t *testing.T) {
	report := opens(t.Context(), plain, Fail(errDown), 99)
	assert.Contains(t, report, "\n  call 10: returned down; Do returned down after ")
	assert.NotContains(t, report, "call 11:")
	assert.Contains(t, report, "… 90 more")
}
