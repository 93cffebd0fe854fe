package policytest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchgear-go/switchgear/policy"
)

// stage is where a case is played. It keeps a log of what happens.
type stage struct {
	Case
	players  []*player
	recorder Recorder
	policy   policy.Policy
	start    time.Time
	seq      []wanted
	idle     chan struct{} // holds a token when active has fallen to 0; the bubble's

	mu     sync.Mutex
	log    []entry  // guarded by mu
	active int      // guarded by mu: calls and runs of fn now
	runs   int      // guarded by mu: of fn, by the case's script
	faults []string // guarded by mu
}

// player makes one call.
type player struct {
	Call
	name   string
	prefix string // of what happens in the call: its name, where there are several
	faults []string

	// Guarded by the stage's mu.
	started, ended   bool
	began, took      time.Duration
	ran              []time.Duration // when runs of fn started, from the start of the call
	err              error
	panicked         any
	stack            string // of the panic
	exited, returned bool
}

// entry is something that happened.
type entry struct {
	kind   entryKind
	at     time.Duration
	player *player // whose call it belongs to, if any
	run    int     // of the player, from 0
	event  term
	text   string
}

type entryKind uint8

const (
	callStarts entryKind = iota
	callerCancels
	runStarts
	runEnds
	eventTold
	callEnds
)

type (
	startKey  struct{} // context key of the start of the case
	playerKey struct{} // context key of the player
)

// limit is how long after the last time that a case names it may go on, in its own time.
const limit = time.Hour

func newStage(c Case) *stage {
	s := &stage{Case: c}
	if len(s.Calls) == 0 {
		s.Calls = []Call{{}}
	}
	for i, c := range s.Calls {
		for n := range max(1, c.Times) {
			p := &player{Call: c, name: "call " + strconv.Itoa(i+1)}
			if c.Times > 1 {
				p.name += "." + strconv.Itoa(n+1)
			}
			s.players = append(s.players, p)
		}
	}
	for _, p := range s.players {
		p.prefix = p.name + ": "
	}
	if len(s.players) == 1 {
		s.players[0].name, s.players[0].prefix = "the call", ""
	}
	slices.SortStableFunc(s.players, func(a, b *player) int { return cmp.Compare(a.At, b.At) })
	var err error
	if s.seq, err = parseSequence(c.Events); err != nil {
		s.fault(err.Error())
	}
	return s
}

// perform plays the case. It runs in the case's bubble.
func (s *stage) perform(t *testing.T) {
	s.idle = make(chan struct{}, 1)
	s.start = time.Now()
	s.recorder.start, s.recorder.onEvent = s.start, s.eventIsTold
	s.policy = s.Policy(&s.recorder)
	if s.policy == nil {
		s.fault("Policy returned nil")
		return
	}
	root, cancel := context.WithCancel(context.WithValue(t.Context(), startKey{}, s.start))
	defer cancel()
	for _, p := range s.players {
		time.Sleep(p.At - time.Since(s.start))
		synctest.Wait() // what else is due now comes first
		s.enter(p)
		go s.call(root, p)
		synctest.Wait()
	}
	if !s.rest() {
		s.fault(fmt.Sprintf("not everything has ended %v after it should have", limit))
		cancel()
		s.rest()
	}
	s.judge()
	if s.Check != nil {
		if s.Check(t, &s.recorder); t.Failed() {
			s.fault("Check has failed")
		}
	}
}

// rest waits until everything has ended, and reports whether that came in time.
func (s *stage) rest() bool {
	end := s.Until
	for _, p := range s.players {
		end = max(end, p.At+max(0, p.Takes, p.Cancel, p.Timeout))
	}
	late := time.NewTimer(end + limit - min(end, time.Since(s.start)))
	defer late.Stop()
	for {
		for s.busy() {
			select {
			case <-s.idle:
			case <-late.C:
				return false
			}
		}
		time.Sleep(s.Until - time.Since(s.start))
		synctest.Wait()
		if !s.busy() {
			return true
		}
	}
}

func (s *stage) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active > 0
}

func (s *stage) call(ctx context.Context, p *player) {
	returned := false
	defer func() { s.leave(p, returned, recover()) }()
	ctx = context.WithValue(ctx, playerKey{}, p)
	if p.Timeout != 0 {
		limited, cancel := context.WithTimeout(ctx, p.Timeout)
		defer cancel()
		ctx = limited
	}
	if p.Cancel != 0 {
		canceled, cancel := context.WithCancel(ctx)
		defer cancel()
		ctx = canceled
		if p.Cancel < 0 {
			cancel()
		} else {
			timer := time.AfterFunc(p.Cancel, func() {
				s.add(entry{kind: callerCancels, player: p, text: p.prefix + "the caller cancels"})
				cancel()
			})
			defer timer.Stop()
		}
	}
	do := p.Do
	if do == nil {
		do = func(ctx context.Context, p policy.Policy, fn policy.Func) error { return p.Do(ctx, fn) }
	}
	err := do(ctx, s.policy, s.fn(p))
	p.err, returned = err, true
}

// fn is what p's call runs.
func (s *stage) fn(p *player) policy.Func {
	return func(ctx context.Context) (err error) {
		run, step := s.runIsStarting(p)
		returned := false
		defer func() { s.runHasEnded(p, run, err, returned) }()
		err = step(ctx)
		returned = true
		return err
	}
}

func (s *stage) enter(p *player) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active++
	p.started, p.began = true, time.Since(s.start)
	s.addLocked(entry{kind: callStarts, player: p, text: p.name + " starts"})
}

// leave ends p's call. panicked is what was recovered, in the deferred function that calls leave.
func (s *stage) leave(p *player, returned bool, panicked any) {
	stack := ""
	if panicked != nil {
		stack = string(debug.Stack())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.ended, p.returned, p.panicked, p.stack = true, returned, panicked, stack
	p.exited = !returned && panicked == nil
	p.took = time.Since(s.start) - p.began
	text := p.name + " returns "
	switch {
	case returned:
		text += oneLine(p.err)
	case p.exited:
		text = p.name + " ends its goroutine"
	default:
		text = fmt.Sprintf("%s panics: %v", p.name, panicked)
	}
	s.addLocked(entry{kind: callEnds, player: p, text: text})
	s.releaseLocked()
}

func (s *stage) runIsStarting(p *player) (run int, step Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active++
	run = len(p.ran)
	p.ran = append(p.ran, time.Since(s.start)-p.began)
	if p.Script != nil {
		step = p.Script.step(run)
	} else {
		step = s.Script.step(s.runs)
		s.runs++
	}
	s.addLocked(entry{kind: runStarts, player: p, run: run, text: fmt.Sprintf("%srun %d of fn starts", p.prefix, run+1)})
	return run, step
}

func (s *stage) runHasEnded(p *player, run int, err error, returned bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := "panics or exits"
	if returned {
		text = "returns " + oneLine(err)
	}
	s.addLocked(entry{kind: runEnds, player: p, run: run, text: fmt.Sprintf("%srun %d %s", p.prefix, run+1, text)})
	s.releaseLocked()
}

func (s *stage) eventIsTold(ctx context.Context, t term) {
	e := entry{kind: eventTold, event: t, text: t.String()}
	if p, ok := ctx.Value(playerKey{}).(*player); ok {
		e.player, e.text = p, p.prefix+e.text
	}
	s.add(e)
}

func (s *stage) add(e entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addLocked(e)
}

func (s *stage) addLocked(e entry) {
	e.at = time.Since(s.start)
	s.log = append(s.log, e)
}

func (s *stage) releaseLocked() {
	if s.active--; s.active == 0 {
		select {
		case s.idle <- struct{}{}:
		default:
		}
	}
}

func (s *stage) fault(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, text)
}

// oneLine returns an error's text without line breaks, which those of joined errors have.
func oneLine(err error) string {
	if err == nil {
		return "nil"
	}
	text := []rune(err.Error())
	for i, r := range text {
		if r == '\n' {
			text[i] = ';'
		}
	}
	return string(text)
}

// unmatched returns those of targets that err does not match.
func unmatched(err error, targets []error) (missing []error) {
	for _, target := range targets {
		if !errors.Is(err, target) {
			missing = append(missing, target)
		}
	}
	return missing
}
