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

// BudgetConfig configures a [Budget]. With the zero value the retries of the last 10 seconds may be as many as 20% of the
// calls of that time, plus 10 per second, so that clients with little traffic can retry too.
type BudgetConfig struct {
	Ratio     float64       // retries allowed per call. If zero, 0.2. If negative, none
	PerSecond float64       // retries allowed per second, whatever the traffic. If zero, 10. If negative, none
	Window    time.Duration // how long a call or a retry counts, in 10 buckets; at least 1ms. If zero, 10s
}

const (
	defaultRatio     = 0.2
	defaultPerSecond = 10
	defaultWindow    = 10 * time.Second
	minWindow        = time.Millisecond
	budgetBuckets    = 10
)

// Validate returns an error that names each invalid field, its value and what is allowed; nil if c is valid.
func (c BudgetConfig) Validate() error {
	var faults []error
	if math.IsNaN(c.Ratio) || math.IsInf(c.Ratio, 0) {
		faults = append(faults, fmt.Errorf("retry: BudgetConfig.Ratio is %v, must be a finite number", c.Ratio))
	}
	if math.IsNaN(c.PerSecond) || math.IsInf(c.PerSecond, 0) {
		faults = append(faults, fmt.Errorf("retry: BudgetConfig.PerSecond is %v, must be a finite number", c.PerSecond))
	}
	if c.Window != 0 && c.Window < minWindow {
		faults = append(faults, fmt.Errorf("retry: BudgetConfig.Window is %v, must be 0 (%v) or at least %v", c.Window, defaultWindow, minWindow))
	}
	return errors.Join(faults...)
}

// Budget limits how much traffic retries and hedges may add. Over a Window it allows Ratio retries per call, plus PerSecond
// retries per second. In a total outage the dependency then gets about a fifth more traffic than usual, where three attempts
// per call without a budget are three times as much. Policies that share a Budget share its limit.
//
// A retry takes from the budget when it is decided, before its wait. It is given back if it never runs or brings an answer
// that is not retryable; otherwise it stays spent, after a success too. Both calls and spent retries drop out after a
// Window, so the budget refills with new calls and with time.
//
// Create a Budget with [NewBudget]; it is safe for concurrent use.
type Budget struct {
	ratio   float64
	reserve float64       // PerSecond for a whole window
	width   time.Duration // of a bucket
	refused atomic.Int64
	buckets [budgetBuckets]budgetBucket

	mu        sync.Mutex
	name      string             // guarded by mu
	observers []observe.Observer // guarded by mu: those that it is attached to
}

// budgetBucket counts what happened in one tenth of a window. Tenths are numbered from the start of the process.
type budgetBucket struct {
	epoch atomic.Int64 // the number of the tenth; written under mu
	calls atomic.Int64
	spent int64 // guarded by the budget's mu
}

// Unlimited is a Budget that allows every retry. It reports nothing.
var Unlimited = &Budget{name: "unlimited"}

// NewBudget returns a budget that has spent nothing yet. It reports under name; if that is empty, under the name of the first
// policy that uses it. NewBudget panics with the error of [BudgetConfig.Validate] if cfg is not valid.
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

// Name returns the name that the budget reports under; "" if it has none and no policy uses it yet.
func (b *Budget) Name() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.name
}

// BudgetStats describes a [Budget] at one moment. For [Unlimited], Available and Limit are +Inf and the rest is 0.
type BudgetStats struct {
	Available float64 // Limit - Spent: retries that it would allow now; not below 0
	Limit     float64 // retries that it allows in the present window, given its calls
	Calls     int     // calls in the window
	Spent     int     // retries spent in the window
	Refused   int64   // retries refused since NewBudget
}

// Stats returns the budget's numbers, read under one lock.
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
	// No lock: if this goroutine is delayed here for a whole window, the call counts in the next one instead. That is harmless.
	bucket.calls.Add(1)
}

// payment is a retry that was taken from a budget. The zero value is none.
type payment struct {
	from  *Budget
	epoch int64 // of the bucket that it was taken from
}

// pay takes a retry from the budget. It reports false if there is none left at now.
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

// giveBack gives the retry back to its budget, unless it has expired. Only the first call does anything.
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

// allows reports whether so many retries are within the limit for so many calls. It compares a quotient with Ratio, because
// a product such as .29*100 is below 29 in floats and would refuse the 29th retry.
func (b *Budget) allows(calls, retries int64) bool {
	beyond := float64(retries) - b.reserve
	return beyond <= 0 || calls > 0 && beyond/float64(calls) <= b.ratio
}

// sumLocked returns the sums of the window whose last tenth is epoch.
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

// renewLocked empties a bucket of an earlier window for use in the tenth epoch. A bucket that is newer stays: the caller has
// read the clock before somebody else renewed it.
func (b *Budget) renewLocked(bucket *budgetBucket, epoch int64) {
	if bucket.epoch.Load() >= epoch {
		return
	}
	bucket.calls.Store(0)
	bucket.spent = 0
	bucket.epoch.Store(epoch)
}

// floorDiv returns now/width, rounded down. That matters for a negative now, which the clock of a synctest bubble can give.
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

// bind attaches the budget to o, unless it is attached already. If it has no name it takes this one.
func (b *Budget) bind(name string, o observe.Observer) {
	if b == Unlimited {
		return
	}
	joined := leaves(o) // not under mu: it calls a method of o
	b.mu.Lock()
	if b.name == "" {
		b.name = name
	}
	name = b.name
	var fresh []observe.Observer
	for _, o := range joined {
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

// wholeTokens rounds n down. It adds a little before, since a product of floats may fall just short of a whole number.
func wholeTokens(n float64) int64 {
	return int64(min(math.Floor(n+1e-9), math.MaxInt64/2))
}

// leaves returns the observers that o joins, those of [observe.Tee] for one, else o itself. A budget is attached to each of
// them once, even if policies that share it have different joined observers with one in common.
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
