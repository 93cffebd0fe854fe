package grpcx

import (
	"context"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/switchgear-go/switchgear/policy"
)

// StreamClientInterceptor returns an interceptor that runs each stream of a client under p, as one call from its opening to
// its end. It panics if p is nil. So a bulkhead counts the streams that are open, a timeout limits how long one may last,
// and a breaker judges how it ended: by the rules of [UnaryClientInterceptor], messages count for nothing.
//
// A stream is opened again after the same failures as a unary call, as long as nobody can tell: one on which only the server
// sends messages, until the caller has got the first message or the header; any other only if it cannot be opened. No
// message is kept but the one request of the former. Two never run beside each other, not even with [WithReplay]: a hedge
// gets a refusal for [ErrNotReplayable].
//
// The policies run on a goroutine of the stream's own until it ends: with an error or io.EOF from RecvMsg, with an error that
// is not io.EOF from SendMsg, with its context, or with the connection. As with any gRPC stream, to drop it one of these has
// to be brought about. A panic of a policy is raised by the next method that waits.
func StreamClientInterceptor(p policy.Policy) grpc.StreamClientInterceptor {
	checkPolicy("StreamClientInterceptor", p)
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		c := &streamCall{
			ctx: ctx, desc: desc, cc: cc, method: method, streamer: streamer,
			options: splitOptions(opts),
			sends:   sends{replay: replayOf(ctx)},
			opened:  make(chan struct{}),
			changed: make(chan struct{}),
			done:    make(chan struct{}),
		}
		go c.run(p)
		return c.open()
	}
}

// streamCall is one stream of a client under its policies. Methods that do not say otherwise run on the goroutine of the
// policies; clientStream is the caller's side.
type streamCall struct {
	ctx      context.Context // the caller's
	desc     *grpc.StreamDesc
	cc       *grpc.ClientConn
	method   string
	streamer grpc.Streamer
	options  callOptions
	sends    sends

	request request

	opened    chan struct{}              // closed once there was a first send
	current   atomic.Pointer[streamSend] // nil while there is none that has not ended; written under mu
	delivered atomic.Bool                // the caller has seen a message or the header; written under mu

	mu      sync.Mutex
	newest  *streamSend   // guarded by mu: that was opened
	settled *streamSend   // guarded by mu: the newest that has ended and been judged
	changed chan struct{} // guarded by mu: closed, and replaced, when there is a send to use

	concluded atomic.Bool // the end is known; err and last are written before
	err       error       // the end: io.EOF or a status
	last      *streamSend // that decided it; nil if none did

	done chan struct{} // closed when the policies have returned, and all are told; what follows is written before

	panics any
	exited bool        // by runtime.Goexit
	thrown atomic.Bool // that has reached the caller
}

// open waits until the stream is open. It runs on the caller's goroutine.
func (c *streamCall) open() (grpc.ClientStream, error) {
	select {
	case <-c.opened:
		return &clientStream{c}, nil
	case <-c.done:
	}
	if err := c.result(); !isEOF(err) {
		return nil, err
	}
	return &clientStream{c}, nil
}

// run runs the stream under p.
func (c *streamCall) run(p policy.Policy) {
	returned := false
	defer func() {
		if !returned {
			c.panics = recover()
			c.exited = c.panics == nil
			c.err = errAborted
		}
		c.sends.close()
		close(c.done)
	}()
	err := p.Do(c.ctx, c.send)
	c.sends.close()
	c.conclude(err)
	c.options.finished(eofToNil(c.err))
	returned = true
}

// conclude turns what the policies returned into how the stream ends.
func (c *streamCall) conclude(err error) {
	c.err = io.EOF
	if err != nil {
		var told *failure
		if told, c.err = clientError(c.ctx, err, &c.sends); told != nil {
			c.last, _ = told.of.(*streamSend)
		}
	} else {
		c.mu.Lock()
		c.last = c.settled
		c.mu.Unlock()
		if c.last != nil && c.last.err != nil && c.last.failure == nil {
			c.err = c.last.err // an answer
		}
	}
	c.concluded.Store(true)
	if c.last != nil {
		c.options.fill(&c.last.callMetadata)
	}
}

// send opens the stream once, for the attempt that ctx belongs to, and waits for its end.
func (c *streamCall) send(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err // it was overtaken before it began
	}
	if err := c.sends.begin(); err != nil {
		return err
	}
	own, cancel := context.WithCancel(ctx)
	s := &streamSend{call: c, finished: make(chan struct{}), ended: make(chan struct{})}
	defer func() {
		s.end(errAborted, false) // if it panics
		cancel()
		c.sends.end(s.failure)
	}()
	stream, err := c.streamer(own, c.desc, c.cc, c.method, c.options.with(grpc.OnFinish(s.finish))...)
	if err != nil {
		s.end(err, false)
	} else {
		s.stream = stream
		c.use(s)
		s.await(ctx)
	}
	if s.err == errAborted { //nolint:errorlint // the very value
		runtime.Goexit() // what panicked is the caller, and that is what policies are to see
	}
	s.settle(ctx)
	c.mu.Lock()
	c.settled = s
	c.mu.Unlock()
	if s.failure != nil {
		return s.failure
	}
	return nil
}

// use makes s the send that the caller uses. One that follows another gets what was sent on that.
func (c *streamCall) use(s *streamSend) {
	if err := c.request.replayOn(s.stream, func() { c.switchTo(s) }); err != nil {
		s.end(err, false)
	}
}

func (c *streamCall) switchTo(s *streamSend) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.newest == nil
	c.newest = s
	if !s.hasEnded() {
		c.current.Store(s)
		close(c.changed)
		c.changed = make(chan struct{})
	}
	if first {
		close(c.opened) // what the caller does now finds s
	}
}

func (c *streamCall) latest() *streamSend {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest
}

// isFinal reports whether no other send may follow s, which has ended, since the caller could tell.
func (c *streamCall) isFinal(s *streamSend) bool {
	return c.delivered.Load() || c.desc.ClientStreams && s.stream != nil
}

// usable returns the send that the caller can use now. It waits for one; nil means that the stream has ended. It runs on the
// caller's goroutines.
func (c *streamCall) usable() *streamSend {
	for {
		if s := c.current.Load(); s != nil {
			return s
		}
		c.mu.Lock()
		s, changed := c.current.Load(), c.changed
		c.mu.Unlock()
		if s != nil {
			return s
		}
		select {
		case <-changed:
		case <-c.done:
			return nil
		}
	}
}

// deliver reports whether the caller may have what came on s. Once it has, no other send follows. It runs on the caller's
// goroutines.
func (c *streamCall) deliver(s *streamSend) bool {
	if c.delivered.Load() {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.delivered.Load() && s.hasEnded() {
		return false
	}
	c.delivered.Store(true)
	return true
}

// request is what was sent on a stream on which only the server sends messages: one message, to be sent again.
type request struct {
	mu     sync.Mutex // held while it is sent, so that a send gets it once
	msg    any        // guarded by mu
	sent   bool       // guarded by mu
	closed bool       // guarded by mu: CloseSend was called
}

// replayOn sends on stream what was sent before, then calls use.
func (r *request) replayOn(stream grpc.ClientStream, use func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer use()
	if r.sent {
		if err := stream.SendMsg(r.msg); err != nil && !isEOF(err) { // after io.EOF, RecvMsg tells
			return err
		}
	}
	if r.closed {
		return stream.CloseSend()
	}
	return nil
}
