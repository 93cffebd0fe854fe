package bulkhead

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// permitsOf returns permits as another goroutine may leave them between two steps.
func permitsOf(free, waiting int) *permits {
	p := &permits{}
	p.word.Store(int64(free)*permit + int64(waiting))
	return p
}

func (p *permits) now() [2]int {
	word := p.word.Load()
	return [2]int{free(word), waiting(word)}
}

func TestPermits(t *testing.T) {
	for _, start := range [][2]int{{0, 0}, {2, 0}, {0, 2}, {2, 2}, {-3, 0}, {-3, 2}, {most, most}} {
		free, waits := start[0], start[1]
		mayTake := free > 0 && waits == 0

		p := permitsOf(free, waits)
		assert.Equal(t, start, p.now())
		assert.Equal(t, mayTake, p.take(), "%v: those who wait come first", start)

		p = permitsOf(free, waits)
		took, joined := p.takeOrWait(2)
		assert.Equal(t, mayTake, took, "%v: a permit that came free in between is not waited for", start)
		assert.Equal(t, !mayTake && waits < 2, joined, start)

		p = permitsOf(free, waits)
		assert.Equal(t, free > 0, p.handOver(), start)
		if free > 0 && waits > 0 {
			assert.Equal(t, [2]int{free - 1, waits - 1}, p.now())
		}

		if free < most {
			p = permitsOf(free, waits)
			assert.Equal(t, free+1 > 0 && waits > 0, p.add(1), "%v: whoever frees a permit learns that somebody waits", start)
			assert.Equal(t, [2]int{free + 1, waits}, p.now())
		}
		p = permitsOf(free, waits)
		assert.Equal(t, 1-free, p.overdraw(), start)
		assert.Equal(t, [2]int{free - 1, waits}, p.now())
	}
}
