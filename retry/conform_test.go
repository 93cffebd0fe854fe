package retry_test

import (
	"testing"
	"time"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/policytest"
	"github.com/switchgear-go/switchgear/retry"
)

func TestPoliciesConform(t *testing.T) {
	for name, build := range map[string]func() policy.Policy{
		"retry":  func() policy.Policy { return retry.New(retry.Config{}) },
		"nested": func() policy.Policy { return retry.New(retry.Config{Nested: true, Budget: retry.Unlimited}) },
		"hedge": policytest.Overlapping(func() policy.Policy {
			return retry.NewHedge(retry.HedgeConfig{Delay: time.Second})
		}),
		"learning hedge": func() policy.Policy { return retry.NewHedge(retry.HedgeConfig{Percentile: 0.95}) },
		"hedge of five": policytest.Overlapping(func() policy.Policy {
			return retry.NewHedge(retry.HedgeConfig{Delay: time.Minute, MaxHedges: 5})
		}),
		"retry in pipeline": func() policy.Policy { return policy.NewPipeline("p", retry.New(retry.Config{})) },
	} {
		t.Run(name, func(t *testing.T) { policytest.Conform(t, build) })
	}
}
