package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/ratelimit"
)

var ctx = context.Background()

func search(context.Context) error { return nil }

// handClock is a clock that only an example moves.
type handClock struct{ now time.Time }

func (c *handClock) Now() time.Time { return c.now }

func (c *handClock) pass(d time.Duration) { c.now = c.now.Add(d) }

func Example() {
	clock := &handClock{now: time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC)}
	index := ratelimit.New("index", ratelimit.Config{Rate: 10, Burst: 2, Clock: clock.Now}) // once, at start
	for range 3 {
		err := index.Do(ctx, search)
		fmt.Println(err)
		if wait, ok := policy.RetryAfter(err); ok {
			fmt.Println("try again in", wait)
			clock.pass(wait)
		}
	}
	fmt.Println(index.Do(ctx, search))
	// Output:
	// <nil>
	// <nil>
	// rate_limiter index: rate limit exceeded
	// try again in 100ms
	// <nil>
}

// Calls above the rate wait their turn, up to a second; a call that would wait longer is refused at once.
func ExampleNew_wait() {
	mail := ratelimit.New("mail", ratelimit.Config{Rate: 1000, Burst: 1, MaxWait: time.Second})
	start := time.Now()
	for range 6 {
		if err := mail.Do(ctx, search); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(time.Since(start) >= 5*time.Millisecond)
	// Output: true
}

func ExampleLimiter_Do() {
	index := ratelimit.New("index", ratelimit.Config{Rate: 100})
	p := policy.NewPipeline("search", policy.Timeout(time.Second), index)
	fmt.Println(p.Do(ctx, search))
	// Output: <nil>
}

// Allow is for what is not one function, such as the messages of a stream.
func ExampleLimiter_Allow() {
	messages := ratelimit.New("messages", ratelimit.Config{Rate: .001, Burst: 2})
	for _, m := range []string{"a", "b", "c"} {
		if err := messages.Allow(ctx); err != nil {
			fmt.Println(m, "dropped:", errors.Is(err, ratelimit.ErrLimited))
			continue
		}
		fmt.Println(m)
	}
	// Output:
	// a
	// b
	// c dropped: true
}

func ExampleLimiter_SetRate() {
	index := ratelimit.New("index", ratelimit.Config{Rate: 100})
	index.SetRate(20) // the provider has told us a new quota
	fmt.Println(index.Stats().Rate, index.Stats().Burst)
	index.SetRate(math.Inf(1)) // no limit
	// Output: 20 2
}

func ExampleLimiter_Stats() {
	index := ratelimit.New("index", ratelimit.Config{Rate: .001, Burst: 5})
	_ = index.Do(ctx, search)
	s := index.Stats()
	fmt.Printf("%.0f of %d tokens, %d acquired\n", s.Available, s.Burst, s.Acquired)
	// Output: 4 of 5 tokens, 1 acquired
}

// A rehearsal: how many would be refused by a burst of 1?
func ExampleConfig_shadow() {
	index := ratelimit.New("index", ratelimit.Config{Rate: .001, Burst: 1, Shadow: true})
	for range 3 {
		_ = index.Do(ctx, search)
	}
	fmt.Println(index.Stats().Rejected, "refused,", index.Stats().WouldReject, "would be")
	// Output: 0 refused, 2 would be
}

func ExampleConfig_Validate() {
	fmt.Println(ratelimit.Config{Rate: math.NaN(), Burst: -1}.Validate())
	// Output:
	// ratelimit: Config.Rate is NaN, must be 0 (none) or more, or +Inf (no limit)
	// ratelimit: Config.Burst is -1, must be 0 (a tenth of a second's, at least 1) or more
}

// One limit for each tenant. An empty bucket is not dropped for the keys of others, or new keys would be a way round it.
func Example_group() {
	limits := policy.NewGroup(policy.GroupConfig{Name: "tenants", Max: 10_000}, func(string) *ratelimit.Limiter {
		return ratelimit.New("tenants", ratelimit.Config{Rate: .001, Burst: 1})
	})
	for _, tenant := range []string{"a", "a", "b"} {
		fmt.Println(tenant, limits.Get(tenant).Allow(ctx) == nil)
	}
	// Output:
	// a true
	// a false
	// b true
}

// A group does not drop a limiter that has tokens missing.
func ExampleLimiter_InUse() {
	index := ratelimit.New("index", ratelimit.Config{Rate: .001, Burst: 5})
	fmt.Println(index.InUse())
	_ = index.Do(ctx, search)
	fmt.Println(index.InUse())
	// Output:
	// false
	// true
}
