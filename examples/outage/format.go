package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

// color is an ANSI escape code.
type color string

const (
	bold   color = "1"
	dim    color = "2"
	red    color = "31"
	green  color = "32"
	yellow color = "33"
)

// painter colours text.
type painter func(c color, text string) string

// painterFor returns a painter for what is written to w: plain unless that is a terminal, and where the user wants no colour.
func painterFor(w io.Writer) painter {
	plain := func(_ color, text string) string { return text }
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return plain
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return plain
	}
	return func(c color, text string) string { return "\x1b[" + string(c) + "m" + text + "\x1b[0m" }
}

// short returns d with two or three digits and a unit; – for 0, which is no measurement.
func short(d time.Duration) string {
	switch {
	case d <= 0:
		return "–"
	case d < 100*time.Microsecond:
		return fmt.Sprintf("%.1fµs", float64(d)/float64(time.Microsecond))
	case d < time.Millisecond:
		return fmt.Sprintf("%dµs", d.Microseconds())
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1fms", d.Seconds()*1e3)
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	return fmt.Sprintf("%.2fs", d.Seconds())
}

// count returns n with its thousands apart.
func count(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// percent returns part of whole.
func percent(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f%%", 100*ratio(part, whole))
}
