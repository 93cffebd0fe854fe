package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/switchgear-go/switchgear/examples/internal/svg"
)

// The picture's measures, in pixels.
const (
	pictureWidth  = 960.0
	pictureHeight = 664.0
	plotLeft      = 72.0
	plotRight     = 936.0
	barsHeight    = 72.0
	dotsHeight    = 120.0
	gap           = 26.0
)

const bin = 100 * time.Millisecond // what each bar stands for

// plot is a canvas with an axis of time.
type plot struct {
	*svg.Canvas
	end time.Duration
}

// draw returns the picture of both loads: what is served, and how long each request takes.
func draw(with, without *load) []byte {
	p := &plot{svg.New(pictureWidth, pictureHeight, "A server under ten times its capacity",
		"Requests served per second, and how long each request takes, with a bulkhead around the handler and without."), with.end}
	p.Text(24, 36, svg.Label{Size: 19, Color: svg.Ink, Anchor: "start", Weight: "bold"},
		fmt.Sprintf("A server that can answer %d requests a second gets %d", capacity, surge))
	y := p.panel(72, "Protected", "httpx.Middleware with a bulkhead: what it can do, a short queue, and the rest refused at once", with)
	y = p.panel(y+44, "Not protected", fmt.Sprintf("everybody waits in line, and leaves it after %v", patience), without)
	p.axis(y)
	return p.Bytes()
}

func (p *plot) x(at time.Duration) float64 {
	return plotLeft + (plotRight-plotLeft)*float64(min(at, p.end))/float64(p.end)
}

// panel draws one load from y on and returns where it ends.
func (p *plot) panel(y float64, title, text string, l *load) float64 {
	p.Text(24, y, svg.Label{Size: 15, Color: svg.Ink, Anchor: "start", Weight: "bold"}, title)
	p.Text(plotRight, y, svg.Label{Size: 13, Color: svg.Faded, Anchor: "end", Weight: "normal"}, text)
	y += 12
	p.Rect(p.x(l.from), y, p.x(l.until)-p.x(l.from), 2*gap+barsHeight+dotsHeight, 0, svg.Fill{Color: svg.Amber, Opacity: .10})
	p.bars(y+gap, l)
	y += gap + barsHeight
	p.dots(y+gap, l)
	return y + gap + dotsHeight
}

// bars draws how many requests are served.
func (p *plot) bars(y float64, l *load) {
	p.caption(y, svg.Part{Text: "served per second", Color: svg.Blue})
	served := make([]int, l.end/bin+1)
	for _, r := range l.requests {
		if i := int(r.end / bin); r.status == http.StatusOK && i < len(served) {
			served[i]++
		}
	}
	level := func(perSecond float64) float64 {
		return y + barsHeight*(1-min(perSecond/(1.5*float64(capacity)), 1))
	}
	for i, n := range served {
		top := level(float64(n) / bin.Seconds())
		at := time.Duration(i) * bin
		if at < l.end {
			p.Rect(p.x(at)+1, top, p.x(at+bin)-p.x(at)-2, y+barsHeight-top, 1, svg.Solid(svg.Blue))
		}
	}
	p.level(level(float64(capacity)), fmt.Sprint(capacity))
	p.level(y+barsHeight, "0")
}

// dots draws how long each request takes.
func (p *plot) dots(y float64, l *load) {
	p.caption(y, svg.Part{Text: "time of each request: ", Color: svg.Faded}, svg.Part{Text: "served", Color: svg.Blue},
		svg.Part{Text: ",  refused", Color: svg.Leaf}, svg.Part{Text: ",  unanswered", Color: svg.Ruby})
	level := func(d time.Duration) float64 {
		return y + dotsHeight*(1-min(float64(d)/float64(patience+patience/10), 1))
	}
	p.level(level(0), "0")
	p.level(level(patience), patience.String())
	type spot struct {
		x, y  int
		color string
	}
	drawn := map[spot]bool{} // thousands fall together
	for _, r := range l.requests {
		color := svg.Leaf
		switch r.status {
		case http.StatusOK:
			color = svg.Blue
		case 0:
			color = svg.Ruby
		}
		x, y := p.x(r.start), level(r.end-r.start)
		if at := (spot{int(x), int(y), color}); !drawn[at] {
			drawn[at] = true
			p.Dot(x, y, 1.6, color)
		}
	}
}

func (p *plot) caption(y float64, parts ...svg.Part) {
	p.Parts(plotLeft, y-8, svg.Label{Size: 12, Color: svg.Faded, Anchor: "start", Weight: "normal"}, parts...)
}

func (p *plot) level(y float64, text string) {
	p.Line(plotLeft, y, plotRight, y, svg.Border)
	p.Text(plotLeft-8, y+4, svg.Label{Size: 11, Color: svg.Faded, Anchor: "end", Weight: "normal"}, text)
}

// axis draws the seconds below y.
func (p *plot) axis(y float64) {
	for at := time.Duration(0); at <= p.end; at += p.end / 5 {
		p.Text(p.x(at), y+18, svg.Label{Size: 11, Color: svg.Faded, Anchor: "middle", Weight: "normal"}, fmt.Sprintf("%.3gs", at.Seconds()))
	}
}
