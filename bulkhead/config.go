package bulkhead

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/switchgear-go/switchgear/internal/errtree"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// ErrFull is the Reason of every refusal by a [Bulkhead].
var ErrFull error = errtree.Reason("no permit free")

// Config configures a [Bulkhead].
type Config struct {
	// Max is how many calls run at once. It is required: only you know what the dependency bears. See [Bulkhead.Resize].
	Max int

	// Queue is how many more calls may wait for a permit, first come, first served. If zero, none: a call that finds no
	// permit is refused at once.
	Queue int

	// MaxWait is how long a call waits in the queue before it is refused. If zero, as long as its context allows.
	MaxWait time.Duration

	// Shadow lets every call run and only counts those that would have been refused: a rehearsal of a limit. Nobody waits
	// either, so a call counts if it finds Max+Queue calls running.
	Shadow bool

	// Observer is told what the bulkhead does. If nil, OpenTelemetry (otelx.Default).
	Observer observe.Observer
}

// most is the greatest Max and Queue: each has half of an atomic word.
const most = math.MaxInt32

// Validate returns an error that names each field with a value that is not allowed.
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
