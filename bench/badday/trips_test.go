package badday

import (
	"context"
	"testing/synctest"
	"time"
)

// breakerOf returns the library's breaker, if it has one with that rule.
func breakerOf(l *library, r rule) guard {
	if l.breaker == nil {
		return nil
	}
	return l.breaker(r)
}

const window = 10 * time.Second

var (
	fiveInWindow = rule{failures: 5, window: window, cooldown: cooldown}
	someRatio    = func(minimum int) rule { return rule{ratio: .29, minimum: minimum, window: window, cooldown: cooldown} }
)

var tripRows = []row{
	{
		id: "cancellations", table: breakers, report: "rubyist/circuitbreaker#42",
		text:  "A hundred callers that give up do not open it",
		hurts: "A deployment, which cancels what is in flight, opens every circuit of a healthy system.",
		run: func(l *library) verdict {
			g := breakerOf(l, fiveInARow)
			if g == nil {
				return lacks
			}
			abandon(g, 100)
			return unless(admits(g), "opens")
		},
	},
	{
		id: "cancellations-count", table: breakers,
		text:  "Nor are they taken for successes",
		hurts: "Users who give up on a dead dependency hide from the breaker that it is dead.",
		run: func(l *library) verdict {
			g := breakerOf(l, fiveInARow)
			if g == nil {
				return lacks
			}
			fail(g, 4)
			abandon(g, 100)
			if !fail(g, 1) {
				return failed("they count as failures")
			}
			return unless(!admits(g), "they count as successes")
		},
	},
	{
		id: "inner-refusals", table: breakers, report: "afreidah/s3-orchestrator#1472",
		text:  "Refusals of a bulkhead inside the breaker do not open it",
		hurts: "A limit that works as it should shuts a dependency off that works too.",
		run: func(l *library) verdict {
			g := breakerOf(l, fiveInARow)
			if g == nil || l.bulkhead == nil {
				return lacks
			}
			b := l.bulkhead(1, false)
			both := guardFunc(func(ctx context.Context, fn func(context.Context) error) error {
				return g.Do(ctx, func(ctx context.Context) error { return b.Do(ctx, fn) })
			})
			busy := make(gate)
			holder := start(context.Background(), both, busy.wait)
			synctest.Wait()
			for range 100 {
				attempt(both, fine)
			}
			close(busy)
			<-holder.done
			return unless(admits(both), "opens")
		},
	},
	{
		id: "slower-than-window", table: breakers,
		text:  "Failures that take longer than the window open it",
		hurts: "When everything runs into its timeout, the one time it matters, the breaker sees nothing.",
		run: func(l *library) verdict {
			g := breakerOf(l, fiveInWindow)
			if g == nil {
				return lacks
			}
			slow := func(context.Context) error {
				time.Sleep(window * 3 / 2)
				return errDown
			}
			for range 20 {
				var calls []*call
				for range 10 {
					calls = append(calls, start(context.Background(), g, slow))
				}
				waitFor(calls)
				for _, c := range calls {
					if !c.ran.Load() {
						return verdict{}
					}
				}
			}
			return failed("stays closed through 200 of them")
		},
	},
	{
		id: "spread-thin", table: breakers, report: "vert-x3/vertx-circuit-breaker#24",
		text:  "One failure a minute opens nothing that counts five in ten seconds",
		hurts: "Failures that nobody would notice add up until one of them, hours later, opens the circuit.",
		run: func(l *library) verdict {
			g := breakerOf(l, fiveInWindow)
			if g == nil {
				return lacks
			}
			for range 60 {
				fail(g, 1)
				time.Sleep(time.Minute)
			}
			return unless(admits(g), "opens")
		},
	},
	{
		id: "far-apart", table: breakers,
		text:  "Five failures in a row open it, however far apart",
		hurts: "A dependency that is called now and then is never found to be down.",
		run: func(l *library) verdict {
			g := breakerOf(l, fiveInARow)
			if g == nil {
				return lacks
			}
			fail(g, 1)
			for range 4 {
				time.Sleep(2 * time.Minute)
				fail(g, 1)
			}
			return unless(!admits(g), "stays closed")
		},
	},
	{
		id: "across-the-edge", table: breakers,
		text:  "Five failures within a second open it, wherever in the window they come",
		hurts: "An outage that begins near the end of a fixed window gets a second helping of calls.",
		run: func(l *library) verdict {
			g := breakerOf(l, fiveInWindow)
			if g == nil {
				return lacks
			}
			admits(g)
			time.Sleep(window - 500*time.Millisecond)
			fail(g, 3)
			time.Sleep(time.Second - time.Millisecond)
			fail(g, 2)
			return unless(!admits(g), "stays closed")
		},
	},
	{
		id: "ratio", table: breakers,
		text:  "A ratio is not rounded: 29 of 100 open it at 0.29, 289 of 1,000 do not",
		hurts: "The threshold that was agreed on is not the one that is kept.",
		run: func(l *library) verdict {
			if breakerOf(l, someRatio(100)) == nil {
				return lacks
			}
			opens := func(failures, calls int) bool {
				g := l.breaker(someRatio(calls))
				for range calls - failures {
					attempt(g, fine)
				}
				fail(g, failures)
				return !admits(g)
			}
			if !opens(29, 100) {
				return failed("stays closed at 29 of 100")
			}
			return unless(!opens(289, 1000), "opens at 289 of 1,000")
		},
	},
	{
		id: "hook", table: breakers, report: "sony/gobreaker#37", apart: true,
		text:  "A hook that is told of a change may call the breaker",
		hurts: "A log line that says how many calls are counted deadlocks the service, at the start of an outage.",
		run: func(l *library) verdict {
			r, told := fiveInARow, 0
			var g guard
			r.onChange = func() {
				told++
				_ = g.Do(context.Background(), fine) // whether it runs is not the question
			}
			if g = breakerOf(l, r); g == nil {
				return lacks
			}
			fail(g, 5)
			return unless(told > 0, "nobody was told")
		},
	},
	{
		id: "done-context", table: breakers, report: "zeromicro/go-zero#4091",
		text:  "Calls whose deadline has passed do not run, and count for nothing",
		hurts: "A caller that is late, such as a queue that is behind, opens the circuit of a dependency that it never asked.",
		run: func(l *library) verdict {
			g := breakerOf(l, fiveInARow)
			if g == nil {
				return lacks
			}
			ran := callLate(g, 10)
			switch {
			case !admits(g):
				return failed("they run, and open it")
			case ran > 0:
				return failed("they run")
			}
			return verdict{}
		},
	},
}

// abandon makes n calls whose callers give up.
func abandon(g guard, n int) {
	ctx, cancel := context.WithCancel(context.Background())
	var calls []*call
	for range n {
		calls = append(calls, start(ctx, g, untilDone))
	}
	synctest.Wait()
	cancel()
	waitFor(calls)
}

// callLate makes n calls under a deadline that has passed, and returns how many ran.
func callLate(g guard, n int) (ran int) {
	ctx, cancel := context.WithTimeout(context.Background(), -time.Second)
	defer cancel()
	for range n {
		c := start(ctx, g, func(ctx context.Context) error { return ctx.Err() })
		<-c.done
		if c.ran.Load() {
			ran++
		}
	}
	return ran
}
