// Package cancelkey finds the private key with which package context asks a context, by Value, for the cancellable context
// it stands for. A context type with a cancellation of its own has to answer that key, so that context.Cause and derived
// contexts find its cancellation. The key is found by calling context.Cause with a context that records what it is asked.
package cancelkey

import "context"

// Key is the key.
var Key = func() any {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	spy := &spy{Context: ctx}
	_ = context.Cause(spy)
	return spy.key
}()

type spy struct {
	context.Context
	key any
}

func (s *spy) Value(key any) any {
	s.key = key
	return nil
}
