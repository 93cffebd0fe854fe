package badday

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing/synctest"
	"time"
)

const retries = "Retries"

var threeTimes = schedule{attempts: 3, first: 50 * time.Millisecond, longest: time.Second}

var retryRows = []row{
	{
		id: "open-breaker", table: retries, report: "dapr/dapr#8060",
		text:  "A retry does not ask an open breaker again",
		hurts: "Every call becomes a loop against a circuit that has said no, just when there are most of them.",
		run: func(l *library) verdict {
			if l.retry == nil {
				return lacks
			}
			from := l
			if l.breaker == nil { // what its users put there
				other := goBreaker()
				from = &other
			}
			b, asked := opened(from), 0
			_ = l.retry(schedule{attempts: 5, first: time.Millisecond, longest: time.Second}).Do(context.Background(), func(ctx context.Context) error {
				asked++
				return b.Do(ctx, fine)
			}) // it is refused
			return unless(asked == 1, "asks %d times", asked)
		},
	},
	{
		id: "amplification", table: retries, report: "apache/opendal#7376",
		text:  "In an outage, three attempts do not become three times the traffic",
		hurts: "A dependency that goes down under its load is kept down by the retries.",
		run: func(l *library) verdict {
			if l.retry == nil {
				return lacks
			}
			const callers, seconds = 100, 30
			var calls []*call
			var sent atomic.Int64
			r := l.retry(threeTimes)
			for range seconds * callers {
				time.Sleep(time.Second / callers)
				calls = append(calls, start(context.Background(), r, func(context.Context) error {
					sent.Add(1)
					time.Sleep(500 * time.Millisecond)
					return errDown
				}))
			}
			waitFor(calls)
			factor := float64(sent.Load()) / (callers * seconds)
			return unless(factor < 2, "sends %.1f times as much", factor)
		},
	},
	{
		id: "stacked", table: retries,
		text:  "A retry inside a retry does not multiply its attempts",
		hurts: "Three layers of three attempts each are 27 calls, and nobody wrote that number down.",
		run: func(l *library) verdict {
			if l.retry == nil {
				return lacks
			}
			inner, outer, sent := l.retry(threeTimes), l.retry(threeTimes), 0
			_ = outer.Do(context.Background(), func(ctx context.Context) error {
				return inner.Do(ctx, func(context.Context) error { sent++; return errDown })
			}) // it fails
			return unless(sent <= 5, "sends %d", sent)
		},
	},
	{
		id: "hint", table: retries,
		text:  "A server that asks to be left alone for a day does not hold a caller for a day",
		hurts: "One wrong header parks goroutines, connections and users until tomorrow.",
		run: func(l *library) verdict {
			if l.hinted == nil {
				return lacks
			}
			begin := time.Now()
			<-start(context.Background(), l.hinted(24*time.Hour), broken).done
			return unless(time.Since(begin) <= time.Hour, "waits %v", time.Since(begin))
		},
	},
	{
		id: "deadline", table: retries, report: "cenkalti/backoff#53",
		text:  "A wait that the deadline would cut short is not begun",
		hurts: "The caller waits for an answer that can no longer come, and holds what it holds.",
		run: func(l *library) verdict {
			if l.retry == nil {
				return lacks
			}
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			begin := time.Now()
			_ = l.retry(schedule{attempts: 3, first: time.Second, longest: time.Second}).Do(ctx, broken) // it fails
			return unless(time.Since(begin) < 20*time.Millisecond, "waits %v for nothing", time.Since(begin))
		},
	},
	{
		id: "last-error", table: retries, report: "temporalio/temporal#4403",
		text:  "A caller who gives up during a wait still gets the last error",
		hurts: "The log says “context canceled”, and what was wrong with the dependency is lost.",
		run: func(l *library) verdict {
			if l.retry == nil {
				return lacks
			}
			ctx, cancel := context.WithCancel(context.Background())
			c := start(ctx, l.retry(schedule{attempts: 3, first: time.Second, longest: time.Second}), broken)
			synctest.Wait()
			cancel()
			<-c.done
			return unless(errors.Is(c.err, errDown), "it is lost")
		},
	},
	{
		id: "shared", table: retries, report: "cenkalti/backoff#183",
		text:  "Two calls that share a retry do not disturb each other's waits",
		hurts: "Under load each call resets the others' backoff, and all of them hammer at the first interval.",
		run: func(l *library) verdict {
			if l.retry == nil {
				return lacks
			}
			r := l.retry(schedule{attempts: 6, first: 100 * time.Millisecond, longest: time.Minute})
			follow := func() (c *call, times *[]time.Duration) {
				times, begin := new([]time.Duration), time.Now()
				return start(context.Background(), r, func(context.Context) error {
					*times = append(*times, time.Since(begin)/time.Millisecond)
					return errDown
				}), times
			}
			one, first := follow()
			time.Sleep(50 * time.Millisecond)
			other, second := follow()
			waitFor([]*call{one, other})
			want := []time.Duration{0, 100, 300, 700, 1500, 3100}
			return unless(slices.Equal(*first, want) && slices.Equal(*second, want), "they do")
		},
	},
	{
		id: "overflow", table: retries, report: "avast/retry-go#30",
		text:  "The eightieth wait is no longer than the longest, and no shorter",
		hurts: "A wait that has overflowed is none: a call that has been patient for an hour becomes a hot loop.",
		run: func(l *library) verdict {
			if l.retry == nil {
				return lacks
			}
			var last, wait time.Duration
			begin := time.Now()
			_ = l.retry(schedule{attempts: 81, first: time.Second, longest: 30 * time.Second}).Do(context.Background(), func(context.Context) error {
				wait, last = time.Since(begin)-last, time.Since(begin)
				return errDown
			}) // it fails
			return unless(wait == 30*time.Second, "waits %v", wait)
		},
	},
	{
		id: "caller-left", table: retries, report: "onosproject/onos-lib-go#155",
		text:  "No attempt begins after the caller has left",
		hurts: "Work is done, and side effects happen, for nobody.",
		run: func(l *library) verdict {
			if l.retry == nil {
				return lacks
			}
			ctx, cancel := context.WithCancel(context.Background())
			sent := 0
			_ = l.retry(threeTimes).Do(ctx, func(context.Context) error {
				sent++
				cancel()
				return errDown
			}) // it fails
			return unless(sent == 1, "%d attempts", sent)
		},
	},
	{
		id: "done-context-retry", table: retries, report: "buildbuddy-io/buildbuddy#5363",
		text:  "Calls whose deadline has passed do not run",
		hurts: "A service that is behind spends its time on calls that nobody waits for.",
		run: func(l *library) verdict {
			if l.retry == nil {
				return lacks
			}
			ran := callLate(l.retry(threeTimes), 1)
			return unless(ran == 0, "they run")
		},
	},
}
