package policytest

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/retry"
)

func TestTheTimelineInTheDocsIsARealOne(t *testing.T) {
	report := play(t, Case{ // a call that fails, hangs and recovers, with a breaker that opens at the second failure
		Policy: func(o observe.Observer) policy.Policy {
			return policy.NewPipeline("charge",
				retry.New(retry.Config{Attempts: 3, BackOff: func() backoff.BackOff { return backoff.NewConstantBackOff(100 * time.Millisecond) }}),
				breaker.New("payments-api", breaker.Config{Consecutive: 2, Cooldown: 5 * time.Second, Jitter: -1, Observer: o}),
				policy.Timeout(500*time.Millisecond),
			).Observed(o)
		},
		Script: Script{Fail(errors.New("down")), Hang, OK},
		Calls:  []Call{{Runs: At(0, 100*ms, 700*ms), Takes: 700 * ms}},
		Events: "retry → timeout → retry",
	}, patience)
	page, err := os.ReadFile("../../docs/testing.md")
	require.NoError(t, err)
	if !strings.Contains(string(page), "\n```\n"+report+"\n```\n") {
		t.Errorf("docs/testing.md shows another one than:\n%s", report)
	}
}
