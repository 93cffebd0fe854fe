package policytest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

func TestARecorderKeepsEventsAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Recorder
		assert.Equal(t, "none", r.String())
		b := breaker.New("api", breaker.Config{Consecutive: 1, Cooldown: time.Second, Jitter: -1, Observer: &r})
		_ = b.Do(t.Context(), func(context.Context) error { return errDown })
		time.Sleep(time.Second / 2)
		_ = b.Do(t.Context(), OK)

		assert.Equal(t, "open(api, consecutive_failures, 1s) → reject(breaker, api, open, rejected)", r.String())
		assert.Len(t, r.Events(), 2)
		require.NoError(t, r.Match("open → reject(breaker)"))
		require.NoError(t, r.Match("open@0s -> ..."))
		require.NoError(t, r.Match("… → reject(api)@500ms"))
		require.EqualError(t, r.Match("reject"), "policytest: events are open(api, consecutive_failures, 1s) → reject(breaker, api, open, rejected), want reject")
		require.Error(t, r.Match("open@1s → reject"))
		require.ErrorContains(t, r.Match("open@soon"), "cannot read the time")

		assert.EqualValues(t, 1, r.Count("circuit_breaker.calls(closed, failure)"))
		assert.EqualValues(t, 1, r.Count("switchgear.circuit_breaker.transitions(api, closed, open)"))
		assert.EqualValues(t, 0, r.Count("circuit_breaker.transitions(open, closed)"), "arguments keep their order; what is not reported yet is 0")
		assert.EqualValues(t, 2, r.Count("circuit_breaker.calls"))
		assert.EqualValues(t, time.Second/2, r.Count("circuit_breaker.time(open)"))
		assert.EqualValues(t, 1, r.Rows()["circuit_breaker.status(api, open)"])
		assert.NotContains(t, r.Rows(), "circuit_breaker.status(api, forced_open)")
		assert.Equal(t, "open", r.State("api"))
		assert.Equal(t, "open", r.State(""))
		assert.Empty(t, r.State("mail"))
		assert.PanicsWithError(t, `policytest: cannot read "(": want something like retry, reject(breaker), open(api)@2s or retry×3`, func() { r.Count("(") })
		assert.Panics(t, func() { r.Count("circuit_breaker.calls(halfopen)") })

		r.Reset()
		assert.Equal(t, "none", r.String())
		assert.EqualValues(t, 2, r.Count("circuit_breaker.calls"), "numbers are the policy's own")
	})
}

func TestARecorderKeepsDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Recorder
		b := bulkhead.New("db", bulkhead.Config{Max: 1, Queue: 1, Observer: &r})
		release, err := b.Acquire(t.Context())
		require.NoError(t, err)
		time.AfterFunc(time.Second, release)
		require.NoError(t, b.Do(t.Context(), OK))
		assert.Equal(t, []time.Duration{time.Second}, r.Durations("bulkhead.wait.duration(acquired)"))
		assert.Empty(t, r.Durations("bulkhead.wait.duration(canceled)"))
		assert.Panics(t, func() { r.Durations("bulkhead.wait") })
		r.Reset()
		assert.Empty(t, r.Durations("bulkhead.wait.duration"))
	})
}

func TestARecorderThatNobodyReportsToSaysSo(t *testing.T) {
	var r Recorder
	assert.PanicsWithError(t, `policytest: no row matches "retry.calls": no policy reports to this observer`, func() { r.Count("retry.calls") })
}

func TestEventsAsText(t *testing.T) {
	for _, tt := range []struct {
		event observe.Event
		want  string
	}{
		{observe.Event{Kind: observe.StateChange, Policy: "circuit_breaker", Name: "api", From: "closed", To: "open", Reason: "failure_ratio", Delay: time.Second}, "open(api, failure_ratio, 1s)"},
		{observe.Event{Kind: observe.StateChange, Policy: "circuit_breaker", Name: "api", To: "half_open", Reason: "cooldown_elapsed"}, "half_open(api, cooldown_elapsed)"},
		{observe.Event{Kind: observe.Rejected, Policy: "rate_limiter", Name: "api", Reason: "rejected"}, "reject(limiter, api, rejected)"},
		{observe.Event{Kind: observe.Attempt, Policy: "retry", Name: "p", Attempt: 2}, "retry(p, 2, 0s)"},
		{observe.Event{Kind: observe.Exhausted, Policy: "retry", Name: "p", Reason: "deadline", Attempt: 3}, "exhausted(p, deadline, 3)"},
		{observe.Event{Kind: observe.TimedOut, Policy: "timeout", Name: "p", Delay: time.Second}, "timeout(p, 1s)"},
		{observe.Event{Kind: observe.Hedged, Policy: "hedge", Name: "p", Attempt: 2, Delay: ms, Reason: "budget_exhausted"}, "hedge(p, 2, 1ms, budget_exhausted)"},
		{observe.Event{Kind: observe.FellBack, Policy: "fallback", Name: "p"}, "fallback(p)"},
		{observe.Event{Kind: observe.FellBack, Policy: "fallback"}, "fallback"},
		{observe.Event{Kind: 99, Policy: "cache", Name: "p"}, "unknown(cache, p)"},
	} {
		assert.Equal(t, tt.want, eventTerm(tt.event, 0).String())
	}
}

func TestSequencesMatch(t *testing.T) {
	terms := func(text string) (terms []term) {
		seq, err := parseSequence(text)
		require.NoError(t, err)
		for _, w := range seq {
			terms = append(terms, w.term)
		}
		return terms
	}
	for _, tt := range []struct {
		got, want string
		over      int
	}{
		{"none", "none", 0},
		{"none", "", 0},
		{"none", "…", 0},
		{"none", "… → …", 0},
		{"none", "a", 1},
		{"a", "none", 1},
		{"a → b → c", "a → b → c", 0},
		{"a → b → c", "a -> b->c", 0},
		{"a → b → c", "…", 0},
		{"a → b → c", "… → c", 0},
		{"a → b → c", "a → …", 0},
		{"a → b → c", "… → b → …", 0},
		{"a → b → c", "… → b", 1},
		{"a → b → c", "a → c", 1},
		{"a → b → c", "a → x → c", 2},
		{"a → b → c", "c → b → a", 4},
		{"a → a → a", "a×3", 0},
		{"a → a → a", "a * 2 → a", 0},
		{"a → a → a", "a×4", 1},
		{"a(x, y, z)", "a", 0},
		{"a(x, y, z)", "a()", 0},
		{"a(x, y, z)", "a(x)", 0},
		{"a(x, y, z)", "a(x, z)", 0},
		{"a(x, y, z)", "a(z, x)", 2},
		{"a(x, y, z)", "a(x, x)", 2},
		{"a(x@y, z)", "a(x@y)", 0},
		{"a(x)", "b(x)", 2},
	} {
		seq, err := parseSequence(tt.want)
		require.NoError(t, err, tt.want)
		pairs, over := align(terms(tt.got), seq)
		assert.Equal(t, tt.over, over, "%s against %s", tt.got, tt.want)
		unpaired := 0
		for _, p := range pairs {
			if p.got < 0 || p.want < 0 {
				unpaired++
			}
		}
		assert.Equal(t, over, unpaired, "%s against %s", tt.got, tt.want)
	}
}

func TestARecorderOutlivesPolicies(t *testing.T) {
	var r Recorder
	p := policy.NewPipeline("p", policy.Timeout(time.Second)).Observed(&r)
	require.NoError(t, p.Do(t.Context(), OK))
	assert.EqualValues(t, 1, r.Count("timeout.calls(completed)"))
	assert.Len(t, r.Durations("pipeline.duration(success)"), 1)
	assert.EqualValues(t, 0, r.Count("pipeline.active"))
}
