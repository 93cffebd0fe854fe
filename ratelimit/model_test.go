package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// model is a limiter in seconds, one event after the other. Rates are powers of two and times fractions of seconds with a
// denominator that is one, so that no arithmetic here or there rounds anything.
type model struct {
	now, tokens, rate, burst float64
	fixed                    bool    // the burst
	maxWait                  float64 // below 0: none
	waiting                  []waiting
	ends                     map[int]string
	acquired, rejected, left int64
}

type waiting struct {
	id            int
	end, deadline float64
}

const endless = 1e18

// due returns when one with n ahead gets a token.
func (m *model) due(n int) float64 {
	if missing := float64(n) + 1 - m.tokens; missing > 0 {
		if m.rate == 0 {
			return endless
		}
		return m.now + missing/m.rate
	}
	return m.now
}

// pass lets time pass until at, and tokens come to whom they are due.
func (m *model) pass(at float64) {
	for len(m.waiting) > 0 && m.due(0) <= at {
		due := m.due(0)
		m.tokens += (due-m.now)*m.rate - 1
		m.now = due
		m.ends[m.waiting[0].id] = "served"
		m.waiting = m.waiting[1:]
		m.acquired++
	}
	m.tokens = min(m.burst, m.tokens+(at-m.now)*m.rate)
	m.now = at
}

func (m *model) arrive(id int, patience float64) {
	w := waiting{id: id, end: endless / 2, deadline: endless / 2}
	if m.maxWait >= 0 {
		w.end = m.now + m.maxWait
	}
	if patience > 0 {
		w.deadline = m.now + patience
	}
	due := m.due(len(m.waiting))
	switch {
	case due == m.now && len(m.waiting) == 0:
		m.tokens--
		m.acquired++
		m.ends[id] = "served"
	case due <= w.end && due < w.deadline:
		m.waiting = append(m.waiting, w)
	default:
		m.refuse(id, due)
	}
}

func (m *model) refuse(id int, due float64) {
	m.rejected++
	m.ends[id] = "never"
	if due < endless {
		m.ends[id] = fmt.Sprint("at ", due)
	}
}

func (m *model) cancel(n int) {
	m.ends[m.waiting[n].id] = "canceled"
	m.waiting = slices.Delete(m.waiting, n, n+1)
	m.left++
}

func (m *model) setRate(r float64) {
	m.rate = r
	if !m.fixed {
		m.burst = float64(Config{}.burst(r))
	}
	m.tokens = min(m.tokens, m.burst)
	var kept, gone []waiting
	for _, w := range m.waiting {
		if due := m.due(len(kept)); due <= w.end && due < w.deadline {
			kept = append(kept, w)
		} else {
			gone = append(gone, w)
		}
	}
	m.waiting = kept
	for _, w := range gone {
		m.refuse(w.id, m.due(len(kept)))
	}
}

func (m *model) stats() Stats {
	return Stats{
		Rate: m.rate, Burst: int(m.burst), Available: m.tokens, Waiting: len(m.waiting),
		Acquired: m.acquired, Rejected: m.rejected, Canceled: m.left,
	}
}

type step struct {
	what string
	n    int
}

const tick = time.Second / 64

func drawSteps(rt *rapid.T, kinds ...string) []step {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{rapid.SampledFrom(kinds).Draw(t, "what"), rapid.IntRange(0, 200).Draw(t, "n")}
	}), 1, 60).Draw(rt, "steps")
}

var someRates = []float64{1, 2, 4, 8, 0}

func TestTheQueueIsLikeItsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{
			Rate:     rapid.SampledFrom(someRates).Draw(rt, "rate"),
			Burst:    rapid.IntRange(0, 3).Draw(rt, "burst"),
			MaxWait:  tick * time.Duration(rapid.SampledFrom([]int{-1, 0, 20, 64, 200}).Draw(rt, "maxWait")),
			Observer: observe.Discard,
		}
		steps := drawSteps(rt, "arrive", "arrive", "arrive", "hurry", "cancel", "rate", "pass", "pass", "pass")
		problem := ""
		synctest.Test(t, func(*testing.T) { problem = play(cfg, steps) })
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

type end struct {
	id  int
	how string
}

func play(cfg Config, steps []step) string {
	l := New("played", cfg)
	m := &model{rate: cfg.Rate, burst: float64(cfg.burst(cfg.Rate)), fixed: cfg.Burst > 0, maxWait: cfg.MaxWait.Seconds(), ends: map[int]string{}}
	m.tokens = m.burst
	start := time.Now()
	ended := make(chan end, len(steps))
	var cancels []context.CancelFunc
	arrive := func(patience time.Duration) {
		id := len(cancels)
		ctx, cancel := context.WithCancel(context.Background())
		if patience > 0 {
			ctx, cancel = context.WithTimeout(context.Background(), patience)
		}
		cancels = append(cancels, cancel)
		m.arrive(id, patience.Seconds())
		go func() {
			err := l.Allow(ctx)
			var refusal *policy.RejectedError
			how := "served"
			switch {
			case errors.As(err, &refusal) && refusal.RetryAt.IsZero():
				how = "never"
			case errors.As(err, &refusal):
				how = fmt.Sprint("at ", refusal.RetryAt.Sub(start).Seconds())
			case err != nil:
				how = "canceled"
			}
			ended <- end{id, how}
		}()
	}
	defer func() {
		for _, cancel := range cancels {
			cancel()
		}
	}()
	ends := map[int]string{}
	var served []int
	for i, s := range steps {
		switch s.what {
		case "arrive":
			arrive(0)
		case "hurry":
			arrive(time.Duration(1+s.n) * tick)
		case "cancel":
			if len(m.waiting) > 0 {
				n := s.n % len(m.waiting)
				cancels[m.waiting[n].id]()
				m.cancel(n)
			}
		case "rate":
			r := someRates[s.n%len(someRates)]
			m.setRate(r)
			l.SetRate(r)
		case "pass":
			d := time.Duration(s.n/2) * tick
			m.pass(m.now + d.Seconds())
			time.Sleep(d)
		}
		synctest.Wait()
		var batch []int
		for len(ended) > 0 {
			e := <-ended
			ends[e.id] = e.how
			if e.how == "served" {
				batch = append(batch, e.id)
			}
		}
		slices.Sort(batch)
		served = append(served, batch...)
		if !maps.Equal(ends, m.ends) || l.Stats() != m.stats() {
			return fmt.Sprintf("after step %d, %v:\ngot  %+v %v\nwant %+v %v", i, s, l.Stats(), ends, m.stats(), m.ends)
		}
		if !slices.IsSorted(served) {
			return fmt.Sprintf("after step %d, %v: served out of order: %v", i, s, served)
		}
	}
	if l.Stats().Rate > 0 { // nobody is blocked for ever
		time.Sleep(time.Hour)
		synctest.Wait()
		if s := l.Stats(); s.Waiting > 0 || l.InUse() {
			return fmt.Sprintf("an hour later: %+v", s)
		}
	}
	return ""
}

// Without waits, by a clock that steps back too.
func TestABucketIsLikeItsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		clock := newHands()
		start := clock.now
		cfg := Config{
			Rate:     rapid.SampledFrom(someRates).Draw(rt, "rate"),
			Burst:    rapid.IntRange(0, 3).Draw(rt, "burst"),
			Clock:    clock.read,
			Observer: observe.Discard,
		}
		l := New("played", cfg)
		m := &model{rate: cfg.Rate, burst: float64(cfg.burst(cfg.Rate)), fixed: cfg.Burst > 0, ends: map[int]string{}}
		m.tokens = m.burst
		_ = l.bucketTime() // the start of its time
		behind := 0.0      // how far the clock is behind the model's time
		follow := func() {
			if behind*m.rate > m.burst {
				m.now, behind = m.now-behind, 0
			}
		}
		for i, s := range drawSteps(rt, "arrive", "arrive", "arrive", "rate", "pass", "pass", "back") {
			d := float64(s.n) / 64
			switch s.what {
			case "arrive":
				err := l.Allow(context.Background())
				follow()
				m.arrive(i, 0)
				want := m.ends[i]
				got := "served"
				if refusal := (*policy.RejectedError)(nil); errors.As(err, &refusal) {
					got = "never"
					if !refusal.RetryAt.IsZero() {
						got = fmt.Sprint("at ", refusal.RetryAt.Sub(start).Seconds())
						comeBack(rt, l, clock, refusal.RetryAt)
					}
				}
				if got != want {
					rt.Fatalf("step %d, %v: got %s, want %s", i, s, got, want)
				}
			case "rate":
				r := someRates[s.n%len(someRates)]
				follow()
				m.setRate(r)
				l.SetRate(r)
			case "pass":
				clock.move(time.Duration(s.n) * tick)
				ahead := max(0, d-behind)
				behind = max(0, behind-d)
				follow()
				m.pass(m.now + ahead)
				_ = l.bucketTime()
			case "back":
				clock.move(-time.Duration(s.n) * tick)
				behind += d
				follow()
				_ = l.bucketTime()
			}
			want := m.stats()
			if got := l.Stats(); got != want {
				rt.Fatalf("step %d, %v: got %+v, want %+v", i, s, got, want)
			}
		}
	})
}

// comeBack checks that a call that comes alone at that time, and no earlier, would get a token.
func comeBack(rt *rapid.T, l *Limiter, clock *hands, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait := l.bucket.wait(at); wait != 0 {
		rt.Fatalf("at RetryAt a token is %v away", wait)
	}
	if at.After(clock.now) && l.bucket.wait(at.Add(-time.Microsecond)) == 0 && at.Add(-time.Microsecond).After(l.bucket.seen) {
		rt.Fatalf("a token is there before RetryAt")
	}
}

// Any rate, not only those that floats like: RetryAt is true to the nanosecond.
func TestRetryAtIsTrue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		clock := newHands()
		l := New("any", Config{
			Rate:     rapid.Float64Range(1e-9, 1e8).Draw(rt, "rate"),
			Burst:    rapid.IntRange(1, 5).Draw(rt, "burst"),
			Clock:    clock.read,
			Observer: observe.Discard,
		})
		for range rapid.IntRange(1, 20).Draw(rt, "tokens") {
			var refusal *policy.RejectedError
			for refusal == nil {
				_ = errors.As(l.Allow(context.Background()), &refusal)
			}
			if refusal.RetryAfter() <= 0 {
				rt.Fatal("a token should be there already")
			}
			at := refusal.RetryAt
			for range rapid.IntRange(0, 2).Draw(rt, "looks") { // to look in between changes nothing
				clock.move(time.Duration(rapid.Int64Range(0, int64(at.Sub(clock.now))-1).Draw(rt, "early")))
				_ = l.Stats()
			}
			clock.move(at.Sub(clock.now))
			if err := l.Allow(context.Background()); err != nil {
				rt.Fatal("RetryAt was not true")
			}
		}
	})
}
