package bulkhead

import (
	"context"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAllocations(t *testing.T) {
	ctx := context.Background()
	fn := func(context.Context) error { return nil }
	for name, cfg := range map[string]Config{
		"plain":             {Max: 1},
		"a queue":           {Max: 1, Queue: 1},
		"shadow":            {Max: 1, Shadow: true},
		"the usual default": {Max: 1},
	} {
		b := quiet(cfg)
		if name == "the usual default" {
			cfg.Observer = nil
			b = New("payments", cfg)
		}
		assert.Zero(t, testing.AllocsPerRun(100, func() { _ = b.Do(ctx, fn) }), name)
		hold(t, b, 1)
		for range cfg.Queue {
			b.enqueue(t)
		}
		assert.Zero(t, testing.AllocsPerRun(100, func() { _ = b.Do(ctx, fn) }), "%s: none free", name)
	}
}

func TestWhatEveryCallChangesIsOneCacheLine(t *testing.T) {
	require.EqualValues(t, 64, unsafe.Sizeof(leaf{}))
}
