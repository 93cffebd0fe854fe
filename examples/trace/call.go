package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	stateChange = "switchgear.circuit_breaker.state_change"
	newState    = "switchgear.circuit_breaker.state"
)

// call is the trace of one call.
type call struct {
	spans []span // as they nest
	took  time.Duration
}

// span is one span of a call, in times since the call began.
type span struct {
	name       string
	depth      int
	start, end time.Duration
	failed     bool
	ours       bool // of a policy
	events     []event
}

// event is one of our span events.
type event struct {
	name  string // without its prefix
	at    time.Duration
	attrs []string // key=value, without the prefix
}

// opening returns the trace of a call that opened the breaker: that with most events, should there be several.
func (r *recording) opening() (found call, ok bool) {
	for _, s := range r.spans {
		if !s.Parent().IsValid() {
			c := r.call(s)
			if c.opens() && len(c.events()) > len(found.events()) {
				found, ok = c, true
			}
		}
	}
	return found, ok
}

// call returns the trace of a root span.
func (r *recording) call(root sdktrace.ReadOnlySpan) (c call) {
	c.took = root.EndTime().Sub(root.StartTime())
	var add func(s sdktrace.ReadOnlySpan, depth int)
	add = func(s sdktrace.ReadOnlySpan, depth int) {
		c.spans = append(c.spans, spanOf(s, depth, root.StartTime()))
		var children []sdktrace.ReadOnlySpan
		for _, child := range r.spans {
			if child.Parent().SpanID() == s.SpanContext().SpanID() {
				children = append(children, child)
			}
		}
		slices.SortFunc(children, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
		for _, child := range children {
			add(child, depth+1)
		}
	}
	add(root, 0)
	return c
}

func spanOf(s sdktrace.ReadOnlySpan, depth int, begin time.Time) span {
	out := span{
		name: s.Name(), depth: depth, start: s.StartTime().Sub(begin), end: s.EndTime().Sub(begin),
		failed: s.Status().Code == codes.Error, ours: s.InstrumentationScope().Name != "quotes",
	}
	for _, e := range s.Events() {
		shown := event{name: strings.TrimPrefix(e.Name, "switchgear."), at: e.Time.Sub(begin)}
		for _, kv := range e.Attributes {
			if text := shownAttribute(kv); text != "" {
				shown.attrs = append(shown.attrs, text)
			}
		}
		out.events = append(out.events, shown)
	}
	return out
}

// shownAttribute returns an attribute as it is shown; "" for the names, which are the same all over.
func shownAttribute(kv attribute.KeyValue) string {
	key := string(kv.Key)
	switch {
	case strings.HasSuffix(key, ".name"):
		return ""
	case kv.Value.Type() == attribute.FLOAT64:
		return fmt.Sprintf("%s=%.3g", lastPart(key), kv.Value.AsFloat64())
	}
	return lastPart(key) + "=" + kv.Value.String()
}

// lastPart returns a key without the namespaces that its event has too.
func lastPart(key string) string {
	if key == "error.type" {
		return key
	}
	parts := strings.Split(key, ".")
	if len(parts) == 3 && parts[1] == "attempt" {
		return "attempt." + parts[2]
	}
	return parts[len(parts)-1]
}

// events returns the events of all spans in order of time.
func (c *call) events() (all []event) {
	for _, s := range c.spans {
		all = append(all, s.events...)
	}
	slices.SortStableFunc(all, func(a, b event) int { return int(a.at - b.at) })
	return all
}

func (c *call) opens() bool {
	return slices.ContainsFunc(c.events(), func(e event) bool {
		return "switchgear."+e.name == stateChange && slices.Contains(e.attrs, "state=open") && slices.Contains(e.attrs, "previous_state=closed")
	})
}

// broken returns what is wrong with the trace of a call that a fallback has answered.
func (c *call) broken() error {
	var faults []error
	for _, s := range c.spans[:2] {
		if s.failed {
			faults = append(faults, fmt.Errorf("%s: failed, though the fallback answered", s.name))
		}
	}
	for _, want := range []string{"retry.attempt", "circuit_breaker.state_change", "circuit_breaker.rejected", "retry.exhausted", "fallback.used"} {
		if !slices.ContainsFunc(c.events(), func(e event) bool { return e.name == want }) {
			faults = append(faults, fmt.Errorf("the trace lacks an event %s", want))
		}
	}
	return errors.Join(faults...)
}

// print writes the trace as a tree.
func (c *call) print(out io.Writer) {
	for _, s := range c.spans {
		mark := ""
		if s.failed {
			mark = "  failed"
		}
		fmt.Fprintf(out, "%-32s %8s – %s%s\n", strings.Repeat("  ", s.depth)+s.name, short(s.start), short(s.end), mark)
		for _, e := range s.events {
			fmt.Fprintf(out, "%s· %s  %s  %s\n", strings.Repeat("  ", s.depth+1), short(e.at), e.name, strings.Join(e.attrs, " "))
		}
	}
}

func short(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
