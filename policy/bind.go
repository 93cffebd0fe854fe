package policy

import (
	"reflect"
	"strconv"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// Binder is a [Policy] that may have no name of its own, such as a timeout or a retry. [NewPipeline] calls Bind on each and
// runs what it returns: a copy that reports under name to o. A policy that was given a name or an Observer keeps that.
type Binder interface {
	Policy
	Name() string // "" if it has none
	Bind(name string, o observe.Observer) Policy
}

// bind returns the policies as they report in a pipeline of that name: unnamed ones under the pipeline's, the second of a
// type as name#2.
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
		if bound[i] = b.Bind(as, o); bound[i] == nil {
			panic("policy: pipeline " + name + ": Bind of " + describe(p) + " returned nil")
		}
	}
	depositOnce(bound)
	return bound
}

// depositOnce lets only the outermost policy of each budget deposit calls in it: a call is one call, however many layers
// may repeat it.
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
