package breaker

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFaultyConfigIsNamedFieldByField(t *testing.T) {
	tests := []struct {
		name   string
		config Config
		want   string
	}{
		{"Window", Config{Window: -time.Second}, "breaker: Config.Window is -1s, must be above 0, or 0 for 10s"},
		{"Calls", Config{Calls: -1}, "breaker: Config.Calls is -1, must be above 0, or 0 for a window of time"},
		{"Window and Calls", Config{Window: time.Second, Calls: 9}, "breaker: Config.Window is 1s, must be 0 where Calls is set (9): the window is either of time or of calls"},
		{"MinCalls", Config{MinCalls: -1}, "breaker: Config.MinCalls is -1, must be above 0, or 0 for 20"},
		{"FailureRatio", Config{FailureRatio: 50}, "breaker: Config.FailureRatio is 50, must be above 0 and at most 1, 0 for the default, or negative for none"},
		{"FailureRatio NaN", Config{FailureRatio: math.NaN()}, "breaker: Config.FailureRatio is NaN, must be above 0 and at most 1, 0 for the default, or negative for none"},
		{"Failures", Config{Failures: -1}, "breaker: Config.Failures is -1, must be from 1 to 65536, or 0 for none"},
		{"too many Failures", Config{Failures: 65537}, "breaker: Config.Failures is 65537, must be from 1 to 65536, or 0 for none"},
		{"more Failures than Calls", Config{Failures: 6, Calls: 5}, "breaker: Config.Failures is 6, must be at most Calls (5), or it is never reached"},
		{"Consecutive", Config{Consecutive: -1}, "breaker: Config.Consecutive is -1, must be above 0, or 0 for none"},
		{"SlowCall", Config{SlowCall: -1}, "breaker: Config.SlowCall is -1ns, must be above 0, or 0 for none"},
		{"SlowRatio", Config{SlowRatio: -.1}, "breaker: Config.SlowRatio is -0.1, must be above 0 and at most 1, or 0 for 0.5"},
		{"SlowRatio above 1", Config{SlowRatio: 1.1}, "breaker: Config.SlowRatio is 1.1, must be above 0 and at most 1, or 0 for 0.5"},
		{"Cooldown", Config{Cooldown: -1}, "breaker: Config.Cooldown is -1ns, must be above 0, or 0 for 5s"},
		{"MaxCooldown", Config{MaxCooldown: -1}, "breaker: Config.MaxCooldown is -1ns, must be above 0, or 0 for 1m"},
		{"MaxCooldown below Cooldown", Config{MaxCooldown: 1e9, Cooldown: 2e9}, "breaker: Config.MaxCooldown is 1s, must be at least Cooldown (2s)"},
		{"MaxCooldown below the default Cooldown", Config{MaxCooldown: 1e9}, "breaker: Config.MaxCooldown is 1s, must be at least Cooldown (5s)"},
		{"Growth", Config{Growth: .5}, "breaker: Config.Growth is 0.5, must be at least 1 and finite, or 0 for 2"},
		{"Growth infinite", Config{Growth: math.Inf(1)}, "breaker: Config.Growth is +Inf, must be at least 1 and finite, or 0 for 2"},
		{"Jitter", Config{Jitter: 1.5}, "breaker: Config.Jitter is 1.5, must be at most 1, 0 for 0.2, or negative for none"},
		{"Jitter NaN", Config{Jitter: math.NaN()}, "breaker: Config.Jitter is NaN, must be at most 1, 0 for 0.2, or negative for none"},
		{"Probes", Config{Probes: -1}, "breaker: Config.Probes is -1, must be above 0, or 0 for 1"},
		{"ProbeSuccesses", Config{ProbeSuccesses: -1}, "breaker: Config.ProbeSuccesses is -1, must be above 0, or 0 for 1"},
		{"ProbeTimeout", Config{ProbeTimeout: -1}, "breaker: Config.ProbeTimeout is -1ns, must be above 0, or 0 for 30s"},
		{"RampUp", Config{RampUp: -1}, "breaker: Config.RampUp is -1ns, must be above 0, or 0 for none"},
		{"several", Config{Probes: -1, RampUp: -1}, "breaker: Config.Probes is -1, must be above 0, or 0 for 1\nbreaker: Config.RampUp is -1ns, must be above 0, or 0 for none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.config.Validate()
			require.EqualError(t, err, tt.want)
			assert.PanicsWithError(t, tt.want, func() { New("payments-api", tt.config) })
		})
	}
}

func TestAConfigMaySwitchAnythingOff(t *testing.T) {
	for _, cfg := range []Config{
		{}, {FailureRatio: -1, Jitter: -1, Growth: 1}, {Calls: 1, MinCalls: 100}, {Cooldown: time.Hour}, {FailureRatio: 1, Jitter: 1, SlowRatio: 1},
	} {
		require.NoError(t, cfg.Validate())
		New("payments-api", cfg)
	}
}

func TestDefaultsAreAsDocumented(t *testing.T) {
	c := Config{}.resolved()
	assert.Equal(t, 10*time.Second, c.Window)
	assert.Equal(t, 20, c.MinCalls)
	assert.InDelta(t, .5, c.FailureRatio, 0)
	assert.InDelta(t, .5, c.SlowRatio, 0)
	assert.Equal(t, 5*time.Second, c.Cooldown)
	assert.Equal(t, time.Minute, c.MaxCooldown)
	assert.InDelta(t, 2, c.Growth, 0)
	assert.InDelta(t, .2, c.Jitter, 0)
	assert.Equal(t, []int{1, 1}, []int{c.Probes, c.ProbeSuccesses})
	assert.Equal(t, 30*time.Second, c.ProbeTimeout)
	assert.NotNil(t, c.Classify)
	assert.NotNil(t, c.Observer)

	assert.Equal(t, 10, Config{Calls: 10}.resolved().MinCalls)
	assert.Zero(t, Config{Calls: 10}.resolved().Window)
	assert.Zero(t, Config{Failures: 1}.resolved().FailureRatio)
	assert.Zero(t, Config{Consecutive: 1}.resolved().FailureRatio)
	assert.Zero(t, Config{FailureRatio: -1}.resolved().FailureRatio)
	assert.Zero(t, Config{Jitter: -1}.resolved().Jitter)
	assert.Equal(t, time.Hour, Config{Cooldown: time.Hour}.resolved().MaxCooldown)
}

func TestStepsOfGrowthAreCountedExactly(t *testing.T) {
	for _, tt := range []struct {
		config Config
		want   int
	}{
		{Config{}, 4}, // 5 10 20 40 60
		{Config{Cooldown: 1e9, MaxCooldown: 8e9}, 3},
		{Config{Cooldown: 1e9, MaxCooldown: 8e9 + 1}, 4},
		{Config{Cooldown: 1e9, MaxCooldown: 1000e9, Growth: 10}, 3},
		{Config{Cooldown: 1e9, MaxCooldown: 1e9}, 0},
		{Config{Growth: 1}, 0},
		{Config{Growth: 1.0000001}, 24849068},
		{Config{Growth: math.Nextafter(1, 2)}, math.MaxInt32}, // nor does it count for ever
		{Config{Growth: math.MaxFloat64}, 1},
	} {
		cfg := tt.config.resolved()
		assert.Equal(t, tt.want, cfg.steps(), "%+v", tt.config)
	}
}

func TestMisuseIsNamed(t *testing.T) {
	b := newBed(Config{})
	nothing := func(context.Context) error { return nil }
	assert.PanicsWithValue(t, "breaker: payments-api: Do with a nil context", func() { _ = b.Do(nil, nothing) }) //nolint:staticcheck // that is the test
	assert.PanicsWithValue(t, "breaker: payments-api: Do with a nil fn", func() { _ = b.Do(context.Background(), nil) })
	assert.PanicsWithValue(t, "breaker: payments-api: Allow with a nil context", func() { _, _ = b.Allow(nil) }) //nolint:staticcheck // that is the test
	assert.Equal(t, "payments-api breaker(payments-api)", b.Name()+" "+b.String())
}
