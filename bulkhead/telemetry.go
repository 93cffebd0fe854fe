package bulkhead

import (
	"context"
	"time"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/internal/instant"
	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

const policyType = "bulkhead"

// Stats describes a [Bulkhead] at one moment.
type Stats struct {
	Max     int // calls that may run at once
	Running int // calls that run now; it may be above Max after a Resize, or in shadow mode
	Queue   int // calls that may wait at once
	Waiting int // calls that wait now

	// Since New.
	Acquired    int64 // calls that were let through
	Rejected    int64 // calls refused on arrival
	TimedOut    int64 // calls refused after they had waited for MaxWait
	Canceled    int64 // calls whose context ended while they waited
	WouldReject int64 // calls that only Config.Shadow let through; Acquired counts them too
}

// Stats returns the bulkhead's numbers now. Max, Running and Waiting fit together.
func (b *Bulkhead) Stats() Stats {
	s := Stats{
		Queue:       b.cfg.Queue,
		Acquired:    b.counts[acquired].Load(),
		Rejected:    b.counts[rejected].Load(),
		TimedOut:    b.counts[timedOut].Load(),
		Canceled:    b.counts[canceled].Load(),
		WouldReject: b.counts[wouldReject].Load(),
	}
	s.Max, s.Running, s.Waiting = b.now()
	return s
}

// now returns Max and how many calls run and wait, which only fit together under the lock: Resize changes them under it.
func (b *Bulkhead) now() (limit, running, waits int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	word := b.permits.word.Load()
	return b.max, b.max - free(word), waiting(word)
}

// The counts of a bulkhead, as rows.
const (
	acquired = iota
	rejected
	timedOut
	canceled
	wouldReject // in shadow mode only
)

// The other rows, counted from the end of the counts.
const (
	rowUsage = iota
	rowLimit
	rowQueueUsage // where there is a queue
	rowQueueLimit
)

var (
	counts = [...]observe.Row{
		acquired: callRow(semconv.BulkheadCalls, semconv.ResultAcquired),
		rejected: callRow(semconv.BulkheadCalls, semconv.ResultRejected),
		timedOut: callRow(semconv.BulkheadCalls, semconv.ResultTimeout),
		canceled: callRow(semconv.BulkheadCalls, semconv.ResultCanceled),
	}
	shadowCounts = [len(counts) + 1]observe.Row{
		counts[acquired], counts[rejected], counts[timedOut], counts[canceled],
		wouldReject: {Metric: semconv.BulkheadWouldReject},
	}
	gauges = [...]observe.Row{
		rowUsage:      {Metric: semconv.BulkheadUsage},
		rowLimit:      {Metric: semconv.BulkheadLimit},
		rowQueueUsage: {Metric: semconv.BulkheadQueueUsage},
		rowQueueLimit: {Metric: semconv.BulkheadQueueLimit},
	}
	rows       = append(counts[:len(counts):len(counts)], gauges[:]...)
	shadowRows = append(shadowCounts[:len(shadowCounts):len(shadowCounts)], gauges[:]...)
)

// The durations of a bulkhead: of calls that waited in the queue.
const (
	waitAcquired = iota
	waitTimedOut
	waitCanceled
)

var durations = []observe.Row{
	waitAcquired: callRow(semconv.BulkheadWait, semconv.ResultAcquired),
	waitTimedOut: callRow(semconv.BulkheadWait, semconv.ResultTimeout),
	waitCanceled: callRow(semconv.BulkheadWait, semconv.ResultCanceled),
}

func callRow(metric, result string) observe.Row {
	return observe.Row{Metric: metric, Attrs: []observe.Attr{{Key: semconv.AcquireResult, Value: result}}}
}

func (b *Bulkhead) attach() observe.Probe {
	s := observe.Source{Policy: policyType, Name: b.name, Rows: rows, Counts: b.counts[:len(counts)], Durations: durations}
	if b.cfg.Shadow {
		s.Rows, s.Counts = shadowRows, b.counts[:]
	}
	return observe.Attach(b.observer, b, s, (*Bulkhead).live)
}

// live fills in the gauges.
func (b *Bulkhead) live(v []int64) {
	limit, running, waits := b.now()
	v[rowUsage], v[rowLimit] = int64(running), int64(limit)
	if b.cfg.Queue > 0 {
		v[rowQueueUsage], v[rowQueueLimit] = int64(waits), int64(b.cfg.Queue)
	}
}

// record records how long a call waited in the queue.
func (b *Bulkhead) record(ctx context.Context, row int, start time.Duration) {
	if b.probe.Enabled(ctx) {
		b.probe.Record(ctx, row, instant.Now()-start)
	}
}

// refusals are the errors of a bulkhead, made once so that refusals under load allocate nothing.
type refusals struct{ atOnce, expired, tooLate *policy.RejectedError }

func newRefusals(name string, cfg Config) refusals {
	because := func(why string) *policy.RejectedError {
		err := policy.Rejection(policyType, name, ErrFull, time.Time{}, nil)
		err.Why = why
		return err
	}
	return refusals{
		atOnce:  because(""),
		expired: because("waited " + cfg.MaxWait.String()),
		tooLate: because("none expected before the deadline"),
	}
}

// refuse counts and reports a refusal, and returns err.
func (b *Bulkhead) refuse(ctx context.Context, result int, err *policy.RejectedError) error {
	b.counts[result].Add(1)
	b.observer.Observe(ctx, observe.Event{
		Kind: observe.Rejected, Policy: policyType, Name: b.name, Pipeline: call.Pipeline(ctx),
		Reason: counts[result].Attrs[0].Value, Err: err, Time: time.Now(),
	})
	return err
}
