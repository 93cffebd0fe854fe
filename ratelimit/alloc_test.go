package ratelimit

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAllocations(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		cfg  Config
		want error
	}{
		"granted":     {Config{Rate: 1e9, Burst: math.MaxInt32}, nil},
		"no limit":    {Config{Rate: math.Inf(1)}, nil},
		"refused":     {Config{Rate: 1e-6}, ErrLimited},
		"by MaxWait":  {Config{Rate: 1e-6, MaxWait: 1}, ErrLimited},
		"none to get": {Config{}, ErrLimited},
		"shadow":      {Config{Rate: 1e-6, Shadow: true}, nil},
	} {
		for _, l := range []*Limiter{quiet(c.cfg), New("search", c.cfg)} {
			_ = l.Do(ctx, succeed)
			_ = l.Do(ctx, succeed) // makes the error of all refusals to come
			require.ErrorIs(t, l.Do(ctx, succeed), c.want, name)
			assert.Zero(t, testing.AllocsPerRun(100, func() { _ = l.Do(ctx, succeed) }), name)
		}
	}
}
