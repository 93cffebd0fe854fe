package instant

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
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
