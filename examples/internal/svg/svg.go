// Package svg draws the pictures of the examples. They have a background of their own, so that they read on light and dark
// pages alike.
package svg

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// The colours, for all pictures alike.
const (
	Paper  = "#ffffff"
	Border = "#d0d7de"
	Grid   = "#e6eaef"
	Ink    = "#1f2328"
	Faded  = "#59636e"
	Blue   = "#2f6fde" // what goes well
	Ruby   = "#cf3a32" // what fails
	Silver = "#d0d8e1" // what is spared
	Leaf   = "#2b8a55"
	Amber  = "#b87900"
)

// Canvas writes an SVG.
type Canvas struct {
	buf bytes.Buffer
}

// Fill is how a shape is filled.
type Fill struct {
	Color   string
	Opacity float64
}

// Solid returns an opaque fill.
func Solid(color string) Fill { return Fill{color, 1} }

// Label is how a text is set.
type Label struct {
	Size   float64
	Color  string
	Anchor string // start, middle or end
	Weight string // normal or bold
}

// Part is a piece of a text in a colour of its own.
type Part struct{ Text, Color string }

// Spot is a point of a path.
type Spot struct{ X, Y float64 }

// New returns a card of that size. The title and the description are for those who do not see it.
func New(width, height float64, title, description string) *Canvas {
	c := new(Canvas)
	fmt.Fprintf(&c.buf, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" `+
		`font-family="system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif">`+"\n", width, height, width, height)
	fmt.Fprintf(&c.buf, "<title>%s</title>\n<desc>%s</desc>\n", escaped(title), escaped(description))
	c.Rect(0, 0, width, height, 10, Solid(Border))
	c.Rect(1, 1, width-2, height-2, 9, Solid(Paper))
	return c
}

// Bytes ends the picture and returns it.
func (c *Canvas) Bytes() []byte {
	c.buf.WriteString("</svg>\n")
	return c.buf.Bytes()
}

// Rect draws a rectangle with rounded corners.
func (c *Canvas) Rect(x, y, width, height, radius float64, f Fill) {
	fmt.Fprintf(&c.buf, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%g" fill="%s" fill-opacity="%g"/>`+"\n",
		x, y, width, height, radius, f.Color, f.Opacity)
}

// Dot draws a circle.
func (c *Canvas) Dot(x, y, radius float64, color string) {
	fmt.Fprintf(&c.buf, `<circle cx="%.1f" cy="%.1f" r="%g" fill="%s"/>`+"\n", x, y, radius, color)
}

// Line draws a straight line.
func (c *Canvas) Line(x1, y1, x2, y2 float64, color string) {
	fmt.Fprintf(&c.buf, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, color)
}

// Path draws a line through spots.
func (c *Canvas) Path(spots []Spot, width float64, color string) {
	fmt.Fprintf(&c.buf, `<path d="%s" fill="none" stroke="%s" stroke-width="%g" stroke-linejoin="round"/>`+"\n", through(spots), color, width)
}

// Text writes a text.
func (c *Canvas) Text(x, y float64, l Label, text string) {
	c.Parts(x, y, l, Part{text, l.Color})
}

// Parts writes a text of several colours.
func (c *Canvas) Parts(x, y float64, l Label, parts ...Part) {
	fmt.Fprintf(&c.buf, `<text x="%.1f" y="%.1f" font-size="%g" text-anchor="%s" font-weight="%s">`, x, y, l.Size, l.Anchor, l.Weight)
	for _, p := range parts {
		fmt.Fprintf(&c.buf, `<tspan fill="%s" xml:space="preserve">%s</tspan>`, p.Color, escaped(p.Text))
	}
	c.buf.WriteString("</text>\n")
}

func through(spots []Spot) string {
	var d strings.Builder
	for i, s := range spots {
		verb := "L"
		if i == 0 {
			verb = "M"
		}
		fmt.Fprintf(&d, "%s%.1f %.1f", verb, s.X, s.Y)
	}
	return d.String()
}

func escaped(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer does not fail
	return b.String()
}
