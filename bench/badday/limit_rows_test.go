package badday

import (
	"context"
	"sync"
	"testing/synctest"
	"time"
)

const limits = "Bulkheads and rate limits"

// afterBadCalls ends calls in the same bad way and looks whether their permits have come back.
func afterBadCalls(fn func(context.Context) error) func(l *library) verdict {
	return func(l *library) verdict {
		if l.bulkhead == nil {
			return lacks
		}
		g := l.bulkhead(2, false)
		for range 2 {
			attempt(g, fn)
		}
		return unless(admits(g), "is full for good")
	}
}

var limitRows = []row{
	{
		id: "permit-panics", table: limits,
		text:  "A call that panics gives its permit back",
		hurts: "Each panic that some handler up the stack recovers takes a bit of the service away, until nothing is left.",
		run:   afterBadCalls(panics),
	},
	{
		id: "permit-exits", table: limits,
		text:  "So does one that ends by `runtime.Goexit`",
		hurts: "As above, without even a panic in the log.",
		run:   afterBadCalls(exits),
	},
	{
		id: "waiters-leave", table: limits, report: "failsafe-lib/failsafe#393",
		text:  "A hundred waiters that give up take no permit with them",
		hurts: "Every burst that the limit sheds makes the limit smaller.",
		run: func(l *library) verdict {
			if l.bulkhead == nil {
				return lacks
			}
			g, busy := l.bulkhead(8, true), make(gate)
			var calls []*call
			for range 8 {
				calls = append(calls, start(context.Background(), g, busy.wait))
			}
			synctest.Wait()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			for range 100 {
				calls = append(calls, start(ctx, g, fine))
			}
			time.Sleep(2 * time.Second)
			close(busy)
			waitFor(calls)
			fresh, now := make(gate), 0
			calls = nil
			for range 8 {
				calls = append(calls, start(context.Background(), g, fresh.wait))
			}
			synctest.Wait()
			for _, c := range calls {
				if c.ran.Load() {
					now++
				}
			}
			close(fresh)
			waitFor(calls)
			return unless(now == 8, "%d of 8 are left", now)
		},
	},
	{
		id: "outlives-timeout", table: limits,
		text:  "A limit of one stays one when calls outlive their timeout",
		hurts: "The dependency that is too slow already gets one more call for each that was given up.",
		run: func(l *library) verdict {
			if l.bulkhead == nil || l.timeout == nil {
				return lacks
			}
			limit, cut, open := l.bulkhead(1, true), l.timeout(time.Second), make(gate)
			var mu sync.Mutex
			running, most := 0, 0
			deaf := func(ctx context.Context) error {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				defer func() {
					mu.Lock()
					running--
					mu.Unlock()
				}()
				return open.wait(ctx)
			}
			var calls []*call
			for range 5 {
				calls = append(calls, start(context.Background(), guardFunc(func(ctx context.Context, fn func(context.Context) error) error {
					return limit.Do(ctx, func(ctx context.Context) error { return cut.Do(ctx, fn) })
				}), deaf))
				time.Sleep(2 * time.Second)
			}
			close(open)
			waitFor(calls)
			synctest.Wait()
			return unless(most == 1, "%d run at once", most)
		},
	},
	{
		id: "waiters-token", table: limits, report: "golang/go#56924",
		text:  "A thousand calls that give up waiting for a token cost none",
		hurts: "Those who come after an overload wait for the tokens of callers who are long gone.",
		run: func(l *library) verdict {
			if l.limiter == nil {
				return lacks
			}
			g := l.limiter(10)
			admits(g)
			var calls []*call
			var leave []context.CancelFunc
			for range 1000 {
				ctx, cancel := context.WithCancel(context.Background())
				calls, leave = append(calls, start(ctx, g, fine)), append(leave, cancel)
				synctest.Wait()
			}
			for i, cancel := range leave { // in the order in which they came
				cancel()
				<-calls[i].done
			}
			begin := time.Now()
			admits(g)
			waited := time.Since(begin)
			return unless(waited <= 100*time.Millisecond, "the next one waits %v instead of 100ms", waited)
		},
	},
	{
		id: "token-too-late", table: limits,
		text:  "A call whose token comes after its deadline is refused at once",
		hurts: "It waits for nothing, and may take the token with it.",
		run: func(l *library) verdict {
			if l.limiter == nil {
				return lacks
			}
			g := l.limiter(1)
			admits(g)
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			begin := time.Now()
			<-start(ctx, g, fine).done
			return unless(time.Since(begin) < 20*time.Millisecond, "waits %v for nothing", time.Since(begin))
		},
	},
	{
		id: "no-rate", table: limits, report: "fluxcd/flux#1317",
		text:  "A rate of zero refuses, and does not wait for ever",
		hurts: "The switch that turns a client off leaves a goroutine behind for every call.",
		run: func(l *library) verdict {
			if l.limiter == nil {
				return lacks
			}
			g := l.limiter(0)
			if g == nil {
				return lacks
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			<-start(ctx, g, fine).done // the burst
			begin := time.Now()
			time.AfterFunc(24*time.Hour, cancel)
			<-start(ctx, g, fine).done
			return unless(time.Since(begin) < time.Second, "waits for ever")
		},
	},
}
