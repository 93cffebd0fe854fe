package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unit is a policy whose use a test decides.
type unit struct {
	key  string
	busy atomic.Bool
}

func (u *unit) Do(ctx context.Context, fn Func) error { return fn(ctx) }
func (u *unit) InUse() bool                           { return u.busy.Load() }

func units(cfg GroupConfig) (*Group[*unit], map[string]int) {
	built := map[string]int{}
	return NewGroup(cfg, func(key string) *unit { built[key]++; return &unit{key: key} }), built
}

func (g *Group[P]) keys() (keys []string) {
	for key := range g.All() {
		keys = append(keys, key)
	}
	return keys
}

func TestAGroupBuildsOncePerKey(t *testing.T) {
	g, built := units(GroupConfig{Name: "hosts"})
	a := g.Get("a")
	assert.Same(t, a, g.Get("a"))
	assert.NotSame(t, a, g.Get("b"))
	assert.Equal(t, map[string]int{"a": 1, "b": 1}, built)
	assert.Equal(t, []string{"a", "b"}, g.keys())
}

func TestAGroupBuildsOncePerKeyUnderConcurrency(t *testing.T) {
	var built atomic.Int32
	g := NewGroup(GroupConfig{}, func(string) *unit { built.Add(1); return &unit{} })
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 100 {
				g.Get(strconv.Itoa((i + j) % 10))
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, 10, built.Load())
}

func TestTheLeastRecentlyUsedGoesUnlessItIsInUse(t *testing.T) {
	g, built := units(GroupConfig{Max: 3})
	a := g.Get("a")
	g.Get("b")
	g.Get("c")
	g.Get("a")
	g.Get("d")
	assert.Equal(t, []string{"a", "c", "d"}, g.keys(), "b was used least recently")
	a.busy.Store(true)
	g.Get("c")
	g.Get("d")
	g.Get("e")
	assert.Equal(t, []string{"a", "d", "e"}, g.keys(), "a is in use, c comes next")
	for _, u := range g.All() {
		u.busy.Store(true)
	}
	g.Get("f")
	assert.Equal(t, []string{"d", "e", "f"}, g.keys(), "where all are in use the bound decides")
	g.Get("b")
	assert.Equal(t, 2, built["b"])
}

func TestARunningCallKeepsItsPolicy(t *testing.T) {
	g, _ := units(GroupConfig{Max: 2})
	p := g.Policy(func(ctx context.Context) string { return ctx.Value(parityKey{}).(string) })
	a := g.Get("a")
	require.NoError(t, p.Do(context.WithValue(t.Context(), parityKey{}, "a"), func(context.Context) error {
		g.Get("b")
		g.Get("c")
		assert.Same(t, a, g.Get("a"))
		assert.True(t, p.(*keyed[*unit]).InUse())
		return nil
	}))
	assert.False(t, p.(*keyed[*unit]).InUse())
	assert.Panics(t, func() {
		_ = p.Do(context.WithValue(t.Context(), parityKey{}, "a"), func(context.Context) error { panic(1) })
	})
	g.Get("x")
	g.Get("y")
	assert.Equal(t, []string{"x", "y"}, g.keys(), "a panic lets go of it")
}

// curious is a policy that looks idle, and whose being asked a test hears of.
type curious struct{ asked func() }

func (c *curious) Do(ctx context.Context, fn Func) error { return fn(ctx) }
func (c *curious) InUse() bool                           { c.asked(); return false }

func TestACallThatBeginsWhileAVictimIsSoughtKeepsItsPolicy(t *testing.T) {
	began, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var g *Group[*curious]
	var once sync.Once
	begin := func() {
		go func() {
			defer close(ended)
			_ = g.Policy(func(context.Context) string { return "a" }).Do(context.Background(), func(context.Context) error {
				close(began)
				<-end
				return nil
			})
		}()
		<-began
	}
	g = NewGroup(GroupConfig{Max: 2}, func(key string) *curious {
		return &curious{func() {
			if key == "a" {
				once.Do(begin)
			}
		}}
	})
	a := g.Get("a")
	g.Get("b")
	g.Get("c")
	assert.Same(t, a, g.Get("a"), "b had to go")
	close(end)
	<-ended
}

func TestTheLongestTTLKeepsWhatIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where instants are below 0
		g, built := units(GroupConfig{IdleTTL: math.MaxInt64})
		g.Get("a")
		time.Sleep(time.Hour)
		g.Get("a")
		assert.Equal(t, 1, built["a"])
	})
}

func TestAnIdlePolicyIsDroppedAtTheNextGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := units(GroupConfig{IdleTTL: time.Minute})
		g.Get("a")
		b := g.Get("b")
		b.busy.Store(true)
		time.Sleep(30 * time.Second)
		g.Get("c")
		time.Sleep(30 * time.Second)
		g.Get("d")
		assert.Equal(t, []string{"b", "c", "d"}, g.keys(), "b is in use")
		b.busy.Store(false)
		time.Sleep(time.Second)
		g.Get("d")
		assert.Equal(t, []string{"c", "d"}, g.keys())
		time.Sleep(time.Hour)
		g.expire() // as a collection does
		assert.Empty(t, g.keys())
	})
	synctest.Test(t, func(t *testing.T) {
		g, _ := units(GroupConfig{IdleTTL: -1})
		g.Get("a")
		time.Sleep(1000 * time.Hour)
		g.Get("b")
		assert.Equal(t, []string{"a", "b"}, g.keys())
	})
}

func TestABuildThatPanicsWedgesNothing(t *testing.T) {
	fail := true
	g := NewGroup(GroupConfig{Max: 1}, func(key string) *unit {
		if fail {
			panic("build")
		}
		return &unit{key: key}
	})
	assert.PanicsWithValue(t, "build", func() { g.Get("a") })
	assert.Empty(t, g.keys())
	fail = false
	assert.Equal(t, "a", g.Get("a").key)
}

func TestThoseWhoWaitForABuildThatPanicsBuildThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		release := make(chan struct{})
		g := NewGroup(GroupConfig{}, func(string) *unit {
			if n.Add(1) == 1 {
				<-release
				panic("first")
			}
			return &unit{}
		})
		got := make(chan any, 8)
		for range 8 {
			go func() {
				defer func() { got <- recover() }()
				g.Get("a")
			}()
		}
		synctest.Wait()
		close(release)
		panics := 0
		for range 8 {
			if <-got != nil {
				panics++
			}
		}
		assert.Equal(t, 1, panics)
		assert.EqualValues(t, 2, n.Load())
	})
}

func TestAGroupAsksInUseOutsideItsLock(t *testing.T) {
	var g *Group[*nosy]
	g = NewGroup(GroupConfig{Max: 1}, func(string) *nosy { return &nosy{func() { g.Get("z"); g.keys() }} })
	g.Get("a")
	g.Get("b")
}

type nosy struct{ look func() }

func (n *nosy) InUse() bool {
	look := n.look
	n.look = func() {}
	look()
	return false
}

func TestGroupRefusesBadInput(t *testing.T) {
	build := func(string) int { return 0 }
	assert.PanicsWithError(t, "policy: GroupConfig.Max is -1, must be 0 (for 1,000) or more", func() { NewGroup(GroupConfig{Max: -1}, build) })
	assert.PanicsWithValue(t, "policy: NewGroup g: nil build", func() { NewGroup[int](GroupConfig{Name: "g"}, nil) })
	g := NewGroup(GroupConfig{Name: "g"}, build)
	assert.PanicsWithValue(t, "policy: group g: int is not a Policy", func() { g.Policy(func(context.Context) string { return "" }) })
	assert.PanicsWithValue(t, "policy: group g: nil key function", func() { NewGroup(GroupConfig{Name: "g"}, func(string) Policy { return nil }).Policy(nil) })
}

// Keys may come from traffic (Netflix/Hystrix#1737).
func TestAMillionKeysLeaveNothingBehind(t *testing.T) {
	g := NewGroup(GroupConfig{Max: 1000}, func(key string) Policy { return NewPipeline("shard", Timeout(time.Second)) })
	g.Get("warm")
	before := liveHeap()
	n := 1_000_000
	if raceEnabled {
		n = 50_000
	}
	for i := range n {
		g.Get(strconv.Itoa(i))
	}
	assert.Len(t, g.keys(), 1000)
	assert.Equal(t, strconv.Itoa(n-1), g.keys()[999])
	settle(t, func() bool { return liveHeap() < before+10<<20 })
}

// settle waits for cleanups, which the collector runs when it likes.
func settle(t *testing.T, done func() bool) {
	t.Helper()
	for range 50 {
		if done() {
			return
		}
	}
	t.Error("it did not settle")
}

func TestOneShardOpenTheOtherServed(t *testing.T) {
	down := errors.New("shard refuses")
	g := NewGroup(GroupConfig{}, func(key string) Policy {
		return PolicyFunc(func(ctx context.Context, fn Func) error {
			if key == "a" {
				return down
			}
			return fn(ctx)
		})
	})
	p := NewPipeline("store", g.Policy(func(ctx context.Context) string { return fmt.Sprint(ctx.Value(parityKey{})) }))
	do := func(key string) error {
		return p.Do(context.WithValue(t.Context(), parityKey{}, key), func(context.Context) error { return io.EOF })
	}
	assert.Equal(t, down, do("a"))
	assert.Equal(t, io.EOF, do("b"))
}

func BenchmarkGroupGet(b *testing.B) {
	g, _ := units(GroupConfig{})
	g.Get("a")
	b.ReportAllocs()
	for b.Loop() {
		g.Get("a")
	}
}
