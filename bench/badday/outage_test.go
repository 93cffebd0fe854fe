package badday

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// An outage as clients see it: each of 50 makes a call of 10 ms and pauses for about as long. After a second the dependency
// fails for two seconds, then it is well again. The breaker opens at five failures in a row, and probes after a second.
const (
	outageStart    = time.Second
	outageLasts    = 2 * time.Second
	outageEnd      = outageStart + outageLasts
	outageCalls    = 10 * time.Millisecond
	outageCooldown = time.Second
)

// outage is what came of one.
type outage struct {
	refused  int           // calls, while it lasted
	inFlight int           // calls that failed before the breaker opened, or were under way then
	later    int           // calls that reached the failing dependency after that: at half-open
	recovery time.Duration // from its end to the first success
}

// suffer has clients call a dependency that fails, through a breaker.
func suffer(l *library) (o outage) {
	g := l.breaker(rule{inARow: 5, cooldown: outageCooldown})
	var mu sync.Mutex
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), outageEnd+time.Second)
	defer cancel()
	opened := time.Duration(-1) // when somebody was refused first

	client := func(random *rand.Rand) {
		for ctx.Err() == nil {
			time.Sleep(8*time.Millisecond + time.Duration(random.Int64N(int64(4*time.Millisecond))))
			at, ran := time.Since(begin), false
			failing := at >= outageStart && at < outageEnd
			err := g.Do(context.Background(), func(context.Context) error {
				ran = true
				time.Sleep(outageCalls)
				if failing {
					return errDown
				}
				return nil
			})
			mu.Lock()
			switch {
			case !ran:
				if opened < 0 {
					opened = at
				}
				if failing {
					o.refused++
				}
			case failing && opened < 0:
				o.inFlight++
			case failing && at < opened:
				o.inFlight++
			case failing:
				o.later++
			case err == nil && at >= outageEnd && o.recovery == 0:
				o.recovery = time.Since(begin) - outageEnd
			}
			mu.Unlock()
		}
	}
	var all sync.WaitGroup
	for i := range crowd {
		all.Go(func() { client(rand.New(rand.NewPCG(uint64(i), 0))) })
	}
	all.Wait()
	return o
}

// outageOf returns what an outage does to a library's clients, and whether ten cancellations open its breaker.
func outageOf(t *testing.T, l library) (o outage, opensOnCancellation bool) {
	synctest.Test(t, func(*testing.T) {
		o = suffer(&l)
		g := l.breaker(rule{inARow: 5, cooldown: outageCooldown})
		abandon(g, 10)
		opensOnCancellation = !admits(g)
		time.Sleep(longTime)
	})
	return o, opensOnCancellation
}

func TestAnOutageIsMetAsPromised(t *testing.T) {
	o, opens := outageOf(t, switchgear())
	// A client that is refused comes back in about 10 ms, so 50 of them make some 10,000 calls in two seconds.
	assert.GreaterOrEqual(t, o.refused, 9000)
	assert.Equal(t, 1, o.later, "calls that reached the failing dependency at half-open")
	assert.LessOrEqual(t, o.inFlight, crowd)
	assert.LessOrEqual(t, o.recovery, outageCooldown+2*outageCalls)
	assert.False(t, opens, "opens on cancellations")
}
