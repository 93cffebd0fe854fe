package instant

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInstantsAndTimesAreEachOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := Now()
		assert.True(t, Time(at).Equal(time.Now()))
		assert.Equal(t, at, Of(time.Now()))
		time.Sleep(time.Hour)
		assert.Equal(t, at+time.Hour, Now())
		assert.True(t, Time(at).Equal(time.Now().Add(-time.Hour)), "also of the past")
	})
	assert.Less(t, Of(Time(Now()))-Now(), time.Second)
}

func TestATimeWithoutAMonotonicReadingIsByTheWallClockOfNow(t *testing.T) {
	before := base
	defer func() { base = before }()
	*(*uint64)(unsafe.Pointer(&base)) -= 3600 << 30 // since it was read the wall clock has been put forward by an hour
	now := time.Now()
	require.InDelta(t, time.Hour, now.Round(0).Sub(base.Round(0))-now.Sub(base), float64(time.Second), "package time keeps the seconds there")
	assert.InDelta(t, Of(now), Of(now.Round(0)), float64(time.Second))
}

func TestInstantsEndWhereADurationDoes(t *testing.T) {
	assert.EqualValues(t, 3, Add(5, -2))
	assert.EqualValues(t, math.MaxInt64, Add(1, math.MaxInt64))
	assert.EqualValues(t, math.MinInt64, Add(-2, -math.MaxInt64))
	assert.EqualValues(t, math.MinInt64, Add(-1, math.MinInt64))
	assert.EqualValues(t, -1, Add(math.MinInt64, math.MaxInt64))
	assert.EqualValues(t, math.MaxInt64, Of(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)))
}
