package call

import (
	"context"
	"math"
	"reflect"
)

// Thin is a context that ends with its parent, and at the latest at an instant of its own. Most contexts between a caller and
// the function that runs under its policies are Thin. To be notified of the end of a chain of them, one timer and the
// outermost parent are enough; the contexts in between need no timers.
//
// A Thin context must be a pointer. A context of a run that may overlap with another run of the same call must not be Thin:
// see [Life].
type Thin interface {
	context.Context
	Life() (parent context.Context, end Instant)
}

// Never is the end of a [Thin] context that only ends with its parent.
const Never Instant = math.MaxInt64

// Life returns the instant at which ctx ends at the latest, if its ancestor outer does not end before. It reports false if
// not all contexts between the two are [Thin]: then the instant is not known, and runs may overlap.
func Life(ctx, outer context.Context) (end Instant, ok bool) {
	end = Never
	for {
		thin, ok := ctx.(Thin)
		if !ok {
			return end, same(ctx, outer)
		}
		if ctx == outer {
			return end, true
		}
		parent, its := thin.Life()
		ctx, end = parent, min(end, its)
	}
}

// same reports whether a and b are the same context. It returns false if they cannot be compared.
func same(a, b context.Context) bool {
	t := reflect.TypeOf(a)
	if t != reflect.TypeOf(b) || !t.Comparable() {
		return false
	}
	if t.Kind() != reflect.Pointer && t.Size() > 0 { // then it depends on what they hold, and to look allocates
		if !reflect.ValueOf(a).Comparable() || !reflect.ValueOf(b).Comparable() {
			return false
		}
	}
	return a == b
}

// Life returns the parent.
func (r *restarted) Life() (context.Context, Instant) { return r.Context, Never }

// Life returns the parent.
func (a *Attempt) Life() (context.Context, Instant) { return a.Context, Never }
