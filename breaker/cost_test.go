package breaker

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/internal/instant"
	"github.com/switchgear-go/switchgear/policy"
)

func TestNeitherACallNorARefusalAllocates(t *testing.T) {
	open := func(cfg Config, then ...func(*Breaker)) *Breaker {
		b := New("payments-api", cfg)
		for _, do := range then {
			do(b)
		}
		return b
	}
	halfOpen := func(b *Breaker) { b.Trip(); b.Probe(); _, _ = b.Allow(context.Background()) }
	ctx := context.Background()
	refused := policy.Rejection("bulkhead", "", nil, time.Time{}, nil)
	tests := []struct {
		name    string
		breaker *Breaker
		result  error
	}{
		{"closed", New("payments-api", Config{}), nil},
		{"closed, watching for slow calls", New("payments-api", Config{SlowCall: time.Hour}), nil},
		{"closed, by the last calls", New("payments-api", Config{Calls: 100, Failures: 100}), nil},
		{"closed, failing", New("payments-api", Config{FailureRatio: -1, Failures: 1000, Window: time.Nanosecond}), errDown},
		{"closed, ignored", New("payments-api", Config{}), refused},
		{"forced closed", open(Config{}, (*Breaker).ForceClosed), errDown},
		{"open", open(Config{}, (*Breaker).Trip), nil},
		{"half-open", open(Config{}, halfOpen), nil},
		{"forced open", open(Config{}, (*Breaker).ForceOpen), nil},
		{"shadow", open(Config{Shadow: true}, (*Breaker).Trip), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fn := func(context.Context) error { return tt.result }
			for range 2000 { // windows and spare parts grow to what they need
				_ = tt.breaker.Do(ctx, fn)
			}
			assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = tt.breaker.Do(ctx, fn) }), "Do")
			assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = tt.breaker.DoAt(ctx, call.Instant(instant.Now()), fn) }), "DoAt")
		})
	}
}
