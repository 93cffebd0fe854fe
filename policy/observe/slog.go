package observe

import (
	"context"
	"log/slog"
	"strings"
)

// Slog returns an [Observer] that writes each event to l as one record, with the event's time, its [Event.Level] and the
// context of the call. If l is nil it writes to [slog.Default], which it asks for at each event.
func Slog(l *slog.Logger) Observer {
	return Func(func(ctx context.Context, e Event) {
		l := l
		if l == nil {
			l = slog.Default()
		}
		if !l.Enabled(ctx, e.Level()) {
			return
		}
		r := slog.NewRecord(e.Time, e.Level(), message(e), 0)
		r.AddAttrs(slog.String("policy", e.Policy), slog.String("name", e.Name))
		if e.Pipeline != "" {
			r.AddAttrs(slog.String("pipeline", e.Pipeline))
		}
		if e.From != "" {
			r.AddAttrs(slog.String("from", e.From))
		}
		if e.To != "" {
			r.AddAttrs(slog.String("to", e.To))
		}
		if e.Reason != "" {
			r.AddAttrs(slog.String("reason", e.Reason))
		}
		if e.Calls != 0 {
			r.AddAttrs(slog.Float64("ratio", e.Ratio), slog.Int("calls", e.Calls))
		}
		if e.Attempt != 0 {
			r.AddAttrs(slog.Int("attempt", e.Attempt))
		}
		if e.Delay != 0 || e.Kind == Attempt {
			r.AddAttrs(slog.Duration("delay", e.Delay))
		}
		if e.Err != nil {
			r.AddAttrs(slog.Any("error", e.Err))
		}
		_ = l.Handler().Handle(ctx, r) // slog ignores the error too
	})
}

func message(e Event) string {
	what := strings.ReplaceAll(e.Policy, "_", " ")
	if e.Name != "" {
		what += " " + e.Name
	}
	switch e.Kind {
	case StateChange:
		return what + ": " + e.From + " → " + e.To
	case Rejected:
		return what + " refused a call"
	case Attempt:
		return what + " tries again"
	case Exhausted:
		return what + " gave up"
	case TimedOut:
		return what + " exceeded"
	case Hedged:
		switch e.Reason {
		case "panic":
			return what + ": an attempt panicked"
		case "budget_exhausted":
			return what + " may not send another attempt"
		}
		return what + " sent another attempt"
	case FellBack:
		return what + " used"
	}
	return what + ": " + e.Kind.String()
}
