package breaker

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each letter is a call: o succeeds, x fails, i is ignored, capitals take 2s, _ is a minute's pause.
func TestABreakerOpensAtTheCallThatMeetsARule(t *testing.T) {
	off := func(c Config) Config { c.FailureRatio = -1; return c }
	tests := []struct {
		name   string
		config Config
		calls  string
		opens  int // at which call, from 1; 0: never
		reason string
		ratio  float64
		judged int
	}{
		{"half of the calls", Config{MinCalls: 6}, "oxoxxx", 6, reasonFailureRatio, 4. / 6, 6},
		{"no fewer calls than MinCalls", Config{MinCalls: 5}, "xxxxx", 5, reasonFailureRatio, 1, 5},
		{"20 calls by default", Config{}, strings.Repeat("x", 25), 20, reasonFailureRatio, 1, 20},
		{"just below the ratio", Config{MinCalls: 4}, "ooxoxooxooxo", 0, "", 0, 0},
		{"the ratio is met on a success", Config{MinCalls: 4}, "xxxo", 4, reasonFailureRatio, .75, 4},
		{"a ratio that floats cannot hold", Config{MinCalls: 100, FailureRatio: .29}, strings.Repeat("o", 71) + strings.Repeat("x", 29), 100, reasonFailureRatio, .29, 100},
		{"one failure less", Config{MinCalls: 100, FailureRatio: .29}, strings.Repeat("o", 72) + strings.Repeat("x", 28), 0, "", 0, 0},
		{"only failures", Config{MinCalls: 2, FailureRatio: 1}, "oxxxxxxxxx", 0, "", 0, 0},
		{"one failure a minute", Config{MinCalls: 5}, strings.Repeat("x_", 50), 0, "", 0, 0},
		{"failures age out", Config{MinCalls: 5}, "xxxx_xoooxx", 10, reasonFailureRatio, .5, 6},
		{"ignored calls count for nothing", Config{MinCalls: 4}, "iiiixiiixiixiix", 15, reasonFailureRatio, 1, 4},
		{"a ratio is off", off(Config{}), strings.Repeat("x", 100), 0, "", 0, 0},

		{"the last calls", Config{Calls: 4, FailureRatio: .75}, "xxooxx_x", 7, reasonFailureRatio, .75, 4},
		{"the last calls, fewer than MinCalls", Config{Calls: 4, MinCalls: 100}, "xxxx", 4, reasonFailureRatio, 1, 4},
		{"the last calls forget the ones before", Config{Calls: 4, FailureRatio: .75}, "xxooxxooxxoo", 0, "", 0, 0},
		{"failures among the last calls", Config{Calls: 4, Failures: 3}, "xxooxooxxox", 11, reasonFailureCount, .75, 4},

		{"a number of failures", Config{Failures: 3}, "oooooooooooooxooooooxoooooox", 28, reasonFailureCount, 3. / 28, 28},
		{"a number of failures switches the default ratio off", Config{Failures: 30}, strings.Repeat("x", 29), 0, "", 0, 0},
		{"a number of failures beside a ratio", Config{Failures: 30, FailureRatio: .5}, strings.Repeat("x", 29), 20, reasonFailureRatio, 1, 20},

		{"failures in a row", Config{Consecutive: 3}, "xxoxxoxxx", 9, reasonConsecutive, 7. / 9, 9},
		{"failures in a row, however far apart", Config{Consecutive: 5}, "x_x_x_x_x", 5, reasonConsecutive, 1, 1},
		{"failures in a row, with calls that are ignored between", Config{Consecutive: 3}, "xixiix", 6, reasonConsecutive, 1, 3},
		{"failures in a row switch the default ratio off", Config{Consecutive: 30}, strings.Repeat("x", 29), 0, "", 0, 0},

		{"half of the calls slow", Config{MinCalls: 4, SlowCall: 2 * time.Second, FailureRatio: -1}, "oOoO", 4, reasonSlowRatio, .5, 4},
		{"slow failures count as slow", Config{MinCalls: 4, SlowCall: 2 * time.Second, FailureRatio: -1}, "oXoX", 4, reasonSlowRatio, .5, 4},
		{"slow calls below the ratio", Config{MinCalls: 4, SlowCall: 2 * time.Second, SlowRatio: .61}, "oOoOOooO", 0, "", 0, 0},
		{"slow calls without the rule", Config{}, "OOOOOOOOOOOOOOOOOOOOOOOOO", 0, "", 0, 0},
		{"slow calls, fewer than MinCalls", Config{SlowCall: time.Second}, "OOOO", 0, "", 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed(tt.config)
			opened, calls := 0, 0
			for _, c := range tt.calls {
				if c == '_' {
					b.advance(time.Minute)
					continue
				}
				calls++
				ctx, cancel := context.WithCancel(context.Background())
				err := b.Do(ctx, func(context.Context) error {
					if c == 'O' || c == 'X' {
						b.advance(2 * time.Second)
					}
					switch c {
					case 'i':
						cancel()
						return context.Canceled
					case 'x', 'X':
						return errDown
					}
					return nil
				})
				cancel()
				require.NotErrorIs(t, err, ErrCircuitOpen, "call %d", calls)
				if b.State() == Open {
					opened = calls
					break
				}
			}
			require.Equal(t, tt.opens, opened, "opened at call")
			if opened == 0 {
				assert.Empty(t, b.told())
				return
			}
			require.Len(t, b.events, 1)
			e := b.events[0]
			assert.Equal(t, tt.reason, e.Reason)
			assert.InDelta(t, tt.ratio, e.Ratio, 1e-12)
			assert.Equal(t, tt.judged, e.Calls)
			assert.Equal(t, 5*time.Second, e.Delay)
			assert.Equal(t, 0, e.Reopenings)
			if tt.reason != reasonSlowRatio {
				assert.Equal(t, errDown, e.Err)
			}
		})
	}
}
