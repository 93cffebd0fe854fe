package retry

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchgear-go/switchgear/internal/instant"
	"github.com/switchgear-go/switchgear/policy/observe"
)

// BudgetConfig configures a [Budget]. The zero value allows retries for 20% of the calls of the last 10 seconds, and 10 more
// per second, so that little traffic can retry too.
type BudgetConfig struct {
	Ratio     float64       // retries per call. If zero, 0.2; if negative, none
	PerSecond float64       // retries per second whatever the traffic. If zero, 10; if negative, none
	Window    time.Duration // how long calls and retries count, in 10 buckets. If zero, 10s
}

const (
	defaultRatio     = 0.2
	defaultPerSecond = 10
	defaultWindow    = 10 * time.Second
	minWindow        = time.Millisecond
	budgetBuckets    = 10
)

// Validate returns an error that names each field with a value that is not allowed.
func (c BudgetConfig) Validate() error {
	var faults []error
	if math.IsNaN(c.Ratio) || math.IsInf(c.Ratio, 0) {
		faults = append(faults, fmt.Errorf("retry: budget: Ratio is %v, must be a finite number", c.Ratio))
	}
	if math.IsNaN(c.PerSecond) || math.IsInf(c.PerSecond, 0) {
		faults = append(faults, fmt.Errorf("retry: budget: PerSecond is %v, must be a finite number", c.PerSecond))
	}
	if c.Window != 0 && c.Window < minWindow {
		faults = append(faults, fmt.Errorf("retry: budget: Window is %v, must be 0 (%v) or at least %v", c.Window, defaultWindow, minWindow))
	}
	return errors.Join(faults...)
}

// Budget limits how much repeated attempts may add to the traffic: over the last Window, to Ratio times the calls plus
// PerSecond. Retries and hedges that share a Budget share that limit. So a retry cannot turn a slow dependency into a
// failed one: in a total outage of a dependency, three attempts for each call send it a fifth more than usual, not three
// times as much.
//
// An attempt is paid for when it is decided, before its wait. It is given back if it never ran, or if it brought an answer
// that is not retryable; a success keeps it spent. Calls and payments expire alike, so the budget refills with traffic and
// with time.
//
// A Budget is safe for concurrent use; make it with [NewBudget].
type Budget struct {
	ratio   float64
	reserve float64       // PerSecond for a whole window
	width   time.Duration // of a bucket
	refused atomic.Int64
	buckets [budgetBuckets]budgetBucket

	mu        sync.Mutex
	name      string             // guarded by mu
	observers []observe.Observer // guarded by mu: those that were told of the budget
}

// budgetBucket counts what happened in one tenth of the window: the tenth number epoch since the start of the process.
type budgetBucket struct {
	epoch atomic.Int64 // changed under mu
	calls atomic.Int64
	spent int64 // guarded by the budget's mu
}

// Unlimited is the Budget that allows every retry.
var Unlimited = &Budget{name: "unlimited"}

// NewBudget returns a full budget. Without a name it takes that of the first policy that uses it. It panics if cfg is not valid.
func NewBudget(name string, cfg BudgetConfig) *Budget {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	if cfg.Ratio == 0 {
		cfg.Ratio = defaultRatio
	}
	if cfg.PerSecond == 0 {
		cfg.PerSecond = defaultPerSecond
	}
	if cfg.Window == 0 {
		cfg.Window = defaultWindow
	}
	b := &Budget{
		name:    name,
		ratio:   max(0, cfg.Ratio),
		reserve: max(0, cfg.PerSecond) * cfg.Window.Seconds(),
		width:   cfg.Window / budgetBuckets,
	}
	for i := range b.buckets {
		b.buckets[i].epoch.Store(math.MinInt64)
	}
	return b
}

// Name returns the budget's name; "" if it has none yet.
func (b *Budget) Name() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.name
}

// BudgetStats describes a [Budget] at one moment. Those of [Unlimited] are infinite.
type BudgetStats struct {
	Available float64 // retries that it would allow now; not below 0
	Limit     float64 // retries that it allows for the calls of its window
	Calls     int     // in the window
	Spent     int     // on retries in the window
	Refused   int64   // retries that it did not allow, since it was made
}

// Stats returns the budget as it is now.
func (b *Budget) Stats() BudgetStats {
	if b == Unlimited {
		return BudgetStats{Available: math.Inf(1), Limit: math.Inf(1)}
	}
	now := floorDiv(instant.Now(), b.width)
	b.mu.Lock()
	defer b.mu.Unlock()
	calls, spent := b.sumLocked(now)
	limit := b.ratio*float64(calls) + b.reserve
	return BudgetStats{
		Available: max(0, limit-float64(spent)),
		Limit:     limit,
		Calls:     int(calls),
		Spent:     int(spent),
		Refused:   b.refused.Load(),
	}
}

func (b *Budget) validate() error {
	if b != nil && b != Unlimited && b.width == 0 {
		return errors.New("retry: Budget is empty, must be nil (one of its own), Unlimited, or made by NewBudget")
	}
	return nil
}

// deposit counts a call at now.
func (b *Budget) deposit(now time.Duration) {
	if b == Unlimited {
		return
	}
	epoch := floorDiv(now, b.width)
	bucket := b.bucket(epoch)
	if bucket.epoch.Load() != epoch {
		b.mu.Lock()
		b.renewLocked(bucket, epoch)
		b.mu.Unlock()
	}
	// Should the bucket have been renewed since, this goroutine slept for a window and the call counts a window late.
	bucket.calls.Add(1)
}

// payment is a retry that a budget has paid for.
type payment struct {
	from  *Budget
	epoch int64
}

// pay takes a retry out of the budget, if there is one left at now.
func (b *Budget) pay(now time.Duration) (payment, bool) {
	if b == Unlimited {
		return payment{}, true
	}
	epoch := floorDiv(now, b.width)
	b.mu.Lock()
	defer b.mu.Unlock()
	calls, spent := b.sumLocked(epoch)
	if !b.allows(calls, spent+1) {
		b.refused.Add(1)
		return payment{}, false
	}
	bucket := b.bucket(epoch)
	b.renewLocked(bucket, epoch)
	bucket.spent++
	return payment{b, bucket.epoch.Load()}, true
}

// giveBack puts the retry back, if it still counts. Later calls do nothing.
func (p *payment) giveBack() {
	b := p.from
	if b == nil {
		return
	}
	p.from = nil
	b.mu.Lock()
	defer b.mu.Unlock()
	if bucket := b.bucket(p.epoch); bucket.epoch.Load() == p.epoch {
		bucket.spent--
	}
}

// allows reports whether calls pay for that many retries. It divides, since products of floats such as .29*100 fall short.
func (b *Budget) allows(calls, retries int64) bool {
	beyond := float64(retries) - b.reserve
	return beyond <= 0 || calls > 0 && beyond/float64(calls) <= b.ratio
}

// sumLocked adds up the buckets of the window that ends with epoch.
func (b *Budget) sumLocked(epoch int64) (calls, spent int64) {
	for i := range b.buckets {
		bucket := &b.buckets[i]
		if bucket.epoch.Load() > epoch-budgetBuckets {
			calls += bucket.calls.Load()
			spent += bucket.spent
		}
	}
	return calls, spent
}

// renewLocked empties a bucket whose time has passed. One that is newer than epoch stays: whoever asks read the clock long ago.
func (b *Budget) renewLocked(bucket *budgetBucket, epoch int64) {
	if bucket.epoch.Load() >= epoch {
		return
	}
	bucket.calls.Store(0)
	bucket.spent = 0
	bucket.epoch.Store(epoch)
}

// floorDiv returns the number of the span of that width that now lies in. It rounds down also before the start of the
// process, where the clock of a synctest bubble may be.
func floorDiv(now, width time.Duration) int64 {
	n := int64(now / width)
	if now%width < 0 {
		n--
	}
	return n
}

func (b *Budget) bucket(epoch int64) *budgetBucket {
	return &b.buckets[(epoch%budgetBuckets+budgetBuckets)%budgetBuckets]
}

// bind tells o of the budget, once, under name if the budget has none.
func (b *Budget) bind(name string, o observe.Observer) {
	if b == Unlimited {
		return
	}
	b.mu.Lock()
	if b.name == "" {
		b.name = name
	}
	name = b.name
	var fresh []observe.Observer
	for _, o := range leaves(o) {
		if !contains(b.observers, o) {
			b.observers = append(b.observers, o)
			fresh = append(fresh, o)
		}
	}
	b.mu.Unlock()
	for _, o := range fresh {
		observe.Attach(o, b, observe.Source{Policy: "retry_budget", Name: name, Rows: budgetRows}, (*Budget).live)
	}
}

// live fills in budgetRows.
func (b *Budget) live(v []int64) {
	stats := b.Stats()
	v[budgetAvailable] = wholeTokens(stats.Available)
	v[budgetLimit] = wholeTokens(stats.Limit)
}

// wholeTokens rounds down, but for the error of a product of floats.
func wholeTokens(n float64) int64 {
	return int64(min(math.Floor(n+1e-9), math.MaxInt64/2))
}

// leaves returns the observers that o consists of, so that a budget whose users have different ones, joined with a common
// one, is told to the common one once.
func leaves(o observe.Observer) []observe.Observer {
	joined, ok := o.(interface{ Unwrap() []observe.Observer })
	if !ok {
		return []observe.Observer{o}
	}
	var all []observe.Observer
	for _, o := range joined.Unwrap() {
		all = append(all, leaves(o)...)
	}
	return all
}

func contains(known []observe.Observer, o observe.Observer) bool {
	if !reflect.ValueOf(o).Comparable() {
		return false
	}
	for _, k := range known {
		if reflect.ValueOf(k).Comparable() && k == o {
			return true
		}
	}
	return false
}
