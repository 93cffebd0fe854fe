package policy

import (
	"context"
	"io"
	"reflect"
	"sync"

	"github.com/switchgear-go/switchgear/internal/call"
)

// Get runs fn under p and returns the value beside the error: what the run of fn that decided the call returned, the value
// also where there is an error. The values of other runs, such as attempts before the last or those that lost a race, are
// closed if they are io.Closers.
func Get[T any](ctx context.Context, p Policy, fn func(context.Context) (T, error)) (T, error) {
	if p == nil {
		panic("policy: Get with a nil policy")
	}
	if ctx == nil {
		panic("policy: Get with a nil context")
	}
	if fn == nil {
		panic("policy: Get with a nil fn")
	}
	g := &get[T]{Context: ctx, fn: fn}
	g.sight = sight{cell: &g.root, outer: sightOf(ctx)}
	g.root.of = g
	defer g.root.settle(false) // whoever still runs fn closes what it returns
	var err error
	if pipeline, ok := p.(*Pipeline); ok {
		err = pipeline.do(g, nil, g) // saves the closure
	} else {
		err = p.Do(g, g.run)
	}
	return g.root.take(), err
}

// Fork is for policies whose runs of fn overlap, such as a hedge. Each run gets a context of its own from Fork and is settled
// once its fate is known: keep it, and the value that fn returned to [Get] becomes the result; or drop it, and the value is
// closed if it is an io.Closer, now or when fn returns. Later calls of settle do nothing. Keep before you drop: runs may have
// returned one and the same value, which is not closed then.
func Fork(ctx context.Context) (fork context.Context, settle func(keep bool)) {
	s := sightOf(ctx)
	if s == nil {
		return ctx, func(bool) {}
	}
	forked := s.fork()
	return &forkContext{ctx, forked}, func(keep bool) {
		for s := forked; s != nil; s = s.outer {
			s.cell.settle(keep)
		}
	}
}

// runner is a get[T] of any T.
type runner interface {
	run(ctx context.Context) error
}

// get is one Get, and the context of its call.
type get[T any] struct {
	context.Context
	sight sight
	root  branch[T]
	fn    func(context.Context) (T, error)
}

func (g *get[T]) Value(key any) any {
	if _, ok := key.(sightKey); ok {
		return &g.sight
	}
	return g.Context.Value(key)
}

func (g *get[T]) Life() (context.Context, call.Instant) { return g.Context, call.Never }

func (g *get[T]) run(ctx context.Context) error {
	b := g.branchIn(ctx)
	b.enter()
	defer b.leave()
	v, err := g.fn(ctx)
	b.set(v)
	return err
}

// branchIn returns where a run under ctx puts its value.
func (g *get[T]) branchIn(ctx context.Context) *branch[T] {
	for s := sightOf(ctx); s != nil; s = s.outer {
		if b, ok := s.cell.(*branch[T]); ok && b.of == g {
			return b
		}
	}
	panic("policy: Get: a policy ran its function under a context that is not derived from its own")
}

// sight lists the cells that a context sees, one for each Get around it, the innermost first. A fork has to fork them all: a
// policy between two of them may run the outer one's fn inside the inner one's.
type sight struct {
	cell  cell
	outer *sight
}

type sightKey struct{}

func sightOf(ctx context.Context) *sight {
	s, _ := ctx.Value(sightKey{}).(*sight)
	return s
}

func (s *sight) fork() *sight {
	if s == nil {
		return nil
	}
	return &sight{s.cell.fork(), s.outer.fork()}
}

type forkContext struct {
	context.Context
	sight *sight
}

func (f *forkContext) Value(key any) any {
	if _, ok := key.(sightKey); ok {
		return f.sight
	}
	return f.Context.Value(key)
}

// target returns the cell of the Get that a policy running under ctx serves: the innermost whose fn is not running. Inside a
// running fn a policy serves some other call.
func target(ctx context.Context) cell {
	for s := sightOf(ctx); s != nil; s = s.outer {
		if !s.cell.isRunning() {
			return s.cell
		}
	}
	return nil
}

// cell is a branch[T] of any T.
type cell interface {
	fork() cell
	settle(keep bool)
	isRunning() bool
}

// branch holds the value of one Get as one line of attempts sees it: the root for Get itself, one more for each fork.
type branch[T any] struct {
	of     *get[T]
	parent *branch[T] // nil for the root

	mu      sync.Mutex
	running int // guarded by mu: runs of fn now, those around the fork included
	fate    fate
	has     bool
	value   T
}

// fate is what became of a branch: until it is settled it keeps its value, then it passes values on or closes them.
type fate uint8

const (
	undecided fate = iota
	kept
	dropped
)

func (b *branch[T]) fork() cell {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &branch[T]{of: b.of, parent: b, running: b.running}
}

func (b *branch[T]) isRunning() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.running > 0
}

func (b *branch[T]) enter() {
	b.mu.Lock()
	b.running++
	b.mu.Unlock()
}

func (b *branch[T]) leave() {
	b.mu.Lock()
	b.running--
	b.mu.Unlock()
}

// set gives the branch a value: the last one counts, and the one before is closed, since nobody else will.
func (b *branch[T]) set(v T) {
	b.mu.Lock()
	fate, old, had := b.fate, b.value, b.has
	if fate == undecided {
		b.value, b.has = v, true
	}
	b.mu.Unlock()
	switch {
	case fate == kept:
		b.parent.set(v)
	case fate == dropped:
		if !b.gave(v) {
			closeValue(v)
		}
	case had && !same(old, v):
		closeValue(old)
	}
}

// settle decides the branch's fate, once.
func (b *branch[T]) settle(keep bool) {
	b.mu.Lock()
	if b.fate != undecided {
		b.mu.Unlock()
		return
	}
	b.fate = dropped
	if keep {
		b.fate = kept
	}
	v, has := b.value, b.has
	b.mu.Unlock()
	switch {
	case !has:
	case keep:
		b.parent.set(v)
	case !b.parent.gave(v):
		closeValue(v)
	}
}

// gave reports whether b, or a branch that it was forked from, has or had v too: attempts may share what they return, and
// then it is not for the one that lost to close it.
func (b *branch[T]) gave(v T) bool {
	for ; b != nil; b = b.parent {
		b.mu.Lock()
		held, has := b.value, b.has
		b.mu.Unlock()
		if has && same(held, v) {
			return true
		}
	}
	return false
}

// take returns the value. What comes later is dropped.
func (b *branch[T]) take() T {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fate = dropped
	return b.value
}

// same reports whether a and b are one value; not where they hold what cannot be compared, such as a map in an interface.
func same(a, b any) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

func closeValue(v any) {
	c, ok := v.(io.Closer)
	if !ok {
		return
	}
	if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && r.IsNil() {
		return
	}
	_ = c.Close() // nobody is left to tell
}
