package bulkhead

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/switchgear-go/switchgear/policy/observe"
)

// model is a bulkhead that takes its time: it looks at every call at every step.
type model struct {
	Config
	now     time.Duration
	running []int // calls, in the order of their start
	waiting []int
	arrived map[int]time.Duration
	ends    map[int]string // how each call ended
	stats   Stats
}

func (m *model) arrive(id int) {
	switch {
	case len(m.running) < m.Max && len(m.waiting) == 0:
		m.start(id)
	case len(m.waiting) < m.Queue:
		m.waiting, m.arrived[id] = append(m.waiting, id), m.now
	default:
		m.stats.Rejected++
		m.ends[id] = "full"
	}
}

func (m *model) start(id int) {
	m.running = append(m.running, id)
	m.stats.Acquired++
}

func (m *model) serve() {
	for len(m.running) < m.Max && len(m.waiting) > 0 {
		m.start(m.waiting[0])
		m.waiting = m.waiting[1:]
	}
}

func (m *model) release(id int) {
	m.running = without(m.running, id)
	m.ends[id] = "done"
	m.serve()
}

func (m *model) cancel(id int) {
	m.waiting = without(m.waiting, id)
	m.ends[id] = "canceled"
	m.stats.Canceled++
}

func (m *model) resize(n int) {
	m.Max = n
	m.serve()
}

func (m *model) pass(d time.Duration) {
	m.now += d
	for _, id := range slices.Clone(m.waiting) {
		if m.MaxWait > 0 && m.now-m.arrived[id] >= m.MaxWait {
			m.waiting = without(m.waiting, id)
			m.ends[id] = "full"
			m.stats.TimedOut++
		}
	}
}

func without(ids []int, id int) []int {
	return slices.DeleteFunc(slices.Clone(ids), func(i int) bool { return i == id })
}

// step is one thing that happens; n picks whom it happens to.
type step struct {
	what string
	n    int
}

func TestTheQueueIsLikeItsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{
			Max:      rapid.IntRange(1, 4).Draw(rt, "max"),
			Queue:    rapid.IntRange(0, 5).Draw(rt, "queue"),
			MaxWait:  time.Duration(rapid.SampledFrom([]int{0, 3, 8}).Draw(rt, "maxWait")) * time.Second,
			Observer: observe.Discard,
		}
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			what := rapid.SampledFrom([]string{"arrive", "arrive", "arrive", "release", "release", "cancel", "resize", "pass"}).Draw(t, "what")
			return step{what, rapid.IntRange(0, 5).Draw(t, "n")}
		}), 1, 60).Draw(rt, "steps")
		problem := ""
		synctest.Test(t, func(*testing.T) { problem = play(cfg, steps) })
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

// played is a bulkhead with calls that do as they are told.
type played struct {
	*Bulkhead
	next    int
	started chan int
	ended   chan end
	release map[int]chan struct{}
	cancel  map[int]context.CancelFunc
}

type end struct {
	id  int
	how string
}

func (p *played) arrive() (id int) {
	id, p.next = p.next, p.next+1
	ctx, cancel := context.WithCancel(context.Background())
	release := make(chan struct{})
	p.release[id], p.cancel[id] = release, cancel
	go func() {
		err := p.Do(ctx, func(context.Context) error { p.started <- id; <-release; return nil })
		how := "done"
		switch {
		case errors.Is(err, ErrFull):
			how = "full"
		case errors.Is(err, context.Canceled):
			how = "canceled"
		case err != nil:
			how = err.Error()
		}
		p.ended <- end{id, how}
	}()
	return id
}

func play(cfg Config, steps []step) (problem string) {
	p := &played{
		Bulkhead: New("played", cfg),
		started:  make(chan int, len(steps)), ended: make(chan end, len(steps)),
		release: map[int]chan struct{}{}, cancel: map[int]context.CancelFunc{},
	}
	m := &model{Config: cfg, arrived: map[int]time.Duration{}, ends: map[int]string{}}
	var started []int
	ends := map[int]string{}
	compare := func(i int, s step) {
		synctest.Wait()
		var batch []int
		for len(p.started) > 0 {
			batch = append(batch, <-p.started)
		}
		slices.Sort(batch) // those started in one step: goroutines wake in any order
		started = append(started, batch...)
		for len(p.ended) > 0 {
			e := <-p.ended
			ends[e.id] = e.how
		}
		want := m.stats
		want.Max, want.Running, want.Queue, want.Waiting = m.Max, len(m.running), m.Queue, len(m.waiting)
		var wantStarted []int
		for id := range p.next {
			if slices.Contains(m.running, id) || m.ends[id] == "done" {
				wantStarted = append(wantStarted, id)
			}
		}
		got := fmt.Sprint(p.Stats(), sorted(started), ends)
		if want := fmt.Sprint(want, wantStarted, m.ends); got != want && problem == "" {
			problem = fmt.Sprintf("after step %d, %v:\ngot  %s\nwant %s", i, s, got, want)
		}
		if !slices.IsSorted(started) && problem == "" {
			problem = fmt.Sprintf("after step %d, %v: served out of order: %v", i, s, started)
		}
	}
	for i, s := range steps {
		switch s.what {
		case "arrive":
			m.arrive(p.arrive())
		case "release":
			if len(m.running) > 0 {
				id := m.running[s.n%len(m.running)]
				m.release(id)
				close(p.release[id])
			}
		case "cancel":
			if len(m.waiting) > 0 {
				id := m.waiting[s.n%len(m.waiting)]
				m.cancel(id)
				p.cancel[id]()
			}
		case "resize":
			m.resize(s.n + 1)
			p.Resize(s.n + 1)
		case "pass":
			m.pass(time.Duration(s.n) * time.Second)
			time.Sleep(time.Duration(s.n) * time.Second)
		}
		compare(i, s)
	}
	for len(m.running) > 0 { // whoever still waits is served
		id := m.running[0]
		m.release(id)
		close(p.release[id])
		compare(len(steps), step{"drain", id})
		if problem != "" {
			break
		}
	}
	if problem != "" { // let everything go, or the bubble never ends
		for id := range p.next {
			p.cancel[id]()
			select {
			case <-p.release[id]:
			default:
				close(p.release[id])
			}
		}
		return problem
	}
	if p.InUse() {
		return fmt.Sprintf("in use when all is over: %+v", p.Stats())
	}
	for _, cancel := range p.cancel {
		cancel()
	}
	return ""
}

func sorted(ids []int) []int {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return ids
}
