package grpcx_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/grpcx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/retry"
)

// inBubble runs a test whose client and server share a clock that moves when both wait.
func inBubble(t *testing.T, s *service, p policy.Policy, test func(t *testing.T, conn *grpc.ClientConn), below ...grpc.StreamClientInterceptor) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(1 << 16)
		server := grpc.NewServer(grpc.WaitForHandlers(true))
		server.RegisterService(&serviceDesc, s)
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		conn, err := grpc.NewClient("passthrough:bufconn",
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
			grpc.WithUnaryInterceptor(grpcx.UnaryClientInterceptor(p)),
			grpc.WithStreamInterceptor(grpcx.StreamClientInterceptor(p)),
			grpc.WithChainStreamInterceptor(below...))
		require.NoError(t, err)
		defer func() {
			_ = conn.Close() // the test may have done that
			server.Stop()
			check(t, <-served)
		}()
		test(t, conn)
	})
}

func TestATimeoutLimitsTheWholeStream(t *testing.T) {
	srv := &service{list: func(_ *text, s grpc.ServerStream) error {
		for i := 0; ; i++ {
			if err := s.SendMsg(number(i)); err != nil {
				return err
			}
			time.Sleep(time.Second)
		}
	}}
	dependency := breaker.New("test", breaker.Config{Consecutive: 1})
	inBubble(t, srv, policy.NewPipeline("test", dependency, policy.Timeout(9500*time.Millisecond)), func(t *testing.T, conn *grpc.ClientConn) {
		s, err := list(t.Context(), conn, "")
		require.NoError(t, err)
		got, err := receiveAll(s)
		requireCode(t, codes.DeadlineExceeded, err)
		require.ErrorIs(t, err, policy.ErrTimeout)
		assert.Len(t, got, 10)
		assert.Equal(t, breaker.Open, dependency.State())
		assert.Empty(t, s.Trailer())
	})
}

func TestATimeoutOfAnAttemptRepeatsAStreamOnlyWithReplay(t *testing.T) {
	for _, replay := range []bool{false, true} {
		var n atomic.Int64
		srv := &service{list: func(in *text, s grpc.ServerStream) error {
			if n.Add(1) == 1 {
				<-s.Context().Done() // hangs
				return s.Context().Err()
			}
			return s.SendMsg(in)
		}}
		inBubble(t, srv, policy.NewPipeline("test", attempts(2), policy.Timeout(time.Second)), func(t *testing.T, conn *grpc.ClientConn) {
			ctx := t.Context()
			if replay {
				ctx = grpcx.WithReplay(ctx, true)
			}
			s, err := list(ctx, conn, "hello")
			require.NoError(t, err)
			got, err := receiveAll(s)
			if replay {
				require.NoError(t, err)
				assert.Equal(t, []string{"hello"}, got)
			} else {
				requireCode(t, codes.DeadlineExceeded, err)
				require.ErrorIs(t, err, policy.ErrTimeout)
			}
		})
	}
}

func TestTimeoutsOpenABreaker(t *testing.T) {
	for name, srv := range map[string]*service{
		"of ours":       {say: func(ctx context.Context, _ *text) (*text, error) { <-ctx.Done(); return nil, ctx.Err() }},
		"of the server": saying(codes.DeadlineExceeded),
	} {
		dependency := breaker.New("test", breaker.Config{Consecutive: 5})
		inBubble(t, srv, policy.NewPipeline("test", dependency, policy.Timeout(time.Second)), func(t *testing.T, conn *grpc.ClientConn) {
			for i := range 5 {
				require.Equal(t, breaker.Closed, dependency.State(), "%s: call %d", name, i)
				_, err := say(t.Context(), conn, "")
				requireCode(t, codes.DeadlineExceeded, err)
				require.Equal(t, name == "of ours", errors.Is(err, policy.ErrTimeout), "%s: %v", name, err)
			}
			require.Equal(t, breaker.Open, dependency.State(), name)
			_, err := say(t.Context(), conn, "")
			requireCode(t, codes.Unavailable, err)
		})
	}
}

func TestOurOwnClockTellsWhoseTimeoutItWas(t *testing.T) {
	answer := func(early time.Duration) func(context.Context) error {
		return func(ctx context.Context) error {
			deadline, _ := ctx.Deadline()
			time.Sleep(time.Until(deadline) - early)
			return status.Error(codes.DeadlineExceeded, "the client's deadline has passed")
		}
	}
	for _, row := range []struct {
		early time.Duration
		ours  bool
	}{
		{5 * time.Millisecond, true},   // the server's clock is a little fast
		{time.Second, false},           // it speaks of a deadline of its own
		{-time.Millisecond, true},      // too late anyway
		{11 * time.Millisecond, false}, // just too early
	} {
		for kind, call := range callers {
			inBubble(t, handling(answer(row.early)), policy.Timeout(10*time.Second), func(t *testing.T, conn *grpc.ClientConn) {
				err := call(t.Context(), conn)
				requireCode(t, codes.DeadlineExceeded, err)
				require.Equal(t, row.ours, errors.Is(err, policy.ErrTimeout), "%s, %v early: %v", kind, row.early, err)
			})
		}
	}
}

func TestARetryWaitsAsLongAsTheServerAsks(t *testing.T) {
	next := turns(status.Error(codes.Unavailable, "busy"), nil)
	srv := &service{say: func(ctx context.Context, in *text) (*text, error) {
		if err := next(); err != nil {
			return nil, errors.Join(err, grpc.SetTrailer(ctx, pushback("7000")))
		}
		return in, nil
	}}
	p := retry.New(retry.Config{BackOff: instantly, Budget: retry.Unlimited})
	inBubble(t, srv, p, func(t *testing.T, conn *grpc.ClientConn) {
		start := time.Now()
		_, err := say(t.Context(), conn, "")
		require.NoError(t, err)
		assert.Equal(t, 7*time.Second, time.Since(start).Truncate(time.Second))
	})
}

func TestATimeoutStandsBeforeWhatItCutShort(t *testing.T) {
	patient := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		err := fn(ctx)
		<-ctx.Done()
		return err
	})
	inBubble(t, saying(codes.Unavailable), policy.NewPipeline("test", policy.Timeout(time.Second), patient), func(t *testing.T, conn *grpc.ClientConn) {
		_, err := say(t.Context(), conn, "")
		requireCode(t, codes.DeadlineExceeded, err)
		require.ErrorIs(t, err, policy.ErrTimeout)
	})
}

func TestAnInterceptorBelowMayGoOnWithAnotherStream(t *testing.T) {
	for _, end := range []string{"received", "left alone"} {
		next := turns(status.Error(codes.Aborted, "not yet"), nil)
		srv := &service{list: func(_ *text, s grpc.ServerStream) error {
			if err := next(); err != nil {
				return err
			}
			for i := range 3 {
				if err := s.SendMsg(number(i)); err != nil {
					return err
				}
				time.Sleep(time.Second)
			}
			if end == "left alone" {
				<-s.Context().Done()
			}
			return nil
		}}
		room := bulkhead.New("test", bulkhead.Config{Max: 1})
		inBubble(t, srv, policy.NewPipeline("test", attempts(1), room), func(t *testing.T, conn *grpc.ClientConn) {
			s, err := list(context.WithoutCancel(t.Context()), conn, "")
			require.NoError(t, err)
			for i := range 3 {
				m := new(text)
				require.NoError(t, s.RecvMsg(m))
				assert.Equal(t, number(i).GetValue(), m.GetValue())
				synctest.Wait() // the end of the first one has been looked into
			}
			assert.EqualValues(t, 2, srv.calls.Load())
			assert.Equal(t, 1, room.Stats().Running)
			if end == "received" {
				require.ErrorIs(t, s.RecvMsg(new(text)), io.EOF)
			} else {
				require.NoError(t, conn.Close())
				synctest.Wait()
			}
			assert.Zero(t, room.Stats().Running)
		}, reopen)
	}
}

// reopen starts a stream again by itself after Aborted.
func reopen(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	return &reopening{ClientStream: s, again: func() (grpc.ClientStream, error) { return streamer(ctx, desc, cc, method, opts...) }}, nil
}

type reopening struct {
	grpc.ClientStream
	again func() (grpc.ClientStream, error)
}

func (r *reopening) RecvMsg(m any) error {
	err := r.ClientStream.RecvMsg(m)
	if status.Code(err) != codes.Aborted {
		return err
	}
	s, err := r.again()
	if err != nil {
		return err
	}
	r.ClientStream = s
	if err := s.SendMsg(new(text)); err != nil {
		return err
	}
	return s.RecvMsg(m)
}

// A message that comes as its attempt is cut short, and another one has begun, is not the other one's.
func TestAMessageOfAnAttemptThatIsOverIsDropped(t *testing.T) {
	var n atomic.Int64
	srv := &service{list: func(_ *text, s grpc.ServerStream) error {
		return s.SendMsg(number(int(n.Add(1))))
	}}
	var second chan struct{} // of the bubble
	hold := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := streamer(ctx, desc, cc, method, opts...)
		if policy.Attempt(ctx) == 2 {
			close(second)
			return s, err
		}
		return &held{s, second}, err
	}
	inBubble(t, srv, policy.NewPipeline("test", attempts(2), policy.Timeout(time.Second)), func(t *testing.T, conn *grpc.ClientConn) {
		second = make(chan struct{})
		s, err := list(grpcx.WithReplay(t.Context(), true), conn, "")
		require.NoError(t, err)
		got, err := receiveAll(s)
		require.NoError(t, err)
		assert.Equal(t, []string{"2"}, got)
	}, hold)
}

// held is a stream that hands its messages over late.
type held struct {
	grpc.ClientStream
	until chan struct{}
}

func (h *held) RecvMsg(m any) error {
	err := h.ClientStream.RecvMsg(m)
	<-h.until
	return err
}
