package retry

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/switchgear-go/switchgear/policy"
)

func TestASuccessAtOnceAllocatesNothing(t *testing.T) {
	ctx := context.Background()
	ok := func(context.Context) error { return nil }
	for name, r := range map[string]policy.Policy{
		"by default":  New(Config{}),
		"with a name": New(Config{Name: "charge", Budget: NewBudget("b", BudgetConfig{})}),
		"unlimited":   New(Config{Budget: Unlimited}),
		"nested":      New(Config{Nested: true}),
	} {
		assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = r.Do(ctx, ok) }), name)
	}
	p := policy.NewPipeline("p", New(Config{}))
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, func() { _ = p.Do(ctx, ok) }), 1., "the pipeline's own context")
}
