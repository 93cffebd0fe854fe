package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/retry"
)

// variant is one way to retry.
type variant struct {
	name     string
	color    string  // in the picture
	perCall  float64 // attempts for each call that fails, at most
	reserve  float64 // attempts per second beside those, at most
	policies func() []policy.Policy
}

var variants = []variant{
	{"a budget", "#1a7f37", 1.2, 10, func() []policy.Policy {
		return []policy.Policy{retry.New(retry.Config{})}
	}},
	{"two layers, budgets", "#0969da", 1.2, 10, func() []policy.Policy {
		return []policy.Policy{retry.New(retry.Config{}), retry.New(retry.Config{})}
	}},
	{"no budget", "#bf8700", 3, 0, func() []policy.Policy {
		return []policy.Policy{retry.New(retry.Config{Budget: retry.Unlimited})}
	}},
	{"two layers, no budget", "#cf222e", 9, 0, func() []policy.Policy {
		return []policy.Policy{
			retry.New(retry.Config{Budget: retry.Unlimited}),
			retry.New(retry.Config{Budget: retry.Unlimited, Nested: true}),
		}
	}},
}

// What comes before and after the outage.
const (
	before = 10 * time.Second
	after  = 20 * time.Second
)

// result is what became of one run.
type result struct {
	variant
	perSecond int
	calls     int           // that began in the outage
	attempts  int           // that they made
	load      []int         // attempts that began in each second
	recovery  time.Duration // how long after the outage a call still failed for want of a retry
}

func (r result) ratio() float64 { return float64(r.attempts) / float64(r.calls) }

// check returns an error if the run is not what the variant promises.
func (r result) check(outage time.Duration) error {
	limit := r.perCall*float64(r.calls) + r.reserve*outage.Seconds()
	if r.reserve > 0 {
		const window = 10 // seconds; what a budget has gathered in them before the outage
		limit += window * ((r.perCall-1)*float64(r.perSecond) + r.reserve)
	}
	switch {
	case float64(r.attempts) > limit:
		return fmt.Errorf("%s at %d/s: %d attempts for %d calls, more than %.0f", r.name, r.perSecond, r.attempts, r.calls, limit)
	case r.recovery > 10*time.Second:
		return fmt.Errorf("%s at %d/s: retries did not work again until %v after the outage", r.name, r.perSecond, r.recovery)
	}
	return nil
}

var errUnavailable = errors.New("503 service unavailable")

// simulate lets clients call a dependency at a steady rate. Calls that begin in the outage fail, whatever they try. Of the
// others every tenth needs a second attempt, which shows whether retries work.
func simulate(t *testing.T, v variant, perSecond int, outage time.Duration) result {
	r := result{variant: v, perSecond: perSecond, load: make([]int, int((before+outage+after)/time.Second))}
	var mu sync.Mutex // guards r
	call := func(p policy.Policy, start time.Time, n int) {
		began := time.Since(start) - before // the outage is from 0 to its length
		down := began >= 0 && began < outage
		attempts := 0
		err := p.Do(context.Background(), func(context.Context) error {
			attempts++
			mu.Lock()
			if second := int(time.Since(start) / time.Second); second < len(r.load) {
				r.load[second]++
			}
			mu.Unlock()
			time.Sleep(10 * time.Millisecond)
			if down || n%10 == 0 && attempts == 1 {
				return errUnavailable
			}
			return nil
		})
		mu.Lock()
		defer mu.Unlock()
		switch {
		case down:
			r.calls++
			r.attempts += attempts
		case err != nil:
			r.recovery = max(r.recovery, began-outage)
		}
	}
	synctest.Test(t, func(*testing.T) {
		p := policy.NewPipeline("charge", v.policies()...).Observed(observe.Discard)
		start := time.Now()
		var calls sync.WaitGroup
		for n := 0; time.Since(start) < before+outage+after; n++ {
			calls.Go(func() { call(p, start, n) })
			time.Sleep(time.Second / time.Duration(perSecond))
		}
		calls.Wait()
	})
	return r
}

// peak returns the highest load of a second.
func peak(results []result) (highest float64) {
	for _, r := range results {
		for _, n := range r.load {
			highest = math.Max(highest, float64(n))
		}
	}
	return highest
}
