package policy

import (
	"reflect"
	"strconv"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// Binder is a [Policy] that may have no name of its own, such as a timeout or a retry. [NewPipeline] calls its Bind and runs
// the policy that Bind returns.
type Binder interface {
	Policy
	// Name returns the policy's own name, "" if it has none.
	Name() string
	// Bind returns a copy of the policy that reports under name, to o. If the policy was given a name or an Observer of its
	// own, the copy keeps that.
	Bind(name string, o observe.Observer) Policy
}

// bind returns the policies as a pipeline of that name runs them: Binders bound, the second of a type as name#2.
func bind(name string, policies []Policy, o observe.Observer) []Policy {
	bound := make([]Policy, len(policies))
	seen := map[reflect.Type]int{}
	for i, p := range policies {
		bound[i] = p
		b, ok := p.(Binder)
		if !ok {
			continue
		}
		as := name
		seen[reflect.TypeOf(p)]++
		if n := seen[reflect.TypeOf(p)]; n > 1 {
			as += "#" + strconv.Itoa(n)
		}
		if bound[i] = b.Bind(as, o); isNil(bound[i]) {
			panic("policy: pipeline " + name + ": Bind of " + describe(p) + " returned nil")
		}
	}
	depositOnce(bound)
	return bound
}

// depositOnce makes only the outermost of the policies that share a budget count calls in it. Otherwise one call of the
// pipeline would count several times.
func depositOnce(bound []Policy) {
	seen := map[any]bool{}
	for _, p := range bound {
		b, ok := p.(call.Budgeted)
		if !ok || b.SharedBudget() == nil {
			continue
		}
		if seen[b.SharedBudget()] {
			b.LeaveDeposits()
		}
		seen[b.SharedBudget()] = true
	}
}
