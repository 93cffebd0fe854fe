package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// thing is a value that has to be closed once unless it reaches the caller.
type thing struct {
	id     int
	closed atomic.Int32
}

func (x *thing) Close() error { x.closed.Add(1); return nil }

// twice runs fn in two forks and keeps the one of the given index, or none.
func twice(keep int) Policy {
	return PolicyFunc(func(ctx context.Context, fn Func) error {
		var errs [2]error
		var settles [2]func(bool)
		for i := range 2 {
			fork, settle := Fork(ctx)
			settles[i] = settle
			errs[i] = fn(fork)
		}
		for i := range 2 {
			settles[i](i == keep)
		}
		if keep < 0 {
			return errors.Join(errs[:]...)
		}
		return errs[keep]
	})
}

func direct(ctx context.Context, fn Func) error { return fn(ctx) }

func TestGetReturnsWhatTheDecidingRunReturned(t *testing.T) {
	failed := errors.New("failed")
	again := PolicyFunc(func(ctx context.Context, fn Func) error { _ = fn(ctx); return fn(ctx) })
	for _, p := range []Policy{PolicyFunc(direct), NewPipeline("empty"), NewPipeline("one", PolicyFunc(direct)), again} {
		n := 0
		v, err := Get(t.Context(), p, func(context.Context) (int, error) { n++; return n, failed })
		assert.Equal(t, n, v, "the value also beside an error")
		assert.Equal(t, failed, err, "the error as it is")
	}
	v, err := Get(t.Context(), PolicyFunc(func(context.Context, Func) error { return failed }), func(context.Context) (string, error) { return "x", nil })
	assert.Equal(t, failed, err)
	assert.Empty(t, v, "nothing ran")
}

func TestForksKeepTheWinnersValueAndCloseTheOthers(t *testing.T) {
	for _, tt := range []struct {
		name string
		p    Policy
		runs int
		want int // the run whose value comes back; -1: none
	}{
		{"first kept", twice(0), 2, 0},
		{"second kept", twice(1), 2, 1},
		{"none kept", twice(-1), 2, -1},
		{"nested", NewPipeline("n", twice(1), twice(0)), 4, 2},
		{"nested, kept inside, dropped outside", NewPipeline("n", twice(-1), twice(0)), 4, -1},
		{"three deep", NewPipeline("n", twice(0), twice(1), twice(0)), 8, 2},
		{"bare pipelines nested", NewPipeline("o", NewPipeline("i", twice(1)), twice(1)), 4, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var made []*thing
			v, err := Get(t.Context(), tt.p, func(context.Context) (io.Closer, error) {
				made = append(made, &thing{id: len(made)})
				return made[len(made)-1], nil
			})
			require.NoError(t, err)
			require.Len(t, made, tt.runs)
			for _, x := range made {
				if x.id == tt.want {
					assert.Same(t, x, v)
					assert.Zero(t, x.closed.Load(), "the winner is the caller's to close")
				} else {
					assert.EqualValues(t, 1, x.closed.Load(), "run %d is closed once", x.id)
				}
			}
			if tt.want < 0 {
				assert.Nil(t, v)
			}
		})
	}
}

func TestADroppedForkClosesItsValueWhenFnEnds(t *testing.T) {
	release, ended := make(chan struct{}), make(chan struct{})
	slow, fast := &thing{id: 1}, &thing{id: 2}
	race := PolicyFunc(func(ctx context.Context, fn Func) error {
		loser, drop := Fork(ctx)
		go func() { defer close(ended); _ = fn(context.WithValue(loser, parityKey{}, "slow")) }()
		winner, keep := Fork(ctx)
		err := fn(winner)
		keep(true)
		drop(false)
		drop(true) // changes nothing
		return err
	})
	v, err := Get(t.Context(), race, func(ctx context.Context) (*thing, error) {
		if ctx.Value(parityKey{}) != nil {
			<-release
			return slow, nil
		}
		return fast, nil
	})
	require.NoError(t, err)
	assert.Same(t, fast, v)
	assert.Zero(t, slow.closed.Load())
	close(release)
	<-ended
	assert.EqualValues(t, 1, slow.closed.Load())
	assert.Zero(t, fast.closed.Load())
}

func TestAValueThatComesAfterGetReturnedIsClosed(t *testing.T) {
	release, ended := make(chan struct{}), make(chan struct{})
	x := &thing{}
	abandon := PolicyFunc(func(ctx context.Context, fn Func) error {
		go func() { defer close(ended); _ = fn(ctx) }()
		return io.ErrNoProgress
	})
	v, err := Get(t.Context(), abandon, func(context.Context) (*thing, error) { <-release; return x, nil })
	assert.Nil(t, v)
	assert.Equal(t, io.ErrNoProgress, err)
	close(release)
	<-ended
	assert.EqualValues(t, 1, x.closed.Load())
}

func TestClosingANilPointerIsNotTried(t *testing.T) {
	_, err := Get(t.Context(), twice(-1), func(context.Context) (*thing, error) { return nil, nil })
	require.NoError(t, err)
}

// A stranger's policy may use Get itself, around the call that it protects.
func TestAPolicyThatUsesGetInsideForksBothValues(t *testing.T) {
	var inner, outer []*thing
	stranger := PolicyFunc(func(ctx context.Context, fn Func) error {
		got, err := Get(ctx, twice(1), func(ctx context.Context) (*thing, error) {
			x := &thing{id: len(inner)}
			inner = append(inner, x)
			return x, fn(ctx)
		})
		assert.Same(t, inner[len(inner)-1], got)
		return err
	})
	v, err := Get(t.Context(), NewPipeline("p", twice(0), stranger), func(context.Context) (*thing, error) {
		x := &thing{id: len(outer)}
		outer = append(outer, x)
		return x, nil
	})
	require.NoError(t, err)
	assert.Same(t, outer[1], v)
	closed := func(xs []*thing) (s string) {
		for _, x := range xs {
			s += fmt.Sprint(x.closed.Load())
		}
		return s
	}
	assert.Equal(t, "1011", closed(outer))
	assert.Equal(t, "1010", closed(inner), "the inner Get's losers; its winners went to the stranger")
}

func TestTheValueOfAnEarlierAttemptIsClosed(t *testing.T) {
	again := PolicyFunc(func(ctx context.Context, fn Func) error { _ = fn(ctx); return fn(ctx) })
	a, b := &thing{}, &thing{}
	next := []*thing{a, b}
	v, _ := Get(t.Context(), again, func(context.Context) (*thing, error) { v := next[0]; next = next[1:]; return v, nil })
	assert.Same(t, b, v)
	assert.EqualValues(t, 1, a.closed.Load())
	shared := &thing{}
	_, _ = Get(t.Context(), again, func(context.Context) (*thing, error) { return shared, nil })
	assert.Zero(t, shared.closed.Load(), "the same value twice is still the caller's")
	_, _ = Get(t.Context(), again, func(context.Context) ([]int, error) { return []int{1}, nil }) // not comparable
}

func TestForkOutsideAGetIsNothing(t *testing.T) {
	ctx, settle := Fork(t.Context())
	assert.Equal(t, t.Context(), ctx)
	settle(true)
	settle(false)
}

func TestFallbackValue(t *testing.T) {
	failed := errors.New("failed")
	fail := func(context.Context) (int, error) { return 1, failed }
	seven := FallbackValue(func(context.Context, error) (int, error) { return 7, nil })

	for name, p := range map[string]Policy{
		"alone":                   seven,
		"in a pipeline":           NewPipeline("p", seven),
		"in an inner pipeline":    NewPipeline("p", PolicyFunc(direct), NewPipeline("i", seven)),
		"in a stranger's wrapper": NewPipeline("p", PolicyFunc(func(ctx context.Context, fn Func) error { return NewPipeline("i", seven).Do(ctx, fn) })),
		"in a fork":               NewPipeline("p", twice(1), seven),
		"around forks":            NewPipeline("p", seven, twice(-1)),
		"under a stranger's Get": NewPipeline("p", PolicyFunc(func(ctx context.Context, fn Func) error {
			_, err := Get(ctx, PolicyFunc(direct), func(ctx context.Context) (string, error) { return "", fn(ctx) })
			return err
		}), seven),
	} {
		t.Run(name, func(t *testing.T) {
			v, err := Get(t.Context(), p, fail)
			require.NoError(t, err)
			assert.Equal(t, 7, v)
		})
	}

	for name, do := range map[string]func(p Policy) error{
		"a plain Do": func(p Policy) error { return p.Do(t.Context(), func(context.Context) error { return failed }) },
		"a Get of another type": func(p Policy) error {
			_, err := Get(t.Context(), p, func(context.Context) (string, error) { return "", failed })
			return err
		},
		"a plain Do inside a Get of its type": func(p Policy) error {
			_, err := Get(t.Context(), PolicyFunc(direct), func(ctx context.Context) (int, error) {
				return 1, p.Do(ctx, func(context.Context) error { return failed })
			})
			return err
		},
		"a plain Do with forks inside a Get of its type": func(p Policy) error {
			_, err := Get(t.Context(), PolicyFunc(direct), func(ctx context.Context) (int, error) {
				return 1, NewPipeline("x", twice(0), p).Do(ctx, func(context.Context) error { return failed })
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, p := range []Policy{seven, NewPipeline("p", seven)} {
				err := do(p)
				assert.ErrorIs(t, err, failed)
				assert.ErrorContains(t, err, "FallbackValue[int] needs to run under a Get of the same type")
			}
		})
	}

	own := errors.New("own")
	v, err := Get(t.Context(), FallbackValue(func(context.Context, error) (int, error) { return 9, own }), fail)
	assert.ErrorIs(t, err, own)
	assert.ErrorIs(t, err, failed)
	assert.Equal(t, 1, v)
}

func TestWhatAttemptsShareIsNotClosed(t *testing.T) {
	shared := &thing{}
	v, err := Get(t.Context(), twice(0), func(context.Context) (*thing, error) { return shared, nil })
	require.NoError(t, err)
	require.Same(t, shared, v)
	var late Func
	_, err = Get(t.Context(), PolicyFunc(func(ctx context.Context, fn Func) error {
		fork, settle := Fork(ctx)
		late = func(context.Context) error { defer settle(false); return fn(fork) }
		return fn(ctx)
	}), func(context.Context) (*thing, error) { return shared, nil })
	require.NoError(t, err)
	require.NoError(t, late(t.Context()), "the loser ends after Get has returned")
	assert.Zero(t, shared.closed.Load())
}

func TestValuesThatCannotBeComparedAreNot(t *testing.T) {
	type answer struct{ data any }
	again := PolicyFunc(func(ctx context.Context, fn Func) error { _ = fn(ctx); return fn(ctx) })
	v, err := Get(t.Context(), again, func(context.Context) (answer, error) { return answer{map[string]int{}}, nil })
	require.NoError(t, err)
	assert.NotNil(t, v.data)
}

// Forks settled in any order, from several goroutines, leave exactly one owner to each value.
func TestEveryValueHasExactlyOneOwner(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type node struct {
			keep bool
			kids []*node
		}
		var draw func(depth int) *node
		draw = func(depth int) *node {
			n := &node{keep: rapid.Bool().Draw(rt, "keep")}
			if depth > 0 {
				for range rapid.IntRange(0, 3).Draw(rt, "kids") {
					n.kids = append(n.kids, draw(depth-1))
				}
			}
			return n
		}
		tree := draw(3)
		var mu sync.Mutex
		var made []*thing
		var run func(ctx context.Context, n *node, fn Func) error
		run = func(ctx context.Context, n *node, fn Func) error {
			if len(n.kids) == 0 {
				return fn(ctx)
			}
			var wg sync.WaitGroup
			for _, kid := range n.kids {
				fork, settle := Fork(ctx)
				early := kid.keep && len(kid.kids)%2 == 1
				wg.Go(func() {
					if early {
						settle(kid.keep) // before its run ends
					}
					_ = run(fork, kid, fn)
					settle(kid.keep)
				})
			}
			wg.Wait()
			return nil
		}
		v, _ := Get(context.Background(), PolicyFunc(func(ctx context.Context, fn Func) error { return run(ctx, tree, fn) }),
			func(context.Context) (*thing, error) {
				x := &thing{}
				mu.Lock()
				defer mu.Unlock()
				made = append(made, x)
				return x, nil
			})
		if v != nil && v.closed.Load() != 0 {
			rt.Fatal("the value returned is closed")
		}
		for _, x := range made {
			want := int32(1)
			if x == v {
				want = 0
			}
			if n := x.closed.Load(); n != want {
				rt.Fatalf("closed %d times, want %d", n, want)
			}
		}
	})
}
