package otelx

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"

	"github.com/switchgear-go/switchgear/internal/errtree"
	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// lagNoticed is how far apart the time of an event and that of the span event for it must be for the difference to be told.
const lagNoticed = time.Millisecond

// spanEvent adds e to the span of the call that set it off.
func (o *observer) spanEvent(ctx context.Context, e *observe.Event) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		if o.transitions && e.Kind == observe.StateChange {
			o.transitionSpan(ctx, e)
		}
		return
	}
	if o.events&SpanEvents != 0 && roomFor(ctx, span, e) {
		addEvent(span, e)
	}
}

func addEvent(span trace.Span, e *observe.Event) {
	name := eventName(e)
	if name == "" {
		return
	}
	attrs := eventAttributes(e)
	now := time.Now()
	if lag := now.Sub(e.Time); !e.Time.IsZero() && lag.Abs() >= lagNoticed {
		attrs = append(attrs, attribute.Float64(semconv.EventLag, lag.Seconds()))
	}
	span.AddEvent(name, trace.WithAttributes(attrs...), trace.WithTimestamp(now))
}

// logEvent emits e as a log record.
func (o *observer) logEvent(ctx context.Context, e *observe.Event) {
	name, severity := eventName(e), severityOf(e)
	if name == "" || !o.logger.Enabled(ctx, log.EnabledParameters{Severity: severity, EventName: name}) {
		return
	}
	var r log.Record
	r.SetEventName(name)
	r.SetSeverity(severity)
	r.SetTimestamp(e.Time)
	r.AddAttributes(eventAttributes(e)...)
	o.logger.Emit(ctx, r)
}

func severityOf(e *observe.Event) log.Severity {
	switch level := e.Level(); {
	case level >= slog.LevelWarn:
		return log.SeverityWarn
	case level >= slog.LevelInfo:
		return log.SeverityInfo
	}
	return log.SeverityDebug
}

// eventName returns the name of e's span event and log record; "" for a kind that is not known.
func eventName(e *observe.Event) string {
	switch e.Kind {
	case observe.StateChange:
		return semconv.EventStateChange
	case observe.Rejected:
		switch e.Policy {
		case "circuit_breaker":
			return semconv.EventBreakerRejected
		case "bulkhead":
			return semconv.EventBulkheadRejected
		case "rate_limiter":
			return semconv.EventLimiterRejected
		}
		return "switchgear." + e.Policy + ".rejected" // a policy that is not ours
	case observe.Attempt:
		return semconv.EventRetryAttempt
	case observe.Exhausted:
		return semconv.EventRetryExhausted
	case observe.TimedOut:
		return semconv.EventTimeoutExceeded
	case observe.Hedged:
		return semconv.EventHedgeAttempt
	case observe.FellBack:
		return semconv.EventFallbackUsed
	}
	return ""
}

// eventAttributes returns the attributes of e, both of its span event and its log record.
func eventAttributes(e *observe.Event) []attribute.KeyValue {
	a := make(eventAttrs, 0, 10)
	a.text(semconv.PolicyName, e.Name)
	a.text(semconv.PipelineName, e.Pipeline)
	switch e.Kind {
	case observe.StateChange:
		a.text(semconv.BreakerState, e.To)
		a.text(semconv.BreakerPrevious, e.From)
		a.text(semconv.BreakerReason, e.Reason)
		if e.Calls != 0 {
			a = append(a, attribute.Float64(semconv.BreakerRatio, e.Ratio), attribute.Int(semconv.BreakerJudgedCalls, e.Calls))
		}
		if e.To == "open" {
			a.seconds(semconv.BreakerCooldown, e.Delay)
			a = append(a, attribute.Int(semconv.BreakerReopenings, e.Reopenings))
		}
	case observe.Rejected:
		if e.Policy == "circuit_breaker" {
			a.text(semconv.BreakerState, e.From)
		} else {
			a.text(semconv.AcquireResult, e.Reason)
		}
	case observe.Attempt:
		a = append(a, attribute.Int(semconv.AttemptNumber, e.Attempt))
		a.seconds(semconv.RetryDelayAttribute, e.Delay)
		a.failure(e.Err)
	case observe.Exhausted:
		a.text(semconv.RetryResult, e.Reason)
		a = append(a, attribute.Int(semconv.AttemptNumber, e.Attempt))
		if e.Delay > 0 {
			a.seconds(semconv.RetryDelayAttribute, e.Delay)
		}
		a.failure(e.Err)
	case observe.TimedOut:
		a.seconds(semconv.TimeoutLimit, e.Delay)
	case observe.Hedged:
		a = append(a, attribute.Int(semconv.AttemptNumber, e.Attempt))
		if e.Reason == semconv.ResultBudgetExhausted {
			a.text(semconv.RetryResult, e.Reason)
		}
		a.failure(e.Err)
	case observe.FellBack:
		a.failure(e.Err)
	}
	return a
}

type eventAttrs []attribute.KeyValue

func (a *eventAttrs) text(key, value string) {
	if value != "" {
		*a = append(*a, attribute.String(key, value))
	}
}

func (a *eventAttrs) seconds(key string, d time.Duration) {
	*a = append(*a, attribute.Float64(key, d.Seconds()))
}

func (a *eventAttrs) failure(err error) {
	if err != nil {
		*a = append(*a, attribute.String(semconv.ErrorType, errtree.Type(err)))
	}
}
