package badday

import (
	"context"
	"sync/atomic"
	"time"
)

const races = "Timeouts and hedges"

var raceRows = []row{
	{
		id: "timeout-panic", table: races, report: "labstack/echo#1794", apart: true,
		text:  "A panic under a timeout reaches the caller, who may recover it",
		hurts: "A panic that the server would have turned into one status 500 takes the whole process down.",
		run: func(l *library) verdict {
			if l.timeout == nil {
				return lacks
			}
			c := attempt(l.timeout(time.Minute), panics)
			return unless(c.panicked == "a bug", "it is lost")
		},
	},
	{
		id: "hedge-panic", table: races, apart: true,
		text:  "So does a panic of a hedged call",
		hurts: "As above: an attempt on a goroutine of its own is beyond every recover of the program.",
		run: func(l *library) verdict {
			if l.hedge == nil {
				return lacks
			}
			c := attempt(l.hedge(time.Minute), panics)
			return unless(c.panicked == "a bug", "it is lost")
		},
	},
	{
		id: "hedge-failure", table: races, report: "erpc/erpc#418",
		text:  "A hedge that fails does not win over an attempt that is about to succeed",
		hurts: "The second attempt, meant to save slow calls, makes some of them fail.",
		run: func(l *library) verdict {
			if l.hedge == nil {
				return lacks
			}
			var runs atomic.Int32
			c := attempt(l.hedge(time.Second), func(ctx context.Context) error {
				if runs.Add(1) > 1 {
					return errDown
				}
				select {
				case <-time.After(2 * time.Second):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
			return unless(c.err == nil, "its error is the result")
		},
	},
	{
		id: "hedge-caller-left", table: races, report: "thomhurst/Kevlar#14",
		text:  "No hedge starts after the caller has left",
		hurts: "A wave of cancelled calls sends a second wave after itself.",
		run: func(l *library) verdict {
			if l.hedge == nil {
				return lacks
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var runs atomic.Int32
			time.AfterFunc(time.Second/2, cancel)
			<-start(ctx, l.hedge(time.Second), func(context.Context) error {
				runs.Add(1)
				time.Sleep(3 * time.Second) // deaf
				return errDown
			}).done
			return unless(runs.Load() == 1, "%d runs", runs.Load())
		},
	},
}
