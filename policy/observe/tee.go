package observe

import (
	"context"
	"time"
)

// Tee returns an [Observer] that passes everything on to each of observers, in order. Nil ones are skipped. It is a
// [Spanner] if one of them is.
func Tee(observers ...Observer) Observer {
	t := make(tee, 0, len(observers))
	var spanners teeSpans
	for _, o := range observers {
		if o == nil {
			continue
		}
		t = append(t, o)
		if s, ok := o.(Spanner); ok {
			spanners = append(spanners, s)
		}
	}
	switch {
	case len(t) == 1:
		return t[0]
	case spanners != nil:
		return struct {
			tee
			teeSpans
		}{t, spanners}
	}
	return t
}

type tee []Observer

func (t tee) Observe(ctx context.Context, e Event) {
	for _, o := range t {
		o.Observe(ctx, e)
	}
}

func (t tee) Attach(s Source) Probe {
	probes := make(teeProbe, 0, len(t))
	for _, o := range t {
		if p := o.Attach(s); p != nil && p != Probe(noProbe{}) {
			probes = append(probes, p)
		}
	}
	switch len(probes) {
	case 0:
		return noProbe{}
	case 1:
		return probes[0]
	}
	return &probes
}

// Unwrap returns the observers that t joins. A shared retry budget uses it to attach to each of them only once.
func (t tee) Unwrap() []Observer { return t }

type teeProbe []Probe

func (t *teeProbe) Enabled(ctx context.Context) bool {
	for _, p := range *t {
		if p.Enabled(ctx) {
			return true
		}
	}
	return false
}

func (t *teeProbe) Record(ctx context.Context, row int, d time.Duration) {
	for _, p := range *t {
		if p.Enabled(ctx) {
			p.Record(ctx, row, d)
		}
	}
}

func (t *teeProbe) Detach() {
	for _, p := range *t {
		p.Detach()
	}
}

type teeSpans []Spanner

func (t teeSpans) Start(ctx context.Context, pipeline string, attempt int) (context.Context, func(error)) {
	ends := make([]func(error), len(t))
	for i, s := range t {
		ctx, ends[i] = s.Start(ctx, pipeline, attempt)
	}
	return ctx, func(err error) {
		for i := len(ends) - 1; i >= 0; i-- {
			ends[i](err)
		}
	}
}
