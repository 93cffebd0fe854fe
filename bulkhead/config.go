package bulkhead

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/switchgear-go/switchgear/internal/errtree"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// ErrFull is what every refusal by a [Bulkhead] matches, with errors.Is. The error itself is a *[policy.RejectedError].
var ErrFull error = errtree.Reason("no permit free")

// Config configures a [Bulkhead]. Max is required; the zero value is not valid.
type Config struct {
	// Max is how many calls may run at once, at least 1. There is no default, since it depends on what the dependency can
	// take. [Bulkhead.Resize] changes it.
	Max int

	// Queue is how many more calls may wait for a permit; they get one in the order of arrival. If zero, a call that finds no
	// permit is refused at once.
	Queue int

	// MaxWait is how long a call may wait in the queue before it is refused. If zero, as long as its context allows.
	MaxWait time.Duration

	// Shadow lets every call run at once and only counts those that would have been refused, to try out a limit. Since no
	// call waits, one counts as refused if it finds Max+Queue calls running.
	Shadow bool

	// Observer is told of refusals. If nil, OpenTelemetry ([otelx.Default]).
	Observer observe.Observer
}

// most is the highest Max and Queue: each is counted in half of an atomic word.
const most = math.MaxInt32

// Validate returns an error that names each invalid field, its value and what is allowed; nil if c is valid.
func (c Config) Validate() error {
	var faults []error
	if c.Max < 1 || c.Max > most {
		faults = append(faults, fmt.Errorf("bulkhead: Config.Max is %d, must be from 1 to %d", c.Max, most))
	}
	if c.Queue < 0 || c.Queue > most {
		faults = append(faults, fmt.Errorf("bulkhead: Config.Queue is %d, must be from 0 (none) to %d", c.Queue, most))
	}
	if c.MaxWait < 0 {
		faults = append(faults, fmt.Errorf("bulkhead: Config.MaxWait is %v, must be 0 (as long as the context allows) or more", c.MaxWait))
	}
	return errors.Join(faults...)
}
