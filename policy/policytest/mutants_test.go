package policytest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/switchgear-go/switchgear/policy"
)

// A mutant is a policy that is broken on purpose.
type mutant struct {
	name     string
	policy   func() policy.Policy
	rule     string        // the one that it breaks first
	says     string        // part of what Conform says
	patience time.Duration // for mutants that hang
}

// stateless is a mutant that keeps no state.
func stateless(f func(ctx context.Context, fn policy.Func) error) func() policy.Policy {
	return func() policy.Policy { return policy.PolicyFunc(f) }
}

// slot is a policy that lets one call run at once, and whose give may be broken.
type slot struct {
	free chan struct{}
	give func(s *slot, fn func() error) error
}

func newSlot(give func(s *slot, fn func() error) error) policy.Policy {
	s := &slot{make(chan struct{}, 1), give}
	s.free <- struct{}{}
	return s
}

func (s *slot) Do(ctx context.Context, fn policy.Func) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.free:
		return s.give(s, func() error { return fn(ctx) })
	default:
		return policy.Rejection("slot", "", nil, time.Time{}, nil)
	}
}

var mutants = []mutant{
	{
		name: "runs fn under context.Background", rule: "fn runs under a context derived from the caller's",
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return fn(context.Background())
		}),
		says: "a value of the caller's context is missing",
	},
	{
		name: "keeps the values but not the end", rule: "fn runs under a context derived from the caller's",
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return fn(context.WithoutCancel(ctx))
		}),
		says: "does not end with the caller's",
	},
	{
		name: "loses values", rule: "fn runs under a context derived from the caller's",
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			return heedless(ctx, func() error { return fn(valueless{ctx}) })
		}),
		says: "a value of the caller's context is missing",
	},
	{
		name: "gives fn a context that has ended", rule: "fn runs under a context derived from the caller's",
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			return heedless(ctx, func() error {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				return fn(ctx)
			})
		}),
		says: "has ended before fn runs",
	},
	{
		name: "runs fn under a done context", rule: "a done context runs nothing",
		policy: stateless(func(ctx context.Context, fn policy.Func) error { return fn(ctx) }),
		says:   "fn runs under a context that is done already (context canceled)",
	},
	{
		name: "swallows the error of a done context", rule: "a done context runs nothing",
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			if ctx.Err() != nil {
				return nil
			}
			return fn(ctx)
		}),
		says: "under a context that is done already (context canceled) Do returned nil",
	},
	{
		name: "swallows errors", rule: "errors keep their identity",
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			return heedless(ctx, func() error { _ = fn(ctx); return nil })
		}),
		says: "where fn failed, Do returned nil",
	},
	{
		name: "replaces errors by their text", rule: "errors keep their identity",
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			return heedless(ctx, func() error {
				if err := fn(ctx); err != nil {
					return fmt.Errorf("failed: %v", err) //nolint:errorlint // that is the fault
				}
				return nil
			})
		}),
		says: `where fn returned "failure of run 1", Do returned failed: failure of run 1, in which errors.Is does not find it`,
	},
	{
		name: "invents errors", rule: "errors keep their identity",
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			return heedless(ctx, func() error { return errors.Join(fn(ctx), errors.New("surprise")) })
		}),
		says: "where fn returned nil, Do returned surprise",
	},
	{
		name: "lets a run that does not count set the value", rule: "values keep their identity",
		policy: Overlapping(stateless(func(ctx context.Context, fn policy.Func) error {
			return heedless(ctx, func() error {
				shadow := start(ctx, plain, fn) // without Fork
				time.Sleep(time.Microsecond)
				err := fn(ctx)
				<-shadow
				return err
			})
		})),
		says: "policy.Get returns the value of a run that failed, though another one decided the call",
	},
	{
		name: "runs fn twice at once", rule: "fn runs once at a time, and not after Do",
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			return heedless(ctx, func() error {
				a, b := start(ctx, plain, fn), start(ctx, plain, fn)
				<-b
				return rethrown(<-a)
			})
		}),
		says: "fn runs twice at once",
	},
	{
		name: "does not wait for fn", rule: "fn runs once at a time, and not after Do",
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			return heedless(ctx, func() error {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				select {
				case e := <-start(ctx, plain, fn):
					return rethrown(e)
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		}),
		says: "Do returns while fn still runs",
	},
	{
		name: "runs fn again when the call is over", rule: "fn runs once at a time, and not after Do",
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			return heedless(ctx, func() error {
				err := fn(ctx)
				if err != nil {
					time.AfterFunc(time.Hour, func() { _ = fn(ctx) })
				}
				return err
			})
		}),
		says: "fn starts after Do has returned",
	},
	{
		name: "lets losers run on", rule: "fn runs once at a time, and not after Do",
		policy: Overlapping(stateless(func(ctx context.Context, fn policy.Func) error {
			return heedless(ctx, func() error {
				one, keepOne := policy.Fork(ctx)
				two, keepTwo := policy.Fork(ctx)
				first, second := start(one, plain, fn), (<-chan ending)(nil)
				late := time.After(time.Second)
				for {
					select {
					case e := <-first:
						keepOne(true)
						keepTwo(false)
						return rethrown(e)
					case e := <-second:
						keepTwo(true)
						keepOne(false)
						return rethrown(e)
					case <-late:
						second = start(two, plain, fn)
					}
				}
			})
		})),
		says: "a run that goes on after Do has returned is not cancelled",
	},
	{
		name: "recovers panics", rule: "a panic reaches the caller",
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			return heedless(ctx, func() (err error) {
				defer func() {
					if r := recover(); r != nil {
						err = fmt.Errorf("panic: %v", r)
					}
				}()
				return fn(ctx)
			})
		}),
		says: "where fn panics, Do returned panic: policytest",
	},
	{
		name: "panics with another value", rule: "a panic reaches the caller",
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			return heedless(ctx, func() (err error) {
				defer func() {
					if r := recover(); r != nil {
						panic(fmt.Sprint("fn panicked: ", r))
					}
				}()
				return fn(ctx)
			})
		}),
		says: "Do panics with another value: fn panicked: ",
	},
	{
		name: "loses Goexit on another goroutine", rule: "Goexit ends the caller's goroutine",
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			return heedless(ctx, func() error {
				e := <-start(ctx, plain, fn)
				if e.panicked != nil {
					panic(e.panicked)
				}
				return e.err
			})
		}),
		says: "where fn ends its goroutine by runtime.Goexit, Do returned nil",
	},
	{
		name: "hangs on Goexit", rule: "no lock is left behind", patience: 500 * time.Millisecond,
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			return heedless(ctx, func() error {
				result := make(chan error, 1)
				over := make(chan struct{})
				time.AfterFunc(time.Second, func() { close(over) }) // so that this test leaks nothing
				go func() {
					defer func() {
						if r := recover(); r != nil {
							result <- errors.New("panic")
						}
					}()
					result <- fn(ctx)
				}()
				select {
				case err := <-result:
					return err
				case <-over:
					return errors.New("over")
				}
			})
		}),
		says: "a call that ends by Goexit does not come to an end",
	},
	{
		name: "sleeps on when its caller has gone", rule: "a cancelled call returns as soon as fn has",
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			return heedless(ctx, func() error {
				err := fn(ctx)
				if err != nil && ctx.Err() == nil {
					time.Sleep(50 * time.Millisecond)
					err = fn(ctx)
				}
				return err
			})
		}),
		says: "where fn fails at once and the caller cancels after 1ms, Do returns only 49ms later",
	},
	{
		name: "leaks a goroutine", rule: "nothing is left behind",
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			return heedless(ctx, func() error {
				go func() { time.Sleep(100 * time.Millisecond) }()
				return fn(ctx)
			})
		}),
		says: "a call that succeeds leaves a goroutine behind:\n\tgoroutine ",
	},
	{
		name: "leaks a context", rule: "nothing is left behind",
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			return heedless(ctx, func() (err error) {
				ctx, cancel := context.WithCancel(ctx)
				defer func() {
					if err == nil {
						cancel()
					}
				}()
				return fn(ctx)
			})
		}),
		says: "a call that fails leaves 1 contexts or callbacks behind",
	},
	{
		name: "leaks a callback", rule: "nothing is left behind",
		policy: stateless(func(ctx context.Context, fn policy.Func) error {
			return heedless(ctx, func() error {
				context.AfterFunc(ctx, func() {})
				return fn(ctx)
			})
		}),
		says: "a call that succeeds leaves 1 contexts or callbacks behind",
	},
	{
		name: "starts a worker with the policy", rule: "nothing is left behind",
		policy: func() policy.Policy {
			go func() { time.Sleep(100 * time.Millisecond) }()
			return policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
				return heedless(ctx, func() error { return fn(ctx) })
			})
		},
		says: "leaves a goroutine behind",
	},
	{
		name: "holds a lock while fn runs", rule: "a call gives up waiting for another when its context ends", patience: 500 * time.Millisecond,
		policy: func() policy.Policy {
			var mu sync.Mutex
			return policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
				mu.Lock()
				defer mu.Unlock()
				return heedless(ctx, func() error { return fn(ctx) })
			})
		},
		says: "does the policy hold a lock while it runs fn?",
	},
	{
		name: "waits in line whatever the caller does", rule: "a call gives up waiting for another when its context ends", patience: 500 * time.Millisecond,
		policy: func() policy.Policy {
			line := make(chan struct{}, 1)
			return policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
				line <- struct{}{}
				defer func() { <-line }()
				return heedless(ctx, func() error { return fn(ctx) })
			})
		},
		says: "neither runs, is refused, nor gives up when its context ends",
	},
	{
		name: "leaves a lock behind after a panic", rule: "no lock is left behind", patience: 500 * time.Millisecond,
		policy: func() policy.Policy {
			var locked atomic.Bool
			return policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
				for i := 0; locked.Load() && i < 100; i++ { // a lock that this test can get rid of
					time.Sleep(10 * time.Millisecond)
				}
				return heedless(ctx, func() error {
					locked.Store(true)
					err := func() error {
						done := false
						defer func() { locked.Store(!done) }()
						locked.Store(false)
						err := fn(ctx)
						done = true
						return err
					}()
					return err
				})
			})
		},
		says: "after a call that panics the next one hangs",
	},
	{
		name: "refuses the first call", rule: "a call gives up waiting for another when its context ends",
		policy: stateless(func(context.Context, policy.Func) error {
			return policy.Rejection("wall", "", nil, time.Time{}, nil)
		}),
		says: "the first call of a new policy returned wall: call rejected and did not run fn",
	},
	{
		name: "mixes up calls", rule: "calls are not mixed up",
		policy: func() policy.Policy {
			var last atomic.Pointer[error]
			return policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
				return heedless(ctx, func() error {
					err := fn(ctx)
					last.Store(&err)
					if ctx.Err() == nil {
						time.Sleep(time.Microsecond)
					}
					return *last.Load()
				})
			})
		},
		says: "one of several calls at once returned",
	},
	{
		name: "shares the result of a call that runs", rule: "calls are not mixed up",
		policy: func() policy.Policy {
			var running atomic.Bool
			return policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
				return heedless(ctx, func() error {
					if !running.CompareAndSwap(false, true) {
						return nil
					}
					defer running.Store(false)
					return fn(ctx)
				})
			})
		},
		says: "one of several calls at once returned nil, but its fn did not run",
	},
	{
		name: "keeps its permit when fn panics", rule: "what a call takes it gives back",
		policy: func() policy.Policy {
			return newSlot(func(s *slot, fn func() error) error {
				err := fn()
				s.free <- struct{}{}
				return err
			})
		},
		says: "after 100 calls of which each panics, and a day of rest, the next one returned slot: call rejected and did not run fn",
	},
	{
		name: "keeps its permit when fn fails", rule: "what a call takes it gives back",
		policy: func() policy.Policy {
			return newSlot(func(s *slot, fn func() error) error {
				failed := false
				defer func() {
					if !failed {
						s.free <- struct{}{}
					}
				}()
				err := fn()
				failed = err != nil
				return err
			})
		},
		says: "after 100 calls of which each fails",
	},
}

// heedless runs fn unless ctx is done.
func heedless(ctx context.Context, fn func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fn()
}

var plain = policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error { return fn(ctx) })

// rethrown ends as the call did.
func rethrown(e ending) error {
	switch {
	case e.panicked != nil:
		panic(e.panicked)
	case e.exited:
		_ = Goexit(context.Background())
	}
	return e.err
}

type valueless struct{ context.Context }

func (valueless) Value(any) any { return nil }

func TestBrokenPoliciesDoNotConform(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			if m.patience == 0 {
				m.patience = patience
			} else {
				t.Parallel() // it hangs, in real time
			}
			rule, faults := firstBroken(t, m.policy, m.patience)
			assert.Equal(t, m.rule, rule, "%v", faults)
			assert.Contains(t, strings.Join(faults, "\n"), m.says)
		})
	}
}

// firstBroken returns the first rule that a policy breaks, and what Conform says of it.
func firstBroken(t *testing.T, build func() policy.Policy, patience time.Duration) (name string, faults []string) {
	for _, r := range rules {
		if faults := r.check(t, settings[0].of(build), patience); len(faults) > 0 {
			return r.name, faults
		}
	}
	return "", nil
}

func TestASlotThatIsNotBrokenConforms(t *testing.T) {
	Conform(t, func() policy.Policy {
		return newSlot(func(s *slot, fn func() error) error {
			defer func() { s.free <- struct{}{} }()
			return fn()
		})
	})
}

// A panic on a goroutine that nobody watches ends the whole test binary. Then its text has to say what is wrong.
func TestAPanicOnAnotherGoroutineExplainsItself(t *testing.T) {
	if os.Getenv("POLICYTEST_CRASH") != "" {
		Conform(t, stateless(func(ctx context.Context, fn policy.Func) error {
			result := make(chan error, 1)
			go func() { result <- fn(ctx) }()
			return <-result
		}))
		return
	}
	crash := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // this very binary
	crash.Env = append(os.Environ(), "POLICYTEST_CRASH=1")
	out, err := crash.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "a panic of fn was lost: the policy runs fn on another goroutine and does not recover it there")
}
