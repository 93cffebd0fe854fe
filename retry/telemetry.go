package retry

import (
	"github.com/switchgear-go/switchgear/internal/semconv"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// The counts of a retry, as rows.
const (
	originalSuccess = iota
	callFirstTry    // beside originalSuccess: every call that succeeds at once adds to both
	originalFailure
	originalCanceled
	retrySuccess
	retryFailure
	retryCanceled
	callRecovered
	callExhausted
	callNotRetryable
	callBudgetExhausted
	callDeadline
	callCanceled
)

var retryRows = []observe.Row{
	originalSuccess:     attemptRow(semconv.RetryAttempts, semconv.AttemptOriginal, semconv.OutcomeSuccess),
	callFirstTry:        callRow(semconv.ResultFirstTry),
	originalFailure:     attemptRow(semconv.RetryAttempts, semconv.AttemptOriginal, semconv.OutcomeFailure),
	originalCanceled:    attemptRow(semconv.RetryAttempts, semconv.AttemptOriginal, semconv.OutcomeCanceled),
	retrySuccess:        attemptRow(semconv.RetryAttempts, semconv.AttemptRetry, semconv.OutcomeSuccess),
	retryFailure:        attemptRow(semconv.RetryAttempts, semconv.AttemptRetry, semconv.OutcomeFailure),
	retryCanceled:       attemptRow(semconv.RetryAttempts, semconv.AttemptRetry, semconv.OutcomeCanceled),
	callRecovered:       callRow(semconv.ResultRecovered),
	callExhausted:       callRow(semconv.ResultExhausted),
	callNotRetryable:    callRow(semconv.ResultNotRetryable),
	callBudgetExhausted: callRow(semconv.ResultBudgetExhausted),
	callDeadline:        callRow(semconv.ResultDeadline),
	callCanceled:        callRow(semconv.ResultCanceled),
}

// The counts of a hedge, as rows: those of the first attempt, then those of hedges in the same order.
const (
	originalWon = iota
	originalFailed
	originalLost
	hedgeWon
	hedgeFailed
	hedgeLost
)

var hedgeRows = []observe.Row{
	originalWon:    attemptRow(semconv.HedgeAttempts, semconv.AttemptOriginal, semconv.OutcomeSuccess),
	originalFailed: attemptRow(semconv.HedgeAttempts, semconv.AttemptOriginal, semconv.OutcomeFailure),
	originalLost:   attemptRow(semconv.HedgeAttempts, semconv.AttemptOriginal, semconv.OutcomeCanceled),
	hedgeWon:       attemptRow(semconv.HedgeAttempts, semconv.AttemptHedge, semconv.OutcomeSuccess),
	hedgeFailed:    attemptRow(semconv.HedgeAttempts, semconv.AttemptHedge, semconv.OutcomeFailure),
	hedgeLost:      attemptRow(semconv.HedgeAttempts, semconv.AttemptHedge, semconv.OutcomeCanceled),
}

var retryDurations = []observe.Row{{Metric: semconv.RetryDelay}}

// The numbers of a budget, as rows.
const (
	budgetAvailable = iota
	budgetLimit
)

var budgetRows = []observe.Row{
	budgetAvailable: {Metric: semconv.BudgetAvailable},
	budgetLimit:     {Metric: semconv.BudgetLimit},
}

func attemptRow(metric, kind, outcome string) observe.Row {
	return observe.Row{Metric: metric, Attrs: []observe.Attr{
		{Key: semconv.AttemptType, Value: kind},
		{Key: semconv.CallOutcome, Value: outcome},
	}}
}

func callRow(result string) observe.Row {
	return observe.Row{Metric: semconv.RetryCalls, Attrs: []observe.Attr{{Key: semconv.RetryResult, Value: result}}}
}

// resultOf returns the attribute value of a call's row.
func resultOf(row int) string { return retryRows[row].Attrs[0].Value }
