package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// canvas writes an SVG.
type canvas struct {
	buf           bytes.Buffer
	width, height float64
}

// fill is how a shape is filled.
type fill struct {
	color   string
	opacity float64
}

func solid(color string) fill { return fill{color, 1} }

// label is how a text is set.
type label struct {
	size   float64
	color  string
	anchor string // start, middle or end
	weight string // normal or bold
}

func newCanvas(width, height float64, title, description string) *canvas {
	c := &canvas{width: width, height: height}
	fmt.Fprintf(&c.buf, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" `+
		`font-family="system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif">`+"\n", width, height, width, height)
	fmt.Fprintf(&c.buf, "<title>%s</title>\n<desc>%s</desc>\n", escaped(title), escaped(description))
	return c
}

// bytes ends the picture and returns it.
func (c *canvas) bytes() []byte {
	c.buf.WriteString("</svg>\n")
	return c.buf.Bytes()
}

func (c *canvas) rect(x, y, width, height, radius float64, f fill) {
	fmt.Fprintf(&c.buf, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%g" fill="%s" fill-opacity="%g"/>`+"\n",
		x, y, width, height, radius, f.color, f.opacity)
}

func (c *canvas) line(x1, y1, x2, y2 float64, color string) {
	fmt.Fprintf(&c.buf, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, color)
}

func (c *canvas) text(x, y float64, l label, text string) {
	fmt.Fprintf(&c.buf, `<text x="%.1f" y="%.1f" font-size="%g" fill="%s" text-anchor="%s" font-weight="%s">%s</text>`+"\n",
		x, y, l.size, l.color, l.anchor, l.weight, escaped(text))
}

// part is a piece of a text in a colour of its own.
type part struct{ text, color string }

// parts writes a text of several colours.
func (c *canvas) parts(x, y float64, l label, parts ...part) {
	fmt.Fprintf(&c.buf, `<text x="%.1f" y="%.1f" font-size="%g" text-anchor="%s" font-weight="%s">`, x, y, l.size, l.anchor, l.weight)
	for _, p := range parts {
		fmt.Fprintf(&c.buf, `<tspan fill="%s" xml:space="preserve">%s</tspan>`, p.color, escaped(p.text))
	}
	c.buf.WriteString("</text>\n")
}

// spot is a point of a path.
type spot struct{ x, y float64 }

// path draws a line through spots.
func (c *canvas) path(spots []spot, width float64, color string) {
	fmt.Fprintf(&c.buf, `<path d="%s" fill="none" stroke="%s" stroke-width="%g" stroke-linejoin="round"/>`+"\n", through(spots), color, width)
}

// area fills what spots surround.
func (c *canvas) area(spots []spot, f fill) {
	fmt.Fprintf(&c.buf, `<path d="%sZ" fill="%s" fill-opacity="%g"/>`+"\n", through(spots), f.color, f.opacity)
}

func through(spots []spot) string {
	var d strings.Builder
	for i, s := range spots {
		verb := "L"
		if i == 0 {
			verb = "M"
		}
		fmt.Fprintf(&d, "%s%.1f %.1f", verb, s.x, s.y)
	}
	return d.String()
}

func escaped(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer does not fail
	return b.String()
}
