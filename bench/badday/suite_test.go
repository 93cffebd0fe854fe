package badday

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

// guard is a policy of any library, as the suite calls it.
type guard interface {
	Do(ctx context.Context, fn func(ctx context.Context) error) error
}

type guardFunc func(ctx context.Context, fn func(ctx context.Context) error) error

func (f guardFunc) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return f(ctx, fn)
}

// library makes the policies that a library has, as its documentation says to make them; what it lacks is nil.
type library struct {
	name   string
	module string

	breaker  func(rule) guard // nil for a rule that it has not
	retry    func(schedule) guard
	hinted   func(hint time.Duration) guard    // a retry; what runs asks to be left alone for that long
	bulkhead func(limit int, waits bool) guard // those beyond wait, or are refused
	limiter  func(perSecond float64) guard     // of one call at once; those beyond wait
	timeout  func(limit time.Duration) guard
	hedge    func(delay time.Duration) guard

	remedies map[string]remedy // by row: what helps where it fails as it comes
}

// rule is when a breaker opens: one of the three, and for how long.
type rule struct {
	inARow   int     // at so many failures in a row
	failures int     // at so many in the window
	ratio    float64 // at this share of the calls in the window, if there are the minimum
	minimum  int
	window   time.Duration

	cooldown time.Duration
	onChange func() // told of each change of state; nil for none
}

// schedule is how a retry goes on: it doubles the first wait up to the longest, without jitter.
type schedule struct {
	attempts       int
	first, longest time.Duration
}

// remedy is a setting of a library and what it makes of that.
type remedy struct {
	setting string
	apply   func(*library)
}

// row is one behaviour that hurts when it is wrong.
type row struct {
	id     string
	table  string // of the page
	text   string // what has to hold
	hurts  string // why, in a sentence
	report string // of somebody whom it hurt: owner/repository#number

	run func(l *library) verdict
	// apart runs it in a process of its own, and by the real clock: where it goes wrong, that does not survive.
	apart bool
}

// verdict is what came of a row.
type verdict struct {
	kind kind
	seen string // what went wrong; what it takes, where it holds with a setting
}

type kind int

const (
	holds kind = iota
	holdsWith
	fails
	absent
)

func failed(format string, args ...any) verdict {
	return verdict{fails, fmt.Sprintf(format, args...)}
}

// unless returns a verdict that holds if ok, else what was seen.
func unless(ok bool, format string, args ...any) verdict {
	if ok {
		return verdict{}
	}
	return failed(format, args...)
}

var lacks = verdict{kind: absent}

// judge runs a row against a library: as it comes, and with its remedy if that fails.
func judge(t *testing.T, r row, l library) verdict {
	v := try(t, r, l, false)
	help, known := l.remedies[r.id]
	if v.kind != fails || !known {
		return v
	}
	after := try(t, r, l, true)
	switch {
	case after.kind == holds:
		return verdict{holdsWith, help.setting}
	case after.seen == v.seen:
		return failed("%s, also with %s", v.seen, help.setting)
	}
	return failed("%s; with %s: %s", v.seen, help.setting, after.seen)
}

func try(t *testing.T, r row, l library, remedied bool) (v verdict) {
	if r.apart {
		return inProcess(r, l, remedied)
	}
	if remedied {
		l.remedies[r.id].apply(&l)
	}
	synctest.Test(t, func(*testing.T) {
		v = r.run(&l)
		time.Sleep(longTime) // what a library has asleep ends before the bubble does
	})
	return v
}

// rows are all rows, in the order of the page.
func rows() (all []row) {
	for _, some := range [][]row{probeRows, tripRows, retryRows, limitRows, raceRows} {
		all = append(all, some...)
	}
	return all
}

func TestThisLibraryPassesEveryRow(t *testing.T) {
	for _, r := range rows() {
		t.Run(r.id, func(t *testing.T) {
			assert.Equal(t, verdict{}, judge(t, r, switchgear()), "%s", r.text)
		})
	}
}

func TestRowsAreToldApart(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows() {
		assert.False(t, seen[r.id], "two rows %s", r.id)
		seen[r.id] = true
	}
	for _, l := range libraries() {
		for id := range l.remedies {
			assert.True(t, seen[id], "%s has a remedy for %s, which is no row", l.name, id)
		}
	}
}

func TestMain(m *testing.M) {
	if runChild() {
		return
	}
	goleak.VerifyTestMain(m)
}

// call is a call on a goroutine of its own.
type call struct {
	ran      atomic.Bool // fn did
	returned bool        // Do did
	err      error
	panicked any
	done     chan struct{}
}

// start makes a call.
func start(ctx context.Context, g guard, fn func(context.Context) error) *call {
	c := &call{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer func() { c.panicked = recover() }()
		c.err = g.Do(ctx, func(ctx context.Context) error {
			c.ran.Store(true)
			return fn(ctx)
		})
		c.returned = true
	}()
	return c
}

// attempt makes a call and waits for its end.
func attempt(g guard, fn func(context.Context) error) *call {
	c := start(context.Background(), g, fn)
	<-c.done
	return c
}

// admits reports whether g lets a call run, which succeeds.
func admits(g guard) bool { return attempt(g, fine).ran.Load() }

// fail makes n calls that fail, and reports whether they all ran.
func fail(g guard, n int) bool {
	all := true
	for range n {
		all = attempt(g, broken).ran.Load() && all
	}
	return all
}

// What a call does.
var errDown = fmt.Errorf("the dependency is down")

func fine(context.Context) error   { return nil }
func broken(context.Context) error { return errDown }
func panics(context.Context) error { panic("a bug") }
func exits(context.Context) error  { runtime.Goexit(); return nil }
func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// gate holds calls up, whatever becomes of their contexts.
type gate chan error

// wait waits for the gate to open and returns what it is given, nil once it is closed.
func (g gate) wait(context.Context) error { return <-g }
