package retry

import (
	"context"
	"testing"

	"github.com/switchgear-go/switchgear/policy"
)

func BenchmarkFirstTry(b *testing.B) {
	ctx := context.Background()
	ok := func(context.Context) error { return nil }
	for _, bench := range []struct {
		name string
		p    policy.Policy
	}{
		{"bare", policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error { return fn(ctx) })},
		{"retry", New(Config{})},
		{"retry without a budget", New(Config{Budget: Unlimited})},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = bench.p.Do(ctx, ok)
			}
		})
		b.Run(bench.name+" in parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_ = bench.p.Do(ctx, ok)
				}
			})
		})
	}
}
