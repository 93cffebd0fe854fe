package retry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/switchgear-go/switchgear/policy"
)

// hedgeCase is a call of a hedge with all that its environment does.
type hedgeCase struct {
	delay     time.Duration
	maxHedges int
	tokens    int           // in the budget
	attempts  []attemptCase // by number; more than may be made
	cancel    time.Duration // when the caller leaves; 0: never
}

// attemptCase says how an attempt goes. It ends at once when its context is done.
type attemptCase struct {
	takes time.Duration
	ends  ending
}

type ending int

const (
	succeeds ending = iota
	fails
	isRefused
	answersHealthy
)

// outcome is what can be seen of the call.
type hedgeOutcome struct {
	starts  []time.Duration
	returns time.Duration
	winner  int // 0: none
	err     string
	spent   int
	lost    int // attempts that were overtaken
}

func (a attemptCase) err(number int) error {
	err := fmt.Errorf("attempt %d", number)
	switch a.ends {
	case succeeds:
		return nil
	case isRefused:
		return policy.Rejection("bulkhead", fmt.Sprint(number), nil, time.Time{}, nil)
	case answersHealthy:
		return policy.Healthy(err)
	}
	return err
}

// slowHedge works the outcome out step by step.
func slowHedge(c hedgeCase) hedgeOutcome {
	type state struct {
		number int
		ends   time.Duration
		over   bool
		err    error
	}
	var out hedgeOutcome
	var attempts []*state
	shut, canceled := false, false
	timer := time.Duration(-1)
	start := func(now time.Duration) {
		n := len(attempts) + 1
		attempts = append(attempts, &state{number: n, ends: now + c.attempts[n-1].takes})
		out.starts = append(out.starts, now)
		timer = now + c.delay
	}
	hedge := func(now time.Duration) {
		timer = -1
		switch {
		case shut || len(attempts) > c.maxHedges:
		case out.spent == c.tokens:
			shut = true
		default:
			out.spent++
			start(now)
		}
	}
	start(0)
	for {
		// What comes first: an end, the timer, the caller's leave.
		var next *state
		for _, a := range attempts {
			if !a.over && (next == nil || a.ends < next.ends) {
				next = a
			}
		}
		if next == nil {
			break
		}
		now := next.ends
		if timer >= 0 && timer < now && (canceled || c.cancel == 0 || timer < c.cancel) {
			hedge(timer)
			continue
		}
		if c.cancel > 0 && !canceled && c.cancel < now {
			canceled, shut, timer = true, true, -1
			for _, a := range attempts {
				if !a.over {
					a.over, a.err = true, context.Canceled
				}
			}
			out.returns = c.cancel
			continue
		}
		next.over = true
		next.err = c.attempts[next.number-1].err(next.number)
		out.returns = now
		ends := c.attempts[next.number-1].ends
		if ends == succeeds || ends == answersHealthy {
			out.winner = next.number
			if next.err != nil {
				out.err = next.err.Error()
				if next.number > 1 {
					out.spent--
				}
			}
			for _, a := range attempts {
				if !a.over {
					out.lost++
				}
			}
			return out
		}
		if ends == isRefused {
			shut = true
			if next.number > 1 {
				out.spent--
			}
			continue
		}
		if !shut {
			before := timer
			if hedge(now); timer < 0 && !shut {
				timer = before
			}
		}
	}
	var texts []string
	for _, a := range attempts {
		texts = append(texts, a.err.Error())
	}
	out.err = strings.Join(texts, "\n")
	return out
}

// realHedge runs the case in a bubble.
func realHedge(t *testing.T, c hedgeCase) (out hedgeOutcome) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("b", BudgetConfig{Ratio: -1, PerSecond: float64(c.tokens) / 3600, Window: time.Hour})
		if c.tokens == 0 {
			b = NewBudget("b", BudgetConfig{Ratio: -1, PerSecond: -1})
		}
		h := bindHedge(HedgeConfig{Delay: c.delay, MaxHedges: c.maxHedges, Budget: b}.withDefaults(), "h", nil)
		h.MaxHedges = c.maxHedges // 0 too
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if c.cancel > 0 {
			defer time.AfterFunc(c.cancel, cancel).Stop()
		}
		begin := time.Now()
		var mu sync.Mutex
		number, closed := 0, map[int]int{} // guarded by mu, as is out.starts
		v, err := policy.Get(ctx, h, func(ctx context.Context) (*numbered, error) {
			mu.Lock()
			number++ // the next one begins later: a bubble's clock stands still while anything runs
			n := number
			out.starts = append(out.starts, time.Since(begin))
			mu.Unlock()
			a := c.attempts[n-1]
			value := &numbered{n, func() {
				mu.Lock()
				defer mu.Unlock()
				closed[n]++
			}}
			timer := time.NewTimer(a.takes)
			defer timer.Stop()
			select {
			case <-timer.C:
				return value, a.err(n)
			case <-ctx.Done():
				return value, ctx.Err()
			}
		})
		out.returns = time.Since(begin)
		if err != nil {
			out.err = err.Error()
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		var refused *policy.RejectedError
		if err == nil || !errors.As(err, &refused) && policy.Classify(t.Context(), err) == policy.Success {
			out.winner = v.n
		}
		out.spent = b.Stats().Spent
		out.lost = int(h.counts[originalLost].Load() + h.counts[hedgeLost].Load())
		if out.winner == 0 {
			out.lost = 0 // the caller left: no race to lose
		}
		for n := 1; n <= number; n++ {
			want := 1
			if n == v.n {
				want = 0
			}
			if closed[n] != want {
				t.Errorf("the value of attempt %d was closed %d times, want %d (%d was returned)", n, closed[n], want, v.n)
			}
		}
		total := int64(0)
		for i := range h.counts {
			total += h.counts[i].Load()
		}
		if int(total) != number {
			t.Errorf("%d attempts counted, want %d", total, number)
		}
	})
	return out
}

type numbered struct {
	n       int
	onClose func()
}

func (n *numbered) Close() error {
	n.onClose()
	return nil
}

func TestHedgeDoesWhatASlowOneDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := hedgeCase{
			delay:     time.Duration(rapid.IntRange(1, 5).Draw(rt, "delay")) * time.Second,
			maxHedges: rapid.IntRange(0, 4).Draw(rt, "hedges"),
			tokens:    rapid.IntRange(0, 4).Draw(rt, "tokens"),
		}
		for n := range c.maxHedges + 1 {
			c.attempts = append(c.attempts, attemptCase{
				// No two things happen at once: the sums of different powers of two differ.
				takes: time.Duration(rapid.IntRange(0, 12).Draw(rt, "takes"))*time.Second + 1<<n*time.Nanosecond,
				ends:  rapid.SampledFrom([]ending{succeeds, fails, fails, isRefused, answersHealthy}).Draw(rt, "ends"),
			})
		}
		if rapid.Bool().Draw(rt, "canceled") {
			c.cancel = time.Duration(rapid.IntRange(0, 15).Draw(rt, "cancel"))*time.Second + 1<<10*time.Nanosecond
		}
		want, got := slowHedge(c), realHedge(t, c)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("%+v\n got %+v\nwant %+v", c, got, want)
		}
	})
}
