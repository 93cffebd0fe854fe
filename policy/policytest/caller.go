package policytest

import (
	"context"
	"slices"
	"sync"
)

// caller is the context of a caller that counts what waits for its end. Contexts derived from it use AfterFunc, not a goroutine.
type caller struct {
	context.Context
	done chan struct{}

	mu    sync.Mutex
	err   error     // guarded by mu
	funcs []*func() // guarded by mu
}

func newCaller() *caller {
	return &caller{Context: context.Background(), done: make(chan struct{})}
}

func (c *caller) Done() <-chan struct{} { return c.done }

func (c *caller) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// AfterFunc is what package context asks a context for that is not one of its own.
func (c *caller) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	own := &f
	c.funcs = append(c.funcs, own)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := slices.Index(c.funcs, own)
		if i < 0 {
			return false
		}
		c.funcs = slices.Delete(c.funcs, i, i+1)
		return true
	}
}

// waiting returns how many callbacks wait for the end.
func (c *caller) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.funcs)
}

func (c *caller) end(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	funcs := c.funcs
	c.funcs = nil
	close(c.done)
	c.mu.Unlock()
	for _, f := range funcs {
		go (*f)()
	}
}
