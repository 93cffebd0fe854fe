package breaker

import (
	"context"
	"errors"
	"testing"
)

func BenchmarkDo(b *testing.B) {
	ctx := context.Background()
	nothing := func(context.Context) error { return nil }
	open := func() *Breaker {
		br := New("payments-api", Config{})
		br.ForceOpen()
		return br
	}
	tripped := func() *Breaker {
		br := New("payments-api", Config{Cooldown: 1e15})
		br.Trip()
		return br
	}
	for _, bench := range []struct {
		name    string
		breaker *Breaker
		want    error
	}{
		{"closed", New("payments-api", Config{}), nil},
		{"closed, watching for slow calls", New("payments-api", Config{SlowCall: 1e9}), nil},
		{"closed, by the last calls", New("payments-api", Config{Calls: 100}), nil},
		{"open", tripped(), ErrCircuitOpen},
		{"forced open", open(), ErrCircuitOpen},
	} {
		b.Run(bench.name+"/serial", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := bench.breaker.Do(ctx, nothing); !errors.Is(err, bench.want) {
					b.Fatal(err)
				}
			}
		})
		b.Run(bench.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := bench.breaker.Do(ctx, nothing); !errors.Is(err, bench.want) {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
