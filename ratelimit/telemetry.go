package ratelimit

import (
	"context"
	"math"
	"time"

	"github.com/switchgear-go/switchgear/internal/call"
	"github.com/switchgear-go/switchgear/internal/instant"
	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
)

const policyType = "rate_limiter"

// Stats describes a [Limiter] at one moment.
type Stats struct {
	Rate      float64 // tokens per second
	Burst     int     // tokens kept at most
	Available float64 // tokens now; the fraction is a token that is still filling up
	Waiting   int     // calls that wait for a token

	// Since New.
	Acquired    int64 // calls that were let through
	Rejected    int64 // calls refused, on arrival or by SetRate while they waited
	Canceled    int64 // calls whose context ended while they waited
	WouldReject int64 // calls that only Config.Shadow let through; Acquired counts them too
}

// Stats returns the limiter's numbers now.
func (l *Limiter) Stats() Stats {
	s := Stats{
		Acquired:    l.counts[acquired].Load(),
		Rejected:    l.counts[rejected].Load(),
		Canceled:    l.counts[canceled].Load(),
		WouldReject: l.counts[wouldReject].Load(),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Rate, s.Burst, s.Waiting = l.bucket.rate, l.bucket.burst, l.queue.calls.Len()
	s.Available = l.bucket.available(l.cfg.Clock())
	return s
}

// The counts of a limiter, as rows.
const (
	acquired = iota
	rejected
	canceled
	wouldReject // in shadow mode only
)

// The other rows, counted from the end of the counts.
const (
	rowAvailable = iota
	rowLimit
)

var (
	counts = [...]observe.Row{
		acquired: callRow(semconv.LimiterCalls, semconv.ResultAcquired),
		rejected: callRow(semconv.LimiterCalls, semconv.ResultRejected),
		canceled: callRow(semconv.LimiterCalls, semconv.ResultCanceled),
	}
	shadowCounts = [len(counts) + 1]observe.Row{
		counts[acquired], counts[rejected], counts[canceled],
		wouldReject: {Metric: semconv.LimiterWouldReject},
	}
	gauges = [...]observe.Row{
		rowAvailable: {Metric: semconv.LimiterAvailable},
		rowLimit:     {Metric: semconv.LimiterLimit},
	}
	rows       = append(counts[:len(counts):len(counts)], gauges[:]...)
	shadowRows = append(shadowCounts[:len(shadowCounts):len(shadowCounts)], gauges[:]...)
)

// The durations of a limiter: of calls that waited for a token.
const (
	waitAcquired = iota
	waitRejected // by a change of the rate, or of the clock
	waitCanceled
)

var durations = []observe.Row{
	waitAcquired: callRow(semconv.LimiterWait, semconv.ResultAcquired),
	waitRejected: callRow(semconv.LimiterWait, semconv.ResultRejected),
	waitCanceled: callRow(semconv.LimiterWait, semconv.ResultCanceled),
}

func callRow(metric, result string) observe.Row {
	return observe.Row{Metric: metric, Attrs: []observe.Attr{{Key: semconv.AcquireResult, Value: result}}}
}

func (l *Limiter) attach() observe.Probe {
	s := observe.Source{Policy: policyType, Name: l.name, Rows: rows, Counts: l.counts[:len(counts)], Durations: durations}
	if l.cfg.Shadow {
		s.Rows, s.Counts = shadowRows, l.counts
	}
	return observe.Attach(l.observer, l, s, (*Limiter).live)
}

// live fills in the gauges.
func (l *Limiter) live(v []int64) {
	s := l.Stats()
	v[rowAvailable], v[rowLimit] = wholeTokens(s.Available), int64(s.Burst)
}

// wholeTokens rounds n down. It adds a little before, since a sum of floats may fall just short of a whole number.
func wholeTokens(n float64) int64 { return int64(math.Floor(n + 1e-9)) }

// record records how long a call waited for a token.
func (l *Limiter) record(ctx context.Context, row int, start time.Duration) {
	if l.probe.Enabled(ctx) {
		l.probe.Record(ctx, row, instant.Now()-start)
	}
}

// refusalLocked returns the error for a call that cannot join the queue now. It is the same value until something changes, so
// that refusals under load allocate nothing.
func (l *Limiter) refusalLocked(now time.Time) *policy.RejectedError {
	if l.refusal == nil {
		var retryAt time.Time
		if wait := l.lastLocked(now); wait < never {
			retryAt = now.Add(wait)
		}
		l.refusal = policy.Rejection(policyType, l.name, ErrLimited, retryAt, l.cfg.Clock)
	}
	return l.refusal
}

// refuse counts and reports a refusal, and returns err.
func (l *Limiter) refuse(ctx context.Context, err *policy.RejectedError, clock time.Time) error {
	l.counts[rejected].Add(1)
	l.observer.Observe(ctx, observe.Event{
		Kind: observe.Rejected, Policy: policyType, Name: l.name, Pipeline: call.Pipeline(ctx),
		Reason: semconv.ResultRejected, Err: err, Time: clock,
	})
	return err
}
