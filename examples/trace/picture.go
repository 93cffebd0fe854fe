package main

import (
	"fmt"
	"time"

	"github.com/switchgear-go/switchgear/examples/internal/svg"
)

// The picture's measures, in pixels.
const (
	width     = 960.0
	plotLeft  = 200.0
	plotRight = 912.0 // events of one moment stand beside each other and may go on to the right
	rowHeight = 26.0
	lineWidth = 20.0 // of the list of events
)

var (
	heading = svg.Label{Size: 16, Color: svg.Ink, Anchor: "start", Weight: "bold"}
	small   = svg.Label{Size: 12, Color: svg.Faded, Anchor: "start", Weight: "normal"}
	smallTo = svg.Label{Size: 12, Color: svg.Faded, Anchor: "end", Weight: "normal"}
	numeral = svg.Label{Size: 10, Color: svg.Paper, Anchor: "middle", Weight: "bold"}
)

// draw returns the picture: the trace of a call on one axis of time, its events below, and the metrics of the whole outage.
func draw(c call, samples []sample) []byte {
	lines := listed(c.events())
	traceHeight := 92 + rowHeight*float64(len(c.spans)) + lineWidth*float64(len(lines))
	p := &picture{
		Canvas: svg.New(width, traceHeight+metricsHeight, "A call through an outage, and the outage in metrics",
			"The spans and events of the call that opened the circuit breaker, and the breaker's states and calls over time."),
	}
	p.Text(24, 34, heading, "The trace of the call that opened the circuit breaker")
	p.spans(60, c)
	p.list(60+rowHeight*float64(len(c.spans))+28, lines)
	p.metrics(traceHeight+8, samples)
	return p.Bytes()
}

type picture struct {
	*svg.Canvas
}

// spans draws a bar for each span, with its events on it.
func (p *picture) spans(y float64, c call) {
	x := func(at time.Duration) float64 { return plotLeft + (plotRight-plotLeft)*float64(at)/float64(c.took) }
	bottom := y + rowHeight*float64(len(c.spans))
	step := stepFor(c.took)
	for at := time.Duration(0); at <= c.took; at += step {
		p.Line(x(at), y-6, x(at), bottom, svg.Grid)
		p.Text(x(at), bottom+14, svg.Label{Size: 11, Color: svg.Faded, Anchor: "middle", Weight: "normal"}, fmt.Sprint(at))
	}
	for n, s := range c.spans {
		top := y + rowHeight*float64(n)
		p.Text(24+14*float64(s.depth), top+15, svg.Label{Size: 12, Color: svg.Ink, Anchor: "start", Weight: weight(s.ours)}, s.name)
		color := svg.Blue
		if s.failed {
			color = svg.Ruby
		}
		opacity := .35
		if s.ours {
			opacity = .9
		}
		p.Rect(x(s.start), top+2, max(x(s.end)-x(s.start), 2), rowHeight-8, 3, svg.Fill{Color: color, Opacity: opacity})
	}
	p.marks(y, c, x)
}

// marks numbers the events on their spans. Those that come at once stand beside each other.
func (p *picture) marks(y float64, c call, x func(time.Duration) float64) {
	at := make(map[int]float64) // where the last mark of a row is
	for n, e := range c.events() {
		for row, s := range c.spans {
			if !has(s, e) {
				continue
			}
			spot := max(x(e.at), plotLeft+8)
			if last, ok := at[row]; ok {
				spot = max(spot, last+17)
			}
			at[row] = spot
			p.Dot(spot, y+rowHeight*float64(row)+rowHeight/2-2, 8, svg.Ink)
			p.Text(spot, y+rowHeight*float64(row)+rowHeight/2+1.5, numeral, fmt.Sprint(n+1))
		}
	}
}

func has(s span, e event) bool {
	for _, own := range s.events {
		if own.at == e.at && own.name == e.name {
			return true
		}
	}
	return false
}

// line is one of the list of events: a name with its first attributes, or further attributes.
type line struct {
	number int // 0 for a further line
	at     time.Duration
	name   string
	attrs  string
}

// listed returns the events as lines that fit into the picture.
func listed(events []event) (lines []line) {
	const fits = 112 // letters
	for n, e := range events {
		l := line{number: n + 1, at: e.at, name: "switchgear." + e.name}
		for _, attr := range e.attrs {
			if len(l.name)+len(l.attrs)+len(attr) > fits {
				lines = append(lines, l)
				l = line{}
			}
			l.attrs += "  " + attr
		}
		lines = append(lines, l)
	}
	return lines
}

// list writes the events that the numbers on the spans stand for.
func (p *picture) list(y float64, lines []line) {
	for n, l := range lines {
		base := y + lineWidth*float64(n) + 8
		if l.number > 0 {
			p.Dot(33, base-4, 8, svg.Ink)
			p.Text(33, base-.5, numeral, fmt.Sprint(l.number))
			p.Text(108, base, smallTo, short(l.at))
		}
		p.Parts(120, base, svg.Label{Size: 12, Anchor: "start", Weight: "normal"},
			svg.Part{Text: l.name, Color: svg.Ink}, svg.Part{Text: l.attrs, Color: svg.Faded})
	}
}

func weight(ours bool) string {
	if ours {
		return "bold"
	}
	return "normal"
}

// stepFor returns a round step for an axis of that length.
func stepFor(length time.Duration) time.Duration {
	for _, ms := range []int{5, 10, 20, 50, 100, 200, 500} {
		if step := time.Duration(ms) * time.Millisecond; length/step <= 8 {
			return step
		}
	}
	return time.Second
}
