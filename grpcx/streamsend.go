package grpcx

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// streamSend is one opening of a stream, up to its end. Its methods that wait for the server run on the caller's goroutines,
// those that judge on that of the policies.
type streamSend struct {
	call   *streamCall
	stream grpc.ClientStream // nil if it could not be opened

	receiving  sync.Mutex // held in RecvMsg
	finishOnce sync.Once
	finished   chan struct{} // closed when gRPC says that it has finished a stream; what follows is written before
	finishErr  error

	endOnce sync.Once
	ended   chan struct{} // closed when the send has ended; what follows is written before
	err     error         // nil for io.EOF
	read    bool          // it was received to its end, so that the trailer is there

	callMetadata
	failure *failure // what policies see of it; nil if they see none
}

var errAborted = status.Error(codes.Internal, "grpcx: the stream was ended by a panic")

func (s *streamSend) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// end ends the send, and reports whether it had not ended before.
func (s *streamSend) end(err error, read bool) (now bool) {
	s.endOnce.Do(func() {
		s.err, s.read, now = eofToNil(err), read, true
		s.call.mu.Lock()
		defer s.call.mu.Unlock()
		s.call.current.CompareAndSwap(s, nil)
		close(s.ended)
	})
	return now
}

// finish is called by gRPC when it has finished a stream.
func (s *streamSend) finish(err error) {
	s.finishOnce.Do(func() {
		s.finishErr = err
		close(s.finished)
	})
}

// await waits for the end. As a rule the caller receives it. But an end that the connection brings about has to be seen here,
// should the caller have left the stream alone.
func (s *streamSend) await(ctx context.Context) {
	look := (<-chan struct{})(s.finished)
	for {
		select {
		case <-s.ended:
			return
		case <-ctx.Done():
			s.end(ctx.Err(), false)
			return
		case <-look:
			look = s.lookForEnd()
		}
	}
}

// lookForEnd ends the send if its stream is over, or returns when to look again. That gRPC has finished a stream is not enough
// to know: an interceptor in between may go on with another one, which it changes to in RecvMsg.
func (s *streamSend) lookForEnd() (again <-chan struct{}) {
	s.receiving.Lock()
	defer s.receiving.Unlock()
	if s.hasEnded() {
		return nil
	}
	if ctx := s.stream.Context(); ctx.Err() == nil {
		return ctx.Done()
	}
	err := s.stream.RecvMsg(new(emptypb.Empty))
	s.end(cmp.Or(err, s.finishErr), err != nil) // or it is over, and has a message
	return nil
}

// settle judges the end.
func (s *streamSend) settle(ctx context.Context) {
	if s.read {
		s.trailer = s.stream.Trailer()
		if s.call.options.wants() {
			s.header, _ = s.stream.Header()
			if p, ok := peer.FromContext(s.stream.Context()); ok {
				s.peer = *p
			}
		}
	}
	awaitDeadline(ctx, s.err)
	s.failure = s.call.sends.failure(ctx, s.err, s.trailer, s)
	if s.failure != nil && s.call.isFinal(s) {
		s.failure.final = true
	}
}

// recv receives a message, and ends the send if there is none.
func (s *streamSend) recv(m any) error {
	s.receiving.Lock()
	defer s.receiving.Unlock()
	if s.hasEnded() {
		return errEnded
	}
	returned := false
	defer s.abortUnless(&returned)
	err := s.stream.RecvMsg(m)
	returned = true
	if err != nil {
		s.end(err, true)
	}
	return err
}

var errEnded = errors.New("grpcx: the stream has ended")

// awaitHeader waits for the header, and ends the send if there is none.
func (s *streamSend) awaitHeader() metadata.MD {
	md, err := s.tryHeader()
	switch {
	case err != nil && !isEOF(err):
		s.end(err, false)
	case md == nil && s.recv(new(emptypb.Empty)) == nil: // which tells how the stream ended
		s.end(status.Error(codes.Internal, "grpcx: a message came without a header"), false)
	}
	return md
}

func (s *streamSend) tryHeader() (metadata.MD, error) {
	returned := false
	defer s.abortUnless(&returned)
	md, err := s.stream.Header()
	returned = true
	return md, err
}

// sendMsg sends a message, and ends the send if that fails by a fault of the message.
func (s *streamSend) sendMsg(m any) error {
	returned := false
	defer s.abortUnless(&returned)
	err := s.stream.SendMsg(m)
	returned = true
	if err != nil && !isEOF(err) {
		s.end(err, false)
	}
	return err
}

func (s *streamSend) closeSend() error {
	returned := false
	defer s.abortUnless(&returned)
	err := s.stream.CloseSend()
	returned = true
	return err
}

// abortUnless ends the send if the caller's goroutine panics, or exits, inside gRPC or another interceptor. The policies have
// settled that before it goes on.
func (s *streamSend) abortUnless(returned *bool) {
	if *returned {
		return
	}
	s.call.thrown.Store(true) // it goes on by itself
	if s.end(errAborted, false) {
		<-s.call.done
	}
}

func eofToNil(err error) error {
	if isEOF(err) {
		return nil
	}
	return err
}

// isEOF reports whether err is the io.EOF of a stream, which nobody wraps.
func isEOF(err error) bool { return err == io.EOF } //nolint:errorlint // as gRPC has it
