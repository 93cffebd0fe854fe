package breaker

import "github.com/switchgear-go/switchgear/internal/errtree"

// State is what a breaker does with calls.
type State int8

// The states. Closed lets calls through and judges them. Open refuses them until its cooldown ends. HalfOpen lets a few
// through as probes and refuses the rest. An operator sets the forced states, which neither time nor results end.
const (
	Closed State = iota
	HalfOpen
	Open
	ForcedOpen
	ForcedClosed
	states = iota
)

var stateNames = [states]string{"closed", "half_open", "open", "forced_open", "forced_closed"}

// String returns closed, half_open, open, forced_open or forced_closed.
func (s State) String() string {
	if s < 0 || int(s) >= states {
		return "unknown"
	}
	return stateNames[s]
}

// admits reports whether s lets every call through.
func (s State) admits() bool { return s == Closed || s == ForcedClosed }

// ErrCircuitOpen is what every refusal by a breaker matches, with errors.Is. The error itself is a *[policy.RejectedError],
// which says when to try again, if that is known, and why the breaker opened.
var ErrCircuitOpen error = errtree.Reason("circuit open")
