package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// inMemory is a network of pipes, for whole runs inside a bubble of testing/synctest, where a second takes no time.
func inMemory() (net.Listener, func(context.Context, string, string) (net.Conn, error), error) {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	return l, l.dial, nil
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "in.memory" }

// newDemo returns the program as args make it, on a network in memory.
func newDemo(t *testing.T, stdout *bytes.Buffer, args ...string) *demo {
	t.Helper()
	d, err := parse(args, stdout, &bytes.Buffer{})
	require.NoError(t, err)
	d.network = inMemory
	d.reader = metric.NewManualReader()
	d.observer = otelx.New(otelx.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(d.reader))))
	return d
}

func TestTheProgramKeepsItsClaims(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "outage.svg")
	var stdout bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, newDemo(t, &stdout, "-svg", picture).play(t.Context()))
	})
	text := stdout.String()
	for _, want := range []string{
		"closed → open: consecutive failures, cooldown 1s",
		"half_open → closed: probe succeeded",
		"✓ exactly 1 call reaches the server at half-open: 1\n",
		"switchgear.circuit_breaker.transitions",
	} {
		assert.Contains(t, text, want)
	}
	assert.Equal(t, 2, strings.Count(text, "the server is back"), "once in each run")
	assert.NotContains(t, text, "✗")
	assert.NotContains(t, text, "\x1b[", "colours, where there is no terminal")
	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	assert.NoError(t, wellFormed(svg))
}

func TestCooldownsGrowInALongOutage(t *testing.T) {
	const outage = 5 * time.Second // long enough also where probes hang
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		pipeline := newPipeline(growthFor(outage), observe.Func(r.observe))
		h, err := trial{network: inMemory, outage: outage, watch: func(*history) {}}.run(t.Context(), r, withPipeline(pipeline))
		require.NoError(t, err)
		require.NoError(t, h.broken())
		var cooldowns []time.Duration
		for _, s := range h.stays() {
			if s.state == open {
				cooldowns = append(cooldowns, s.cooldown)
			}
		}
		assert.Equal(t, []time.Duration{s(1), s(2), s(4)}, cooldowns[:3])
	})
}

func TestJSONIsAllThatIsPrinted(t *testing.T) {
	var stdout bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, newDemo(t, &stdout, "-json", "-svg", "", "-duration", "500ms").play(t.Context()))
	})
	var got map[string]map[string]any
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &got))
	require.Len(t, got, 2)
	for _, run := range []string{"with", "without"} {
		require.Len(t, got[run], 5, run)
		for _, key := range []string{"half_open_calls", "refused", "opened_ms", "recovery_ms"} {
			assert.IsType(t, 0.0, got[run][key], "%s %s", run, key)
		}
	}
	assert.Equal(t, true, got["with"]["ok"])
	assert.Equal(t, false, got["without"]["ok"])
	assert.EqualValues(t, 1, got["with"]["half_open_calls"])
	assert.InDelta(t, 10, got["with"]["opened_ms"], 20)
	assert.EqualValues(t, 0, got["without"]["refused"])
}

func TestAnInterruptEndsTheProgram(t *testing.T) {
	var stdout bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond) // in the middle of the outage
		defer cancel()
		err := newDemo(t, &stdout, "-json", "-svg", "").play(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
	assert.Empty(t, stdout.String())
}

func TestArguments(t *testing.T) {
	for _, tc := range []struct {
		args   []string
		status int
		stderr string
	}{
		{[]string{"-h"}, statusOK, "-duration"},
		{[]string{"-duration", "soon"}, statusUsage, "invalid value"},
		{[]string{"-duration", "1ms"}, statusUsage, "-duration is 1ms, must be from 100ms to 1m"},
		{[]string{"now"}, statusUsage, `unexpected argument "now"`},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, tc.status, run(t.Context(), tc.args, &stdout, &stderr), "%v", tc.args)
		assert.Contains(t, stderr.String(), tc.stderr, "%v", tc.args)
		assert.Empty(t, stdout.String(), "%v", tc.args)
	}
}
