package main

import (
	"fmt"
	"strings"
	"time"
)

// The picture's measures, in pixels.
const (
	pictureWidth  = 960.0
	pictureHeight = 664.0
	plotLeft      = 72.0
	plotRight     = 936.0
	ribbonHeight  = 20.0
	callsHeight   = 100.0
	delaysHeight  = 84.0
	captionHeight = 24.0 // above each chart
)

// The picture's colours. It has a background of its own, so that it reads on light and dark pages.
const (
	paper  = "#ffffff"
	border = "#d0d7de"
	grid   = "#e6eaef"
	ink    = "#1f2328"
	faded  = "#59636e"
	blue   = "#2f6fde" // requests that the server answers
	ruby   = "#cf3a32" // those that it fails
	silver = "#d0d8e1" // calls that it is spared
	leaf   = "#2b8a55"
	amber  = "#b87900"
)

var ribbonColors = map[string]string{closed: leaf, halfOpen: amber, open: ruby}

// draw returns the picture of both runs as an SVG: what reaches the server and how long callers wait, on one axis of
// time.
func draw(with, without *history) []byte {
	p := &plot{
		canvas: newCanvas(pictureWidth, pictureHeight, "An outage with and without Switchgear",
			"Requests that reach a failing server, and how long callers wait, with a resilience pipeline and without one."),
		end: max(with.end, without.end),
	}
	p.bin = (p.end/100 + 50*time.Millisecond).Truncate(50 * time.Millisecond)
	p.busy = max(busiest(with, p.bin), busiest(without, p.bin))
	p.rect(0, 0, pictureWidth, pictureHeight, 10, solid(border))
	p.rect(1, 1, pictureWidth-2, pictureHeight-2, 9, solid(paper))
	p.text(24, 36, label{19, ink, "start", "bold"}, fmt.Sprintf("%d clients call a server that fails for %v", clients, (with.up-with.down).Round(100*time.Millisecond)))

	y := p.panel(72, "With Switchgear", "fallback → timeout → retry → breaker → bulkhead → timeout", with, true)
	y = p.panel(y+40, "Without", fmt.Sprintf("a client with a timeout of %v", callLimit), without, false)
	p.axis(y)
	return p.bytes()
}

// plot is a canvas with an axis of time.
type plot struct {
	*canvas
	end  time.Duration
	bin  time.Duration // what each bar stands for
	busy int           // the most calls in one
}

func (p *plot) x(at time.Duration) float64 {
	return plotLeft + (plotRight-plotLeft)*float64(min(at, p.end))/float64(p.end)
}

// panel draws one run from y on and returns where it ends.
func (p *plot) panel(y float64, title, text string, h *history, guarded bool) float64 {
	p.text(24, y, label{15, ink, "start", "bold"}, title)
	p.text(plotRight, y, label{13, faded, "end", "normal"}, text)
	y += 12
	top := y
	height := 2*captionHeight + callsHeight + delaysHeight
	if guarded {
		height += ribbonHeight
	}
	p.rect(p.x(h.down), top, p.x(h.up)-p.x(h.down), height, 0, fill{ruby, .08})
	if guarded {
		p.ribbon(y, h)
		y += ribbonHeight
	}
	y += captionHeight
	p.requests(y, h, guarded)
	y += callsHeight + captionHeight
	p.delays(y, h, guarded)
	return y + delaysHeight
}

// ribbon draws the breaker's states one after the other.
func (p *plot) ribbon(y float64, h *history) {
	p.text(plotLeft-8, y+14, label{12, faded, "end", "normal"}, "breaker")
	for _, s := range h.stays() {
		x, width := p.x(s.from), max(p.x(s.to)-p.x(s.from), 2.5)
		p.rect(x, y, width, ribbonHeight, 0, solid(ribbonColors[s.state]))
		name := strings.ReplaceAll(s.state, "_", "-")
		if s.cooldown > 0 {
			name += fmt.Sprintf(" %v", s.cooldown)
		}
		if width > 9*float64(len(name)) {
			p.text(x+width/2, y+14, label{12, paper, "middle", "bold"}, name)
		}
	}
}

// axis draws the seconds below y.
func (p *plot) axis(y float64) {
	p.line(plotLeft, y, plotRight, y, faded)
	step := time.Second
	for p.end/step > 12 {
		step *= 2
	}
	for at := time.Duration(0); at <= p.end; at += step {
		p.line(p.x(at), y, p.x(at), y+5, faded)
		p.text(p.x(at), y+20, label{12, faded, "middle", "normal"}, fmt.Sprintf("%v", at))
	}
}
