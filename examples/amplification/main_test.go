package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheProgramShowsWhatItClaims(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "a.svg")
	var out, errs bytes.Buffer
	require.Zero(t, run(t, []string{"-duration", "20s", "-svg", picture}, &out, &errs), errs.String())
	assert.Equal(t, 3, strings.Count(out.String(), " 3.00×"))
	assert.Equal(t, 3, strings.Count(out.String(), " 9.00×"))

	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	for d := xml.NewDecoder(bytes.NewReader(svg)); err != io.EOF; _, err = d.Token() { //nolint:errorlint // exactly this
		require.NoError(t, err)
	}
	assert.Equal(t, len(variants), bytes.Count(svg, []byte("<polyline")))
}

func TestAClaimThatDoesNotHoldIsTold(t *testing.T) {
	v := variants[0]
	require.NoError(t, result{variant: v, perSecond: 10, calls: 1000, attempts: 1920}.check(time.Minute))
	require.ErrorContains(t, result{variant: v, perSecond: 10, calls: 1000, attempts: 1921}.check(time.Minute), "1921 attempts for 1000 calls")
	require.ErrorContains(t, result{variant: v, calls: 1000, recovery: 11 * time.Second}.check(time.Minute), "until 11s")
}

func TestBadFlagsAreRefused(t *testing.T) {
	assert.Equal(t, 2, run(t, []string{"-duration", "1ms"}, io.Discard, io.Discard))
	assert.Equal(t, 2, run(t, []string{"-nonsense"}, io.Discard, io.Discard))
}
