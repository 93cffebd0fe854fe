package policy

import (
	"container/list"
	"context"
	"fmt"
	"iter"
	"reflect"
	"sync"
	"time"

	"github.com/switchgear-go/switchgear/internal/instant"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// Group holds shared policies by key, such as a breaker per host or a limiter per tenant. The number of policies is bounded,
// so keys may come from traffic. Give every policy of a group the same name: telemetry then reports their sums under that
// name, and no keys.
//
// Most callers want [Group.Policy]. Create a Group with [NewGroup]; it is safe for concurrent use.
type Group[P any] struct {
	cfg   GroupConfig
	build func(key string) P
	probe observe.Probe

	mu      sync.Mutex
	entries map[string]*member[P] // guarded by mu
	used    list.List             // of *member[P], the least recently used first; guarded by mu
	created list.List             // of *member[P], in the order of creation; guarded by mu
	spared  bool                  // the last expire found policies that were due but in use; guarded by mu
	recheck time.Duration         // if so, the instant of the next expire; guarded by mu
}

// GroupConfig says how many policies a [Group] keeps.
type GroupConfig struct {
	Name    string        // the group's name, for String and the texts of panics
	Max     int           // how many policies are kept. If zero, 1,000
	IdleTTL time.Duration // how long a policy is kept after its last use. If zero, 1h. If negative, without limit
}

// Validate returns an error that names each invalid field, its value and what is allowed; nil if c is valid.
func (c GroupConfig) Validate() error {
	if c.Max < 0 {
		return fmt.Errorf("policy: GroupConfig.Max is %d, must be 0 (for 1,000) or more", c.Max)
	}
	return nil
}

// member is one policy of a group.
type member[P any] struct {
	key     string
	ready   chan struct{} // closed when policy is built, or build panicked
	policy  P
	failed  bool          // build panicked; set before ready is closed
	pins    int           // guarded by the group's mu: calls running through Policy, and the build
	last    time.Duration // guarded by the group's mu: the instant of the last use
	used    *list.Element
	created *list.Element
}

// NewGroup returns a group that creates the policy of a key with build, when the key is first used. It panics if cfg is not
// valid or build is nil.
//
// When the group is full, a new key evicts the least recently used policy that is not in use or, if all are, the least
// recently used one. A policy is in use while it runs a call of [Group.Policy], and while its method InUse() bool, if it has
// one, returns true: that of a breaker while it is not closed, that of a limiter while its bucket is not full. A policy
// that is in use does not expire by IdleTTL either. Policies expire at the next use of the group and when telemetry is
// collected.
//
// build is called once per key, without a lock held. If it panics, the panic reaches the caller, and the next caller of the
// key calls build again. build must not use the group with the key that it builds.
func NewGroup[P any](cfg GroupConfig, build func(key string) P) *Group[P] {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	if build == nil {
		panic("policy: NewGroup " + cfg.Name + ": nil build")
	}
	if cfg.Max == 0 {
		cfg.Max = 1000
	}
	if cfg.IdleTTL == 0 {
		cfg.IdleTTL = time.Hour
	}
	g := &Group[P]{cfg: cfg, build: build, entries: map[string]*member[P]{}}
	if cfg.IdleTTL > 0 {
		g.probe = observe.Attach(otelx.Default(), g, observe.Source{Policy: "group", Name: cfg.Name}, func(g *Group[P], _ []int64) { g.expire() })
	}
	return g
}

// Get returns the policy of key, which it creates if there is none. Call it for each use rather than keep its result: a
// policy that was evicted since is not the group's any more.
func (g *Group[P]) Get(key string) P {
	m := g.member(key)
	g.unpin(m)
	return m.policy
}

// All returns an iterator over the keys and policies that the group holds now, in the order of creation. It is not a use
// that keeps them from expiring.
func (g *Group[P]) All() iter.Seq2[string, P] {
	return func(yield func(string, P) bool) {
		for _, m := range g.members(&g.created, 0, -1) {
			select {
			case <-m.ready:
			default:
				continue
			}
			if !m.failed && !yield(m.key, m.policy) {
				return
			}
		}
	}
}

// Policy returns a policy that runs each call under the policy of the call's key, which the function key returns for the
// call's context. It panics unless P implements [Policy].
func (g *Group[P]) Policy(key func(ctx context.Context) string) Policy {
	if t := reflect.TypeFor[P](); !t.Implements(reflect.TypeFor[Policy]()) {
		panic("policy: group " + g.cfg.Name + ": " + t.String() + " is not a Policy")
	}
	if key == nil {
		panic("policy: group " + g.cfg.Name + ": nil key function")
	}
	return &keyed[P]{g, key}
}

// keyed is a group as a policy.
type keyed[P any] struct {
	group *Group[P]
	key   func(ctx context.Context) string
}

func (k *keyed[P]) Do(ctx context.Context, fn Func) error {
	check("group "+k.group.cfg.Name, ctx, fn)
	if err := ctx.Err(); err != nil {
		return err
	}
	m := k.group.member(k.key(ctx))
	defer k.group.unpin(m)
	return any(m.policy).(Policy).Do(ctx, fn) // Policy checked that
}

// InUse reports whether any policy of the group is in use.
func (k *keyed[P]) InUse() bool {
	for _, m := range k.group.members(&k.group.created, 0, -1) {
		if k.group.inUse(m) {
			return true
		}
	}
	return false
}

func (k *keyed[P]) String() string { return "group(" + k.group.cfg.Name + ")" }

// member returns the member of key, built and pinned.
func (g *Group[P]) member(key string) *member[P] {
	g.expire()
	for {
		m, isNew := g.admit(key)
		if isNew {
			g.construct(m)
			return m
		}
		<-m.ready
		if !m.failed {
			return m
		}
		g.unpin(m)
	}
}

// admit returns the member of key, pinned. isNew reports that the caller has to build it.
func (g *Group[P]) admit(key string) (m *member[P], isNew bool) {
	var victim *member[P]
	allUsed := false
	for {
		g.mu.Lock()
		if m := g.entries[key]; m != nil {
			g.pinLocked(m)
			g.mu.Unlock()
			return m, false
		}
		if len(g.entries) >= g.cfg.Max && victim != nil && (allUsed || victim.pins == 0) { // else a call has begun there since
			g.removeLocked(victim)
		}
		if len(g.entries) < g.cfg.Max {
			m := &member[P]{key: key, ready: make(chan struct{})}
			g.entries[key] = m
			m.used, m.created = g.used.PushBack(m), g.created.PushBack(m)
			g.pinLocked(m)
			g.mu.Unlock()
			return m, true
		}
		g.mu.Unlock()
		victim, allUsed = g.victim()
	}
}

func (g *Group[P]) construct(m *member[P]) {
	built := false
	defer func() {
		if !built {
			m.failed = true
			g.mu.Lock()
			g.removeLocked(m)
			g.mu.Unlock()
		}
		close(m.ready)
	}()
	m.policy = g.build(m.key)
	built = true
}

// victim returns the least recently used member that is not in use. If all are in use it returns the least recently used one
// and true. It calls InUse without the lock, so it copies members in batches. They grow, since the first member is almost
// always the one.
func (g *Group[P]) victim() (m *member[P], allUsed bool) {
	var oldest *member[P]
	for skip, n := 0, 1; ; skip, n = skip+n, n*8 {
		batch := g.members(&g.used, skip, n)
		if len(batch) == 0 {
			return oldest, true
		}
		if oldest == nil {
			oldest = batch[0]
		}
		for _, m := range batch {
			if !g.inUse(m) {
				return m, false
			}
		}
	}
}

// expire removes members that have not been used for IdleTTL.
func (g *Group[P]) expire() {
	if g.cfg.IdleTTL < 0 {
		return
	}
	now := instant.Now()
	limit := instant.Add(now, -g.cfg.IdleTTL)
	g.mu.Lock()
	oldest := g.used.Front()
	due := oldest != nil && oldest.Value.(*member[P]).last <= limit && (!g.spared || now >= g.recheck)
	g.mu.Unlock()
	if !due {
		return
	}
	spared := 0
	for n := 1; ; n *= 8 {
		batch := g.members(&g.used, spared, n)
		for _, m := range batch {
			if !g.inUse(m) {
				if !g.removeIdle(m, limit) {
					batch = nil // the members after it were used even later
					break
				}
				continue
			}
			spared++
		}
		if len(batch) < n {
			break
		}
	}
	g.mu.Lock()
	g.spared, g.recheck = spared > 0, now+g.cfg.IdleTTL/100
	g.mu.Unlock()
}

// removeIdle removes m, unless it is pinned. It reports false if m was used after the limit.
func (g *Group[P]) removeIdle(m *member[P], limit time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.last > limit {
		return false
	}
	if m.pins == 0 {
		g.removeLocked(m)
	}
	return true
}

// members returns up to n members of the list after the first skip, all for n < 0.
func (g *Group[P]) members(l *list.List, skip, n int) []*member[P] {
	g.mu.Lock()
	defer g.mu.Unlock()
	var some []*member[P]
	for e := l.Front(); e != nil && n != 0; e = e.Next() {
		if skip > 0 {
			skip--
			continue
		}
		some = append(some, e.Value.(*member[P]))
		n--
	}
	return some
}

func (g *Group[P]) inUse(m *member[P]) bool {
	g.mu.Lock()
	pinned := m.pins > 0
	g.mu.Unlock()
	if pinned {
		return true
	}
	select {
	case <-m.ready:
	default:
		return true
	}
	u, ok := any(m.policy).(interface{ InUse() bool })
	return ok && u.InUse()
}

func (g *Group[P]) pinLocked(m *member[P]) {
	m.pins++
	m.last = instant.Now()
	g.used.MoveToBack(m.used)
}

func (g *Group[P]) unpin(m *member[P]) {
	g.mu.Lock()
	m.pins--
	m.last = instant.Now()
	g.used.MoveToBack(m.used) // does nothing if m was removed
	g.mu.Unlock()
}

func (g *Group[P]) removeLocked(m *member[P]) {
	if g.entries[m.key] == m {
		delete(g.entries, m.key)
		g.used.Remove(m.used)
		g.created.Remove(m.created)
	}
}
