// Package cancelkey knows the key under which package context looks for the context that Cause and children ask. It is
// private there, but a context type that ends in its own way has to answer it; asking for a cause shows it.
package cancelkey

import "context"

// Key is that key.
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
