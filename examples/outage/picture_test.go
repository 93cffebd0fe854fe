package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wellFormed returns what is wrong with a document as XML.
func wellFormed(doc []byte) error {
	d := xml.NewDecoder(bytes.NewReader(doc))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestThePictureIsWellFormed(t *testing.T) {
	quiet := history{down: s(1), up: s(2), end: s(3)}
	for name, h := range map[string]history{"an outage": anOutage(), "nothing happened": quiet, "no time passed": {}} {
		svg := draw(&h, &quiet)
		require.NoError(t, wellFormed(svg), name)
		assert.NotContains(t, string(svg), "NaN", name)
		assert.NotContains(t, string(svg), "Inf", name)
	}
}

func TestThePictureTellsTheStory(t *testing.T) {
	with, without := anOutage(), history{down: s(1), up: s(3), end: s(5)}
	svg := string(draw(&with, &without))
	for _, want := range []string{">open 1s<", "2 calls refused", "2 before it opens", "1 probe", "answers again after 60.0ms"} {
		assert.Contains(t, svg, want)
	}
}

func TestTextIsEscaped(t *testing.T) {
	c := newCanvas(10, 10, "a < b", "x & y")
	c.text(0, 0, label{12, ink, "start", "normal"}, `<script> & "`)
	c.parts(0, 0, label{12, ink, "start", "normal"}, part{"<", ink})
	assert.NoError(t, wellFormed(c.bytes()))
}

func TestBars(t *testing.T) {
	for _, tc := range []struct {
		n    int
		want string
	}{
		{0, "    "},
		{1, "▏   "}, // a single request shows
		{50, "██  "},
		{55, "██▏ "},
		{100, "████"},
		{1000, "████"},
	} {
		assert.Equal(t, tc.want, bar(tc.n, 100, 4), "%d", tc.n)
	}
}

func TestFormats(t *testing.T) {
	assert.Equal(t, "0", count(0))
	assert.Equal(t, "999", count(999))
	assert.Equal(t, "1,000", count(1000))
	assert.Equal(t, "1,234,567", count(1234567))
	for d, want := range map[time.Duration]string{
		0: "–", 1500 * time.Nanosecond: "1.5µs", 250 * time.Microsecond: "250µs", 10600 * time.Microsecond: "10.6ms",
		250 * time.Millisecond: "250ms", 1500 * time.Millisecond: "1.50s",
	} {
		assert.Equal(t, want, short(d))
	}
}
