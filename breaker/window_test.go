package breaker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// threeInTenMinutes opens for five minutes at three failures in ten.
var threeInTenMinutes = Config{Window: 10 * time.Minute, Failures: 3, FailureRatio: -1, Cooldown: 5 * time.Minute, Growth: 1, Jitter: -1}

func TestFailuresCountByTheirExactTimes(t *testing.T) {
	const m = time.Minute
	tests := []struct {
		name     string
		failures []time.Duration
		want     State
	}{
		{"within the window by a second", []time.Duration{0, 5 * m, 9*m + 59*time.Second}, Open},
		{"within the window by a nanosecond", []time.Duration{0, 5 * m, 10*m - 1}, Open},
		{"at its very end", []time.Duration{0, 5 * m, 10 * m}, Closed},
		{"spread over twelve minutes", []time.Duration{0, 6 * m, 12 * m}, Closed},
		{"close together", []time.Duration{0, m, 2 * m}, Open},
		{"close together, after one long ago", []time.Duration{0, 20 * m, 21 * m, 29 * m}, Open},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed(threeInTenMinutes)
			for _, at := range tt.failures {
				b.at(at)
				require.Equal(t, Closed, b.State())
				b.fail(1)
			}
			assert.Equal(t, tt.want, b.State())
		})
	}
}

func TestOneCallAMinuteThroughAnOutage(t *testing.T) {
	b := newBed(threeInTenMinutes)
	got := ""
	for minute := range 21 {
		b.at(time.Duration(minute) * time.Minute)
		var fault error
		if minute >= 3 && minute <= 12 {
			fault = errDown
		}
		switch err := b.call(fault); {
		case err == nil:
			got += "o"
		case errors.Is(err, ErrCircuitOpen):
			got += "-"
		default:
			got += "x"
		}
	}
	assert.Equal(t, "oooxxx----x----oooooo", got)
	assert.EqualValues(t, 8, b.Stats().Rejected)
	assert.Equal(t, strings.Join([]string{
		"5m0s closed→open failure_count",
		"10m0s open→half_open cooldown_elapsed",
		"10m0s half_open→open probe_failed",
		"15m0s open→half_open cooldown_elapsed",
		"15m0s half_open→closed probe_succeeded",
	}, ", "), b.told())
}

// The report: vert-x3/vertx-circuit-breaker#24.
func TestOldFailuresDoNotOpenABreaker(t *testing.T) {
	b := newBed(Config{Failures: 5, Window: 10 * time.Second})
	b.fail(4)
	assert.Equal(t, 4, b.Stats().Failed)
	b.advance(11 * time.Second)
	assert.Equal(t, 0, b.Stats().Failed, "without any call: gofiber/contrib#1990")
	b.fail(1)
	assert.Equal(t, Closed, b.State())
	assert.Equal(t, 1, b.Stats().Failed)
}
