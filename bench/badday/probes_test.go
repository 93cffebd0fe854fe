package badday

import (
	"context"
	"testing/synctest"
	"time"
)

const (
	breakers = "Circuit breakers"
	cooldown = 5 * time.Second
	crowd    = 50
	longTime = time.Hour
)

var fiveInARow = rule{inARow: 5, cooldown: cooldown}

// opened returns a breaker that has just opened.
func opened(l *library) guard {
	g := l.breaker(fiveInARow)
	fail(g, 5)
	return g
}

// halfOpen returns a breaker that opened and whose cooldown is over.
func halfOpen(l *library) guard {
	g := opened(l)
	time.Sleep(cooldown + time.Millisecond)
	return g
}

// rush starts a crowd of calls and returns how many of them run.
func rush(ctx context.Context, g guard, fn func(context.Context) error) (calls []*call, ran int) {
	for range crowd {
		calls = append(calls, start(ctx, g, fn))
	}
	synctest.Wait()
	for _, c := range calls {
		if c.ran.Load() {
			ran++
		}
	}
	return calls, ran
}

// afterBadProbes ends probe after probe in the same bad way and looks whether the breaker recovers from that.
func afterBadProbes(fn func(context.Context) error) func(l *library) verdict {
	return func(l *library) verdict {
		if l.breaker == nil {
			return lacks
		}
		g := halfOpen(l)
		for range crowd {
			attempt(g, fn)
			time.Sleep(time.Minute)
		}
		time.Sleep(longTime)
		return unless(admits(g), "refuses every call from then on")
	}
}

var probeRows = []row{
	{
		id: "half-open", table: breakers, report: "antflydb/termite#27",
		text:  "Of 50 callers that meet a half-open breaker, one reaches the dependency",
		hurts: "What has just got up is run over by everybody who waited for it.",
		run: func(l *library) verdict {
			if l.breaker == nil {
				return lacks
			}
			g, release := halfOpen(l), make(gate)
			calls, ran := rush(context.Background(), g, release.wait)
			close(release)
			waitFor(calls)
			return unless(ran == 1, "%d of %d do", ran, crowd)
		},
	},
	{
		id: "probe-hangs", table: breakers, report: "diegosouzapw/OmniRoute#13836",
		text:  "A probe that never returns does not block the breaker for good",
		hurts: "One lost connection keeps a service away from a healthy dependency until somebody restarts it.",
		run: func(l *library) verdict {
			if l.breaker == nil {
				return lacks
			}
			g, release := halfOpen(l), make(gate)
			calls, _ := rush(context.Background(), g, release.wait)
			time.Sleep(longTime)
			again := start(context.Background(), g, fine)
			synctest.Wait()
			close(release)
			waitFor(append(calls, again))
			return unless(again.ran.Load(), "refuses every call from then on")
		},
	},
	{
		id: "probe-panics", table: breakers, report: "afreidah/s3-orchestrator#424",
		text:  "A probe that panics gives its slot back",
		hurts: "The bug in one handler becomes an outage of everything behind the breaker.",
		run:   afterBadProbes(panics),
	},
	{
		id: "probe-exits", table: breakers,
		text:  "So does one that ends by `runtime.Goexit`",
		hurts: "A `t.Fatal`, or a library that ends its goroutine, leaves no trace but a breaker that stays shut.",
		run:   afterBadProbes(exits),
	},
	{
		id: "probe-canceled", table: breakers, report: "monix/monix#1080",
		text:  "A probe whose caller gives up counts for nothing: the next call may probe",
		hurts: "A user who closes the page keeps the circuit open for everybody else.",
		run: func(l *library) verdict {
			if l.breaker == nil {
				return lacks
			}
			g := halfOpen(l)
			ctx, cancel := context.WithCancel(context.Background())
			calls, _ := rush(ctx, g, untilDone)
			cancel()
			waitFor(calls)
			return unless(admits(g), "the next call is refused")
		},
	},
	{
		id: "late-success", table: breakers, report: "vert-x3/vertx-circuit-breaker#14",
		text:  "A success from before the breaker opened does not close it",
		hurts: "A slow answer from better times sends the traffic back to a dependency that is down.",
		run: func(l *library) verdict {
			return lateResult(l, nil, errDown, func(g guard) verdict {
				return unless(!admits(g), "the probe fails, and calls go on")
			})
		},
	},
	{
		id: "late-failure", table: breakers,
		text:  "A failure from before it opened does not count against a probe",
		hurts: "The last of the calls that hung during the outage reopen the circuit after it.",
		run: func(l *library) verdict {
			return lateResult(l, errDown, nil, func(g guard) verdict {
				return unless(admits(g), "the probe succeeds, and calls are refused")
			})
		},
	},
}

// lateResult has a call end while the breaker probes that was let through before it opened, then the probe.
func lateResult(l *library, late, probe error, then func(guard) verdict) verdict {
	if l.breaker == nil {
		return lacks
	}
	g := l.breaker(fiveInARow)
	before, probing := make(gate, 1), make(gate, 1)
	old := start(context.Background(), g, before.wait)
	synctest.Wait()
	fail(g, 5)
	time.Sleep(cooldown + time.Millisecond)
	first := start(context.Background(), g, probing.wait)
	synctest.Wait()
	before <- late
	<-old.done
	probing <- probe
	<-first.done
	return then(g)
}

func waitFor(calls []*call) {
	for _, c := range calls {
		<-c.done
	}
}
