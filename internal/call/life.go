package call

import (
	"context"
	"math"
	"reflect"
)

// Thin is a context that lives as long as its parent, but no longer than until an instant. Most contexts between a caller
// and the function that runs under its policies are such. Whoever needs to be told of their end can set one timer for all of
// them and leave them unarmed.
//
// It is a pointer. A context whose run may overlap with another one of the same call must not be Thin: see [Life].
type Thin interface {
	context.Context
	Life() (parent context.Context, end Instant)
}

// Never is the end of a [Thin] context that ends with its parent only.
const Never Instant = math.MaxInt64

// Life returns the instant at which ctx ends at the latest, beside the end of its ancestor outer. It reports false if it
// cannot tell, since there are other contexts than [Thin] ones between the two; then runs may overlap, too.
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

// same reports whether a and b are one context; not where they hold what cannot be compared.
func same(a, b context.Context) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// Life returns the parent.
func (r *restarted) Life() (context.Context, Instant) { return r.Context, Never }

// Life returns the parent.
func (a *Attempt) Life() (context.Context, Instant) { return a.Context, Never }
