package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// bins returns what happened in each bin of a history.
func bins(h *history, width time.Duration) []interval {
	var is []interval
	for at := time.Duration(0); at+width <= h.end; at += width {
		is = append(is, h.between(at, at+width))
	}
	return is
}

func busiest(h *history, width time.Duration) int {
	most := 1
	for _, i := range bins(h, width) {
		most = max(most, i.reached+i.refused)
	}
	return most
}

// requests draws, from y down, what reached the dependency and what was refused in its place.
func (p *plot) requests(y float64, h *history, guarded bool) {
	base := y + callsHeight
	p.scale(base)
	for n, i := range bins(h, p.bin) {
		x := p.x(time.Duration(n) * p.bin)
		p.bar(x, base, p.x(time.Duration(n+1)*p.bin)-x-1, i)
	}

	legend := []part{{fmt.Sprintf("calls per %v: ", p.bin), faded}, {"answered", blue}, {" or ", faded}, {"failed", ruby}}
	recovery, _ := h.recovery()
	after := "answers again after " + short(recovery)
	middle := (p.x(h.down) + p.x(h.up)) / 2
	if guarded {
		legend = append(legend, part{" by the server, refused by the breaker", faded})
		_, refused := h.whileOpen()
		p.text(middle, y+callsHeight/2, label{14, ink, "middle", "bold"}, count(refused)+" calls refused: the server is left alone")
		p.probes(base, h)
	} else {
		after = "errors for another " + short(h.lastError())
		all := h.between(0, h.end)
		p.text(middle, y+22, label{14, ruby, "middle", "bold"}, count(all.reachedFailing)+" requests to a server that is down")
	}
	p.parts(plotLeft, y-8, label{12, faded, "start", "normal"}, legend...)
	p.text(p.x(h.up)-6, y-8, label{12, ruby, "end", "normal"}, "server down")
	p.text(p.x(h.up)+8, y-8, label{12, faded, "start", "normal"}, after)
}

// scale draws the numbers of calls that the bars above base are to be read by.
func (p *plot) scale(base float64) {
	step := 100
	for p.busy/step > 4 {
		step *= 2
	}
	for n := 0; n <= p.busy; n += step {
		y := base - callsHeight*float64(n)/float64(p.busy)
		p.line(plotLeft, y, plotRight, y, grid)
		p.text(plotLeft-8, y+4, label{12, faded, "end", "normal"}, count(n))
	}
}

// bar draws the calls of an interval, on top of each other.
func (p *plot) bar(x, base, width float64, i interval) {
	for _, calls := range []struct {
		n     int
		color string
	}{{i.reachedFailing, ruby}, {i.reached - i.reachedFailing, blue}, {i.refused, silver}} {
		if calls.n == 0 {
			continue
		}
		height := max(callsHeight*float64(calls.n)/float64(p.busy), 3) // a single request shows
		base -= height
		p.rect(x, base, width, height, 0, solid(calls.color))
	}
}

// probes names the few requests that do reach the dependency.
func (p *plot) probes(base float64, h *history) {
	p.text(p.x(h.down)+4, base-24, label{12, ruby, "start", "bold"}, fmt.Sprintf("%d before it opens", h.beforeOpening()))
	for _, s := range h.stays() {
		if s.state != halfOpen {
			continue
		}
		if all, failing := h.arrivalsIn(s); failing > 0 {
			p.text(p.x(s.from), base-8, label{12, ruby, "middle", "bold"}, fmt.Sprintf("%d probe", all))
		}
	}
}

// The scale of delays is logarithmic.
const (
	shortest = time.Microsecond
	longest  = 2 * time.Second
)

// delays draws, from y down, how long callers waited: a line for the median, and a shade from there to the slowest of a
// hundred.
func (p *plot) delays(y float64, h *history, guarded bool) {
	level := func(d time.Duration) float64 {
		d = min(max(d, shortest), longest)
		return y + delaysHeight*(1-math.Log(float64(d)/float64(shortest))/math.Log(float64(longest)/float64(shortest)))
	}
	p.text(plotLeft, y-8, label{12, faded, "start", "normal"}, "callers wait: median, shade to p99")
	for d := shortest; d <= longest; d *= 10 {
		p.line(plotLeft, level(d), plotRight, level(d), grid)
	}
	for d := shortest; d <= longest; d *= 100 {
		p.text(plotLeft-8, level(d)+4, label{12, faded, "end", "normal"}, fmt.Sprintf("%v", d))
	}
	var upper, lower []spot
	width := 2 * p.bin // a percentile of few calls is restless
	for n, i := range bins(h, width) {
		if i.calls == 0 {
			p.band(upper, lower)
			upper, lower = nil, nil
			continue
		}
		x := p.x(time.Duration(n)*width + width/2)
		upper, lower = append(upper, spot{x, level(i.p99)}), append(lower, spot{x, level(i.p50)})
	}
	p.band(upper, lower)

	during := h.between(h.down, h.up)
	middle := (p.x(h.down) + p.x(h.up)) / 2
	if guarded {
		p.text(middle, level(during.p99)-10, label{14, ink, "middle", "bold"}, "a stale quote in "+short(during.p50))
	} else {
		p.text(middle, level(during.p50)+22, label{14, ruby, "middle", "bold"}, "an error, after up to "+short(during.p99))
	}
}

// band draws a line through lower and a shade from there to upper.
func (p *plot) band(upper, lower []spot) {
	if len(lower) == 0 {
		return
	}
	outline := slices.Clone(lower)
	slices.Reverse(outline)
	p.area(append(outline, upper...), fill{blue, .25})
	p.path(lower, 2, blue)
}
