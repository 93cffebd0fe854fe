package policy

import (
	"context"
	"io"
	"reflect"
	"sync"

	"github.com/switchgear-go/switchgear/internal/call"
)

// Get runs fn under p and returns its value and the error of p.Do. The value is what the run of fn that decided the call
// returned, even if there is an error; if fn did not run, the zero value. The values of other runs, such as earlier attempts
// of a retry or attempts that lost a hedge, are closed if they implement [io.Closer].
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
	defer g.root.settle(false) // a value that comes after this is closed
	var err error
	if pipeline, ok := p.(*Pipeline); ok {
		err = pipeline.do(g, nil, g) // saves the closure
	} else {
		err = p.Do(g, g.run)
	}
	return g.root.take(), err
}

// Fork is for authors of policies that run fn several times at once, such as a hedge. Each run needs a context of its own
// from Fork. Once it is known whether the run decides the call, call settle: settle(true) makes the value of the run the
// result of [Get]; settle(false) drops the value, which is closed if it implements [io.Closer], even if fn returns it later.
// Only the first call of settle does anything. Keep before you drop: runs may have
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

// branchIn returns the branch for the value of a run under ctx.
func (g *get[T]) branchIn(ctx context.Context) *branch[T] {
	for s := sightOf(ctx); s != nil; s = s.outer {
		if b, ok := s.cell.(*branch[T]); ok && b.of == g {
			return b
		}
	}
	panic("policy: Get: a policy ran its function under a context that is not derived from its own")
}

// sight is a list of the cells in a context, one for each Get around it, the innermost first. A fork has to fork all of them,
// since a policy between two Gets may run the outer one's fn inside the inner one's.
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

// target returns the cell of the Get for which a policy runs under ctx: the innermost one whose fn is not running. A policy
// inside a running fn belongs to another call.
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

// branch holds the value of one Get: the root is that of the Get itself, and each fork has one of its own.
type branch[T any] struct {
	of     *get[T]
	parent *branch[T] // nil for the root

	mu      sync.Mutex
	running int  // guarded by mu, as is what follows: runs of fn now, including those that the fork is inside
	fate    fate // undecided until it is settled
	has     bool // value is set
	value   T
}

// fate says what a branch does with values: it holds them while undecided, passes them to its parent once kept, and closes
// them once dropped.
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

// set gives the branch a value. It replaces an earlier one, which is closed.
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

// take returns the value. Values that come later are closed.
func (b *branch[T]) take() T {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fate = dropped
	return b.value
}

// same reports whether a and b are the same value. It returns false if they cannot be compared, as structs with a map in an
// interface field.
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
	_ = c.Close() // there is no one to return its error to
}
