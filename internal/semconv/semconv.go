// Package semconv names what is emitted: metrics, attributes and their closed sets of values, events.
package semconv

// Attributes.
const (
	PolicyName          = "switchgear.policy.name"
	PipelineName        = "switchgear.pipeline.name"
	CallOutcome         = "switchgear.call.outcome"
	BreakerState        = "switchgear.circuit_breaker.state"
	BreakerPrevious     = "switchgear.circuit_breaker.previous_state"
	BreakerReason       = "switchgear.circuit_breaker.reason"
	BreakerRatio        = "switchgear.circuit_breaker.ratio"
	BreakerJudgedCalls  = "switchgear.circuit_breaker.judged_calls"
	BreakerCooldown     = "switchgear.circuit_breaker.cooldown"
	BreakerReopenings   = "switchgear.circuit_breaker.reopenings"
	AttemptType         = "switchgear.attempt.type"
	AttemptNumber       = "switchgear.attempt.number"
	RetryResult         = "switchgear.retry.result"
	RetryDelayAttribute = "switchgear.retry.delay"
	AcquireResult       = "switchgear.acquire.result"
	TimeoutResult       = "switchgear.timeout.result"
	TimeoutLimit        = "switchgear.timeout.limit"
	EventLag            = "switchgear.event.lag"
	ErrorType           = "error.type"
)

// Values of CallOutcome, and of the other attributes that tell a result.
const (
	OutcomeSuccess  = "success"
	OutcomeFailure  = "failure"
	OutcomeIgnored  = "ignored"
	OutcomeRejected = "rejected"
	OutcomeCanceled = "canceled"
	OutcomeTimeout  = "timeout"

	ResultCompleted = "completed"
	ResultLate      = "late"
	ResultTimedOut  = "timed_out"
	ResultCanceled  = "canceled"

	ResultAcquired = "acquired"
	ResultRejected = "rejected"
	ResultTimeout  = "timeout"

	ResultFirstTry        = "first_try"
	ResultRecovered       = "recovered"
	ResultExhausted       = "exhausted"
	ResultNotRetryable    = "not_retryable"
	ResultBudgetExhausted = "budget_exhausted"
	ResultDeadline        = "deadline"

	AttemptOriginal = "original"
	AttemptRetry    = "retry"
	AttemptHedge    = "hedge"
)

// Metrics.
const (
	PipelineDuration    = "switchgear.pipeline.duration"
	PipelineActive      = "switchgear.pipeline.active"
	BreakerStatus       = "switchgear.circuit_breaker.status"
	BreakerTime         = "switchgear.circuit_breaker.time"
	BreakerTransitions  = "switchgear.circuit_breaker.transitions"
	BreakerCalls        = "switchgear.circuit_breaker.calls"
	BreakerSlowCalls    = "switchgear.circuit_breaker.slow_calls"
	BreakerLateResults  = "switchgear.circuit_breaker.late_results"
	BreakerWouldReject  = "switchgear.circuit_breaker.would_reject"
	RetryAttempts       = "switchgear.retry.attempts"
	RetryCalls          = "switchgear.retry.calls"
	RetryDelay          = "switchgear.retry.delay"
	BulkheadUsage       = "switchgear.bulkhead.usage"
	BulkheadLimit       = "switchgear.bulkhead.limit"
	BulkheadQueueUsage  = "switchgear.bulkhead.queue.usage"
	BulkheadQueueLimit  = "switchgear.bulkhead.queue.limit"
	BulkheadCalls       = "switchgear.bulkhead.calls"
	BulkheadWait        = "switchgear.bulkhead.wait.duration"
	BulkheadWouldReject = "switchgear.bulkhead.would_reject"
	LimiterCalls        = "switchgear.rate_limiter.calls"
	LimiterWait         = "switchgear.rate_limiter.wait.duration"
	LimiterAvailable    = "switchgear.rate_limiter.available"
	LimiterLimit        = "switchgear.rate_limiter.limit"
	LimiterWouldReject  = "switchgear.rate_limiter.would_reject"
	HedgeAttempts       = "switchgear.hedge.attempts"
	BudgetAvailable     = "switchgear.retry.budget.available"
	BudgetLimit         = "switchgear.retry.budget.limit"
	TimeoutCalls        = "switchgear.timeout.calls"
	FallbackCalls       = "switchgear.fallback.calls"
)

// Events.
const (
	EventStateChange      = "switchgear.circuit_breaker.state_change"
	EventBreakerRejected  = "switchgear.circuit_breaker.rejected"
	EventRetryAttempt     = "switchgear.retry.attempt"
	EventRetryExhausted   = "switchgear.retry.exhausted"
	EventTimeoutExceeded  = "switchgear.timeout.exceeded"
	EventBulkheadRejected = "switchgear.bulkhead.rejected"
	EventLimiterRejected  = "switchgear.rate_limiter.rejected"
	EventHedgeAttempt     = "switchgear.hedge.attempt"
	EventFallbackUsed     = "switchgear.fallback.used"
)

// Instrument is the kind of an OpenTelemetry instrument.
type Instrument uint8

// The kinds in use. Observable ones are read when telemetry is collected.
const (
	Histogram Instrument = iota
	ObservableCounter
	ObservableUpDownCounter
)

// Metric describes one metric.
type Metric struct {
	Name        string
	Instrument  Instrument
	Unit        string
	Description string
	NameKey     string // the attribute that carries the policy's name
	Seconds     bool   // its rows hold nanoseconds and it is reported in seconds, as a float
}

// Metrics is the table of all metrics.
var Metrics = []Metric{
	{PipelineDuration, Histogram, "s", "Duration of calls through a pipeline.", PipelineName, true},
	{PipelineActive, ObservableUpDownCounter, "{call}", "Calls now running in a pipeline.", PipelineName, false},
	{BreakerStatus, ObservableUpDownCounter, "1", "State of a circuit breaker: 1 for the state it is in, 0 for the others.", PolicyName, false},
	{BreakerTime, ObservableCounter, "s", "Time a circuit breaker has spent in each state.", PolicyName, true},
	{BreakerTransitions, ObservableCounter, "{transition}", "Changes of a circuit breaker's state.", PolicyName, false},
	{BreakerCalls, ObservableCounter, "{call}", "Calls by the circuit breaker's state at admission and their outcome.", PolicyName, false},
	{BreakerSlowCalls, ObservableCounter, "{call}", "Calls that took at least the slow call limit.", PolicyName, false},
	{BreakerLateResults, ObservableCounter, "{call}", "Results that arrived after the state they were admitted in had ended.", PolicyName, false},
	{BreakerWouldReject, ObservableCounter, "{call}", "Calls that a circuit breaker in shadow mode would have rejected.", PolicyName, false},
	{RetryAttempts, ObservableCounter, "{attempt}", "Attempts made by a retry.", PolicyName, false},
	{RetryCalls, ObservableCounter, "{call}", "Calls through a retry by how they ended.", PolicyName, false},
	{RetryDelay, Histogram, "s", "Total wait between the attempts of a call that was retried.", PolicyName, true},
	{BulkheadUsage, ObservableUpDownCounter, "{call}", "Calls now holding a permit of a bulkhead.", PolicyName, false},
	{BulkheadLimit, ObservableUpDownCounter, "{call}", "Calls that a bulkhead lets run at once.", PolicyName, false},
	{BulkheadCalls, ObservableCounter, "{call}", "Calls that asked a bulkhead for a permit, by result.", PolicyName, false},
	{BulkheadQueueUsage, ObservableUpDownCounter, "{call}", "Calls now waiting for a permit of a bulkhead.", PolicyName, false},
	{BulkheadQueueLimit, ObservableUpDownCounter, "{call}", "Calls that a bulkhead lets wait at once.", PolicyName, false},
	{BulkheadWait, Histogram, "s", "Wait of calls that queued for a permit of a bulkhead.", PolicyName, true},
	{BulkheadWouldReject, ObservableCounter, "{call}", "Calls that a bulkhead in shadow mode would have rejected.", PolicyName, false},
	{LimiterCalls, ObservableCounter, "{call}", "Calls that asked a rate limiter for a token, by result.", PolicyName, false},
	{LimiterWait, Histogram, "s", "Wait of calls for a token of a rate limiter.", PolicyName, true},
	{LimiterAvailable, ObservableUpDownCounter, "{token}", "Tokens now available in a rate limiter, rounded down.", PolicyName, false},
	{LimiterLimit, ObservableUpDownCounter, "{token}", "Tokens that a rate limiter holds at most: its burst.", PolicyName, false},
	{LimiterWouldReject, ObservableCounter, "{call}", "Calls that a rate limiter in shadow mode would have rejected.", PolicyName, false},
	{HedgeAttempts, ObservableCounter, "{attempt}", "Attempts made by a hedge.", PolicyName, false},
	{BudgetAvailable, ObservableUpDownCounter, "{token}", "Retries that a budget would allow now, rounded down.", PolicyName, false},
	{BudgetLimit, ObservableUpDownCounter, "{token}", "Retries that a budget allows for the calls of its window, rounded down.", PolicyName, false},
	{TimeoutCalls, ObservableCounter, "{call}", "Calls under a timeout by how they ended.", PolicyName, false},
	{FallbackCalls, ObservableCounter, "{call}", "Calls that a fallback answered, by how it ended.", PolicyName, false},
}

// DurationBuckets are the boundaries of every duration histogram, in seconds: the SDK's own are made for milliseconds.
var DurationBuckets = []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}
