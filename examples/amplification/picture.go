package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The size of the picture, and of the chart in it.
const (
	width, height            = 820, 400
	left, right, top, bottom = 64, 210, 64, 44
	chartWidth               = width - left - right
	chartHeight              = height - top - bottom
)

// pictured is the rate of calls that the picture shows.
const pictured = 100

// draw returns an SVG of the load that the variants put on the dependency.
func draw(outage time.Duration, results []result) []byte {
	results = slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.perSecond != pictured })
	highest := peak(results) * 1.15
	seconds := len(results[0].load)
	x := func(second float64) float64 { return left + chartWidth*second/float64(seconds) }
	y := func(load float64) float64 { return top + chartHeight*(1-load/highest) }

	var svg bytes.Buffer
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" font-family="system-ui, sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&svg, "<title>Attempts that reach a dependency while it is down</title>\n")
	fmt.Fprintf(&svg, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	text := func(x, y float64, attrs, s string) {
		fmt.Fprintf(&svg, `<text x="%.1f" y="%.1f" %s>%s</text>`+"\n", x, y, attrs, s)
	}
	text(left, 28, `font-size="16" font-weight="bold" fill="#1f2328"`, fmt.Sprintf("%d calls per second, and what retries make of them", pictured))
	text(left, 48, `fill="#59636e"`, "attempts per second that reach the dependency")

	fmt.Fprintf(&svg, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#ffebe9"/>`+"\n",
		x(before.Seconds()), top, x(outage.Seconds())-x(0), chartHeight)
	text(x((before + outage/2).Seconds()), top+16, `fill="#cf222e" text-anchor="middle"`, "down")
	for load := 0.; load <= highest; load += 2 * pictured {
		fmt.Fprintf(&svg, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#d1d9e0"/>`+"\n", left, y(load), left+chartWidth, y(load))
		text(left-8, y(load)+4, `fill="#59636e" text-anchor="end"`, fmt.Sprintf("%.0f", load))
	}
	for second := 0; second <= seconds; second += max(10, seconds/10/10*10) {
		text(x(float64(second)), height-bottom+18, `fill="#59636e" text-anchor="middle"`, fmt.Sprintf("%ds", second))
	}

	slices.SortStableFunc(results, func(a, b result) int { return b.attempts - a.attempts })
	labelAt := 0.
	for _, r := range results {
		var points []string
		for second, load := range r.load {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(float64(second)+.5), y(float64(load))))
		}
		fmt.Fprintf(&svg, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-linejoin="round"/>`+"\n", strings.Join(points, " "), r.color)
		labelAt = max(labelAt+18, y(float64(pictured)*r.ratio()))
		text(left+chartWidth+12, labelAt+4, fmt.Sprintf(`fill="%s"`, r.color), fmt.Sprintf("%s: %.1f×", r.name, r.ratio()))
	}
	svg.WriteString("</svg>\n")
	return svg.Bytes()
}
