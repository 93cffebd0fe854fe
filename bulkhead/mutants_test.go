package bulkhead

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Where both are there, the permit and the context's end, a select takes either: often enough for both to be seen.
func TestAPermitGrantedToOneWhoLeavesGoesOnWhicheverItSeesFirst(t *testing.T) {
	for range 64 {
		b := quiet(Config{Max: 1, Queue: 1})
		release := hold(t, b, 1)[0]
		waiting := b.enqueue(t)
		release()
		ended, end := context.WithCancel(t.Context())
		end()
		assert.Equal(t, context.Canceled, b.await(ended, ended.Done(), waiting))
		if !assert.Zero(t, b.Stats().Running, "the permit is lost") {
			return
		}
	}
}
