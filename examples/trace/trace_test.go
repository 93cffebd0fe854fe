package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheTraceTellsWhatHappenedAndIsDrawn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.svg")
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), []string{"-svg", file}, &out, io.Discard))
		for _, want := range []string{"GET /quote", "  pipeline quotes", "attempt 2", "circuit_breaker.state_change  state=open previous_state=closed", "fallback.used"} {
			assert.Contains(t, out.String(), want)
		}
	})
	picture, err := os.ReadFile(file)
	require.NoError(t, err)
	d := xml.NewDecoder(bytes.NewReader(picture))
	for err == nil {
		_, err = d.Token()
	}
	require.ErrorIs(t, err, io.EOF)
}

func TestWhatTheTelemetryLacksIsNamed(t *testing.T) {
	c := call{spans: []span{{name: "GET /quote", failed: true}, {name: "pipeline quotes", events: []event{{name: "retry.attempt"}}}}}
	err := c.broken()
	require.Error(t, err)
	assert.Contains(t, err.Error(), "GET /quote: failed, though the fallback answered")
	assert.Contains(t, err.Error(), "lacks an event fallback.used")
	assert.NotContains(t, err.Error(), "retry.attempt")

	r := recording{started: 1, samples: []sample{
		{states: []string{"closed"}, calls: map[string]int64{"success": 2}},
		{at: time.Second, states: []string{"open", "closed"}},
		{at: 2 * time.Second, states: []string{"open"}, calls: map[string]int64{"success": 1}},
	}}
	err = r.broken()
	require.Error(t, err)
	for _, want := range []string{
		"1 spans started, 0 ended", `at 1s the breaker is in the states ["open" "closed"]`, "at 2s the count of success fell",
		"no collection saw it half_open", "did not close again",
	} {
		assert.Contains(t, err.Error(), want)
	}
}

func TestAnInterruptedRunSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	synctest.Test(t, func(t *testing.T) {
		require.ErrorIs(t, run(ctx, []string{"-svg", ""}, io.Discard, io.Discard), context.Canceled)
		require.Error(t, run(ctx, []string{"surplus"}, io.Discard, io.Discard))
	})
}

func TestALongEventGoesOnInTheNextLine(t *testing.T) {
	long := string(bytes.Repeat([]byte("x"), 110))
	lines := listed([]event{{name: "a", attrs: []string{"short", long}}, {name: "b"}})
	require.Len(t, lines, 3)
	assert.Equal(t, line{number: 1, name: "switchgear.a", attrs: "  short"}, lines[0])
	assert.Equal(t, line{attrs: "  " + long}, lines[1])
	assert.Equal(t, 2, lines[2].number)
}
