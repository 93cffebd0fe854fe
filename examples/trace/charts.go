package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/switchgear-go/switchgear/examples/internal/svg"
)

const (
	metricsHeight = 286.0
	ribbonHeight  = 18.0
	barsHeight    = 84.0
	timeHeight    = 44.0

	perBar = 5 // collections
)

var stateColors = map[string]string{"closed": svg.Leaf, "half_open": svg.Amber, "open": svg.Ruby}

// metrics draws the series of the breaker over the whole outage.
func (p *picture) metrics(y float64, samples []sample) {
	x := func(at time.Duration) float64 {
		return plotLeft + (plotRight-plotLeft)*min(float64(at)/float64(length), 1)
	}
	p.Line(24, y-10, plotRight, y-10, svg.Grid)
	p.Text(24, y+18, heading, "The whole outage in metrics")
	top := y + 38
	p.Rect(x(downFrom), top-4, x(downUntil)-x(downFrom), ribbonHeight+barsHeight+timeHeight+40, 0, svg.Fill{Color: svg.Ruby, Opacity: .07})
	p.Text((x(downFrom)+x(downUntil))/2, top-8, svg.Label{Size: 12, Color: svg.Ruby, Anchor: "middle", Weight: "normal"}, "the service fails")

	p.name(top+13, "circuit_breaker.status", "")
	p.ribbon(top, samples, x)
	p.name(top+ribbonHeight+34, "circuit_breaker.calls", fmt.Sprintf("per %v", interval*perBar))
	p.bars(top+ribbonHeight+18, samples, x)
	p.name(top+ribbonHeight+barsHeight+50, "circuit_breaker.time", "seconds open")
	p.spent(top+ribbonHeight+barsHeight+34, samples, x)

	bottom := top + ribbonHeight + barsHeight + timeHeight + 34
	for at := time.Duration(0); at <= length; at += time.Second {
		p.Text(x(at), bottom+16, svg.Label{Size: 11, Color: svg.Faded, Anchor: "middle", Weight: "normal"}, fmt.Sprint(at))
	}
	p.legend(bottom + 38)
}

func (p *picture) name(y float64, metric, what string) {
	p.Text(24, y, svg.Label{Size: 12, Color: svg.Ink, Anchor: "start", Weight: "bold"}, metric)
	p.Text(24, y+16, small, what)
}

// ribbon draws the state that each collection saw.
func (p *picture) ribbon(y float64, samples []sample, x func(time.Duration) float64) {
	from := time.Duration(0)
	for n, s := range samples {
		if len(s.states) != 1 || n+1 < len(samples) && slices.Equal(samples[n+1].states, s.states) {
			continue // its stay goes on
		}
		p.Rect(x(from), y, x(s.at)-x(from), ribbonHeight, 0, svg.Solid(stateColors[s.states[0]]))
		from = s.at
	}
}

// bars draws how many calls ended in each interval, by their outcome.
func (p *picture) bars(y float64, samples []sample, x func(time.Duration) float64) {
	most := int64(1)
	type bin struct {
		from, to time.Duration
		calls    map[string]int64
	}
	var bins []bin
	for n := perBar; n < len(samples); n += perBar {
		before, now := samples[n-perBar], samples[n]
		b := bin{before.at, now.at, map[string]int64{}}
		var all int64
		for outcome, count := range now.calls {
			b.calls[outcome] = count - before.calls[outcome]
			all += b.calls[outcome]
		}
		bins, most = append(bins, b), max(most, all)
	}
	base := y + barsHeight
	p.Line(plotLeft, base, plotRight, base, svg.Grid)
	p.Line(plotLeft, y, plotRight, y, svg.Grid)
	p.Text(plotLeft-8, y+4, smallTo, fmt.Sprint(most))
	for _, b := range bins {
		level := base
		for _, part := range []struct{ outcome, color string }{{"failure", svg.Ruby}, {"success", svg.Blue}, {"rejected", svg.Silver}} {
			height := barsHeight * float64(b.calls[part.outcome]) / float64(most)
			level -= height
			p.Rect(x(b.from)+.5, level, x(b.to)-x(b.from)-1, height, 0, svg.Solid(part.color))
		}
	}
}

// spent draws the seconds that the breaker has been open: what an alert is made of.
func (p *picture) spent(y float64, samples []sample, x func(time.Duration) float64) {
	most := samples[len(samples)-1].spent["open"]
	p.Line(plotLeft, y+timeHeight, plotRight, y+timeHeight, svg.Grid)
	p.Text(plotLeft-8, y+8, smallTo, fmt.Sprintf("%.1f", most))
	var line []svg.Spot
	for _, s := range samples {
		line = append(line, svg.Spot{X: x(s.at), Y: y + timeHeight*(1-s.spent["open"]/max(most, .001))})
	}
	p.Path(line, 2, svg.Ruby)
}

func (p *picture) legend(y float64) {
	p.Parts(plotLeft, y, svg.Label{Size: 12, Anchor: "start", Weight: "normal"},
		svg.Part{Text: "state: ", Color: svg.Faded}, svg.Part{Text: "closed  ", Color: svg.Leaf},
		svg.Part{Text: "open  ", Color: svg.Ruby}, svg.Part{Text: "half_open", Color: svg.Amber},
		svg.Part{Text: "     outcome: ", Color: svg.Faded}, svg.Part{Text: "success  ", Color: svg.Blue},
		svg.Part{Text: "failure  ", Color: svg.Ruby}, svg.Part{Text: "rejected (grey)", Color: svg.Faded})
}
