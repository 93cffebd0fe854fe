package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func s(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
}

// anOutage is a small history by hand: down from 1s to 3s, two requests fail, the breaker opens at 1.02s, the probe at 2.02s
// fails, that at 3.04s does not.
func anOutage() history {
	return history{
		down: s(1), up: s(3), end: s(5),
		calls: []call{
			{begin: s(.5), end: s(.51), sent: 1},
			{begin: s(1), end: s(1.02), sent: 2, answer: stale},
			{begin: s(1.5), end: s(1.5), answer: stale},
			{begin: s(2.5), end: s(2.5), answer: stale},
			{begin: s(2.02), end: s(2.52), sent: 1, answer: failed},
			{begin: s(3.04), end: s(3.06), sent: 1},
		},
		arrivals: []arrival{{s(.5), false}, {s(1), true}, {s(1.01), true}, {s(2.02), true}, {s(3.04), false}},
		changes: []change{
			{at: s(1.02), from: closed, to: open, reason: "consecutive_failures", cooldown: s(1)},
			{at: s(2.02), from: open, to: halfOpen, reason: "cooldown_elapsed"},
			{at: s(2.04), from: halfOpen, to: open, reason: "probe_failed", cooldown: s(1)},
			{at: s(3.04), from: open, to: halfOpen, reason: "cooldown_elapsed"},
			{at: s(3.05), from: halfOpen, to: closed, reason: "probe_succeeded"},
		},
	}
}

func TestStatistics(t *testing.T) {
	h := anOutage()
	made, refused := h.whileOpen()
	assert.Equal(t, 2, made)
	assert.Equal(t, 2, refused)
	opened, ok := h.opened()
	assert.True(t, ok)
	assert.Equal(t, s(.02), opened)
	recovery, ok := h.recovery()
	assert.True(t, ok)
	assert.Equal(t, s(.06), recovery)
	assert.Equal(t, s(.04), h.cooldownRest())
	assert.Equal(t, 2, h.beforeOpening())
	assert.Equal(t, 1, h.halfOpenCalls())
	assert.Zero(t, h.lastError())
	assert.False(t, h.openedByCancellation())

	assert.Equal(t, closed, h.stateAt(s(1)))
	assert.Equal(t, open, h.stateAt(s(1.02)), "from the very moment on")
	assert.Equal(t, halfOpen, h.stateAt(s(2.03)))
	assert.Equal(t, closed, h.stateAt(s(5)))

	want := interval{calls: 2, reached: 2, reachedFailing: 2, refused: 1, stale: 2, p50: 0, p99: s(.02)}
	assert.Equal(t, want, h.between(s(1), s(2)))
	assert.Equal(t, interval{}, h.between(s(4), s(5)))
}

func TestPercentiles(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	assert.EqualValues(t, 0, percentile(nil, 99))
	assert.EqualValues(t, 7, percentile([]time.Duration{7}, 1))
	assert.EqualValues(t, 50, percentile(hundred, 50))
	assert.EqualValues(t, 99, percentile(hundred, 99))
	assert.EqualValues(t, 100, percentile(hundred, 100))
	assert.EqualValues(t, 2, percentile([]time.Duration{1, 2, 3}, 50))
}

func TestClaims(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(h *history)
		broken string // part of the claim that does not hold; empty: all hold
	}{
		{"an outage that goes well", func(*history) {}, ""},
		{"two calls at half-open", func(h *history) {
			h.arrivals = append(h.arrivals, arrival{s(2.03), true})
		}, "half-open: 2"},
		{"no call at half-open", func(h *history) { h.arrivals = h.arrivals[:3] }, "half-open: 0"},
		{"a call that gets through an open breaker", func(h *history) {
			h.calls = append(h.calls, call{begin: s(2.5), end: s(2.51), sent: 1, answer: failed})
		}, "2 of 3"},
		{"no call while open", func(h *history) { h.calls = h.calls[4:] }, "0 of 0"},
		{"a breaker that never opens", func(h *history) { h.changes = nil }, "half-open: 0"},
		{"no answer after the outage", func(h *history) { h.calls = h.calls[:5] }, "no answer"},
		{"a recovery that takes its time", func(h *history) { h.calls[5].end = s(3.6) }, "600ms of 60.0ms"},
		{"a probe that hangs when the server comes back", func(h *history) {
			h.changes[2].at, h.changes[3].at, h.changes[4].at = s(3.2), s(4.2), s(4.21)
			h.arrivals[4].at = s(4.2)
			h.calls[5] = call{begin: s(4.2), end: s(4.21), sent: 1}
		}, ""},
		{"a breaker that opens again though the server is well", func(h *history) {
			h.changes[4] = change{at: s(3.05), from: halfOpen, to: open, cooldown: s(1)}
			h.changes = append(h.changes, change{at: s(4.05), from: open, to: halfOpen}, change{at: s(4.06), from: halfOpen, to: closed})
			h.calls[5] = call{begin: s(4.05), end: s(4.06), sent: 1}
		}, "1.06s of 60.0ms"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := anOutage()
			tc.change(&h)
			assert.Equal(t, tc.broken == "", h.result().OK)
			if tc.broken == "" {
				assert.NoError(t, h.broken())
			} else {
				assert.ErrorContains(t, h.broken(), tc.broken)
			}
		})
	}
}

func TestResult(t *testing.T) {
	h := anOutage()
	assert.Equal(t, result{HalfOpenCalls: 1, Refused: 2, OpenedMS: 20, RecoveryMS: 60, OK: true}, h.result())
}

func TestOpeningsByCancellationAreFound(t *testing.T) {
	h := anOutage()
	h.changes = append(h.changes, change{at: s(5), from: closed, to: open})
	assert.True(t, h.openedByCancellation())
}
