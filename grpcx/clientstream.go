package grpcx

import (
	"context"
	"io"
	"runtime"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// clientStream is the caller's side of a stream. As with any stream of gRPC, one goroutine may send while another receives.
type clientStream struct{ call *streamCall }

var _ grpc.ClientStream = (*clientStream)(nil)

// RecvMsg receives a message, or returns how the stream ended: by then the policies have judged it.
func (c *clientStream) RecvMsg(m any) error {
	for {
		s := c.call.usable()
		if s == nil {
			return c.call.result()
		}
		if s.recv(m) != nil || !c.call.deliver(s) {
			continue
		}
		if c.call.desc.ServerStreams {
			return nil
		}
		s.end(nil, true) // there is only one message
		return eofToNil(c.call.result())
	}
}

// Header waits for the header. It returns nil if the stream has ended without, as gRPC's does.
func (c *clientStream) Header() (metadata.MD, error) {
	for {
		s := c.call.usable()
		if s == nil {
			_ = c.call.result() // RecvMsg tells it
			if last := c.call.last; last != nil && last.read {
				return last.stream.Header()
			}
			return nil, nil
		}
		if md := s.awaitHeader(); md != nil && c.call.deliver(s) {
			return md, nil
		}
	}
}

// SendMsg sends a message. What a stream on which only the server sends is asked is kept, to be sent again.
func (c *clientStream) SendMsg(m any) error {
	if !c.call.desc.ClientStreams {
		return c.call.sendRequest(m)
	}
	s := c.call.current.Load()
	if s == nil {
		return io.EOF
	}
	err := s.sendMsg(m)
	if err == nil || isEOF(err) {
		return err
	}
	return c.call.result()
}

// CloseSend ends the sending.
func (c *clientStream) CloseSend() error {
	r := &c.call.request
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if s := c.call.current.Load(); s != nil {
		return s.closeSend()
	}
	return nil
}

// Trailer returns the trailer once the stream has ended.
func (c *clientStream) Trailer() metadata.MD {
	if !c.call.concluded.Load() || c.call.last == nil {
		return nil
	}
	return c.call.last.trailer
}

// Context returns the stream's context.
func (c *clientStream) Context() context.Context {
	if s := c.call.latest(); s != nil {
		return s.stream.Context()
	}
	return c.call.ctx
}

// sendRequest sends the only message that there is to send.
func (c *streamCall) sendRequest(m any) error {
	if err := c.trySendRequest(m); err != nil && c.usable() == nil {
		return c.result()
	}
	return nil // where another send goes on, that has sent it
}

func (c *streamCall) trySendRequest(m any) error {
	c.request.mu.Lock()
	defer c.request.mu.Unlock()
	if !c.request.sent {
		c.request.msg, c.request.sent = m, true
	}
	s := c.current.Load()
	if s == nil {
		return nil // the next one sends it, or RecvMsg tells why there is none
	}
	if err := s.sendMsg(m); !isEOF(err) {
		return err
	}
	return nil
}

// result waits for the policies and returns how the stream ended. A panic of theirs, or Goexit, goes on here, once.
func (c *streamCall) result() error {
	<-c.done
	if (c.exited || c.panics != nil) && !c.thrown.Swap(true) {
		if c.exited {
			runtime.Goexit()
		}
		panic(c.panics)
	}
	return c.err
}
