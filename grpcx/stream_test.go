package grpcx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/grpcx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/retry"
)

func TestAServersStreamIsRepeatedUntilItsFirstMessage(t *testing.T) {
	for name, row := range map[string]struct {
		code   codes.Code
		before int  // messages before the failure
		header bool // sent by the server before it fails
		replay *bool
		sends  int
	}{
		"at once":                             {code: codes.Unavailable, sends: 3},
		"overloaded":                          {code: codes.ResourceExhausted, sends: 3},
		"at once, not unserved":               {code: codes.Internal, sends: 1},
		"at once, with replay":                {code: codes.Internal, replay: new(true), sends: 3},
		"at once, without replay":             {code: codes.Unavailable, replay: new(false), sends: 1},
		"an answer":                           {code: codes.NotFound, sends: 1},
		"after a header that nobody has seen": {code: codes.Unavailable, header: true, sends: 3},
		"after a message":                     {code: codes.Unavailable, before: 1, sends: 1},
		"after messages, with replay":         {code: codes.Unavailable, before: 5, replay: new(true), sends: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var asked sync.Map
			srv := &service{list: func(in *text, s grpc.ServerStream) error {
				asked.Store(in.GetValue(), true)
				if row.header {
					check(t, s.SendHeader(metadata.Pairs("a", "b")))
				}
				for i := range row.before {
					check(t, s.SendMsg(number(i)))
				}
				return status.Error(row.code, "broken")
			}}
			ctx := t.Context()
			if row.replay != nil {
				ctx = grpcx.WithReplay(ctx, *row.replay)
			}
			s, err := list(ctx, dial(t, serve(t, srv), attempts(3)), "all of it")
			require.NoError(t, err)
			got, err := receiveAll(s)
			requireCode(t, row.code, err)
			assert.Len(t, got, row.before)
			assert.EqualValues(t, row.sends, srv.calls.Load())
			_, ok := asked.Load("all of it")
			assert.True(t, ok)
			again := s.RecvMsg(new(text))
			assert.Equal(t, err, again, "it stays ended")
		})
	}
}

func TestARepeatedStreamIsWhole(t *testing.T) {
	next := turns(status.Error(codes.Unavailable, "starting"), status.Error(codes.Unavailable, "starting"), nil)
	var asked []string
	srv := &service{list: func(in *text, s grpc.ServerStream) error {
		asked = append(asked, in.GetValue())
		if err := next(); err != nil {
			return err
		}
		s.SetTrailer(metadata.Pairs("served", strconv.Itoa(len(asked))))
		for i := range 100 {
			if err := s.SendMsg(number(i)); err != nil {
				return err
			}
		}
		return nil
	}}
	l := &ledger{}
	dependency := breaker.New("test", breaker.Config{})
	p := policy.NewPipeline("test", policy.Timeout(time.Minute), attempts(3), dependency).Observed(l)
	var trailer, header metadata.MD
	var from peer.Peer
	var finished []error
	addr := serve(t, srv)
	s, err := list(t.Context(), dial(t, addr, p), "numbers", grpc.Trailer(&trailer), grpc.Header(&header), grpc.Peer(&from),
		grpc.OnFinish(func(err error) { finished = append(finished, err) }))
	require.NoError(t, err)
	got, err := receiveAll(s)
	require.NoError(t, err)
	require.Len(t, got, 100)
	assert.Equal(t, "99", got[99])
	assert.Equal(t, []string{"numbers", "numbers", "numbers"}, asked, "each was asked the same")
	assert.Equal(t, []string{"3"}, s.Trailer().Get("served"))
	assert.Equal(t, []string{"3"}, trailer.Get("served"))
	assert.NotNil(t, header)
	assert.Equal(t, addr, from.Addr.String())
	assert.Equal(t, []error{nil}, finished)
	assert.Equal(t, map[string]int64{"recovered": 1}, l.counts("switchgear.retry.calls"))
	stats := dependency.Stats()
	assert.Equal(t, 3, stats.Calls)
	assert.Equal(t, 2, stats.Failed, "the one that ended well is a success, though its own context has ended")
	after, err := s.Header()
	require.NoError(t, err)
	assert.Equal(t, header, after)
}

func TestAHeaderThatWasSeenEndsTheRepeating(t *testing.T) {
	next := turns(status.Error(codes.Unavailable, "starting"), nil)
	srv := &service{list: func(_ *text, s grpc.ServerStream) error {
		if err := next(); err != nil {
			return err // without a header
		}
		check(t, s.SendHeader(metadata.Pairs("a", "b")))
		return status.Error(codes.Unavailable, "broken")
	}}
	s, err := list(t.Context(), dial(t, serve(t, srv), attempts(5)), "")
	require.NoError(t, err)
	header, err := s.Header()
	require.NoError(t, err)
	assert.Equal(t, []string{"b"}, header.Get("a"))
	requireCode(t, codes.Unavailable, s.RecvMsg(new(text)))
	assert.EqualValues(t, 2, srv.calls.Load())
}

func TestAStreamThatEndsWithoutAHeaderHasNone(t *testing.T) {
	srv := &service{list: func(*text, grpc.ServerStream) error { return status.Error(codes.NotFound, "no such list") }}
	s, err := list(t.Context(), dial(t, serve(t, srv), attempts(5)), "")
	require.NoError(t, err)
	header, err := s.Header()
	require.NoError(t, err)
	assert.Nil(t, header)
	requireCode(t, codes.NotFound, s.RecvMsg(new(text)))
}

func TestAPushbackToAStreamIsHeeded(t *testing.T) {
	srv := &service{list: func(_ *text, s grpc.ServerStream) error {
		s.SetTrailer(pushback("-1"))
		return status.Error(codes.Unavailable, "leave me alone")
	}}
	conn := dial(t, serve(t, srv), attempts(5))
	s, err := list(t.Context(), conn, "")
	require.NoError(t, err)
	requireCode(t, codes.Unavailable, s.RecvMsg(new(text)))
	s, err = list(t.Context(), conn, "")
	require.NoError(t, err)
	header, err := s.Header() // which finds the end first
	require.NoError(t, err)
	assert.Nil(t, header)
	requireCode(t, codes.Unavailable, s.RecvMsg(new(text)))
	assert.EqualValues(t, 2, srv.calls.Load())
}

func TestAStreamOnWhichTheClientSendsIsRepeatedOnlyAtItsOpening(t *testing.T) {
	srv := &service{
		chat:   func(grpc.ServerStream) error { return status.Error(codes.Unavailable, "broken") },
		gather: func(grpc.ServerStream) error { return status.Error(codes.Unavailable, "broken") },
	}
	addr := serve(t, srv)
	for method, desc := range map[string]*grpc.StreamDesc{methodChat: chatDesc, methodGather: gatherDesc} {
		for _, ctx := range []context.Context{t.Context(), grpcx.WithReplay(t.Context(), true)} {
			srv.calls.Store(0)
			opening := turns(status.Error(codes.Unavailable, "no connection"), status.Error(codes.Unavailable, "no connection"), nil)
			var opened atomic.Int64
			open := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				opened.Add(1)
				if err := opening(); err != nil {
					return nil, err
				}
				return streamer(ctx, desc, cc, method, opts...)
			}
			refused := &seen{}
			conn := dial(t, addr, nil, grpc.WithChainStreamInterceptor(grpcx.StreamClientInterceptor(policy.NewPipeline("test", attempts(9), again(2), refused)), open))
			s, err := conn.NewStream(ctx, desc, method)
			require.NoError(t, err)
			for err = error(nil); err == nil; {
				err = s.SendMsg(wrapperspb.String("hello"))
			}
			require.ErrorIs(t, err, io.EOF)
			requireCode(t, codes.Unavailable, s.RecvMsg(new(text)))
			require.ErrorIs(t, s.SendMsg(new(text)), io.EOF)
			require.NoError(t, s.CloseSend())
			assert.EqualValues(t, 3, opened.Load())
			assert.EqualValues(t, 1, srv.calls.Load())
			last := refused.all()
			require.ErrorIs(t, last[len(last)-1], grpcx.ErrNotReplayable)
		}
	}
}

func TestStreamsOfAllKindsEndWell(t *testing.T) {
	addr := serve(t, &service{})
	l := &ledger{}
	dependency := breaker.New("test", breaker.Config{Observer: l})
	conn := dial(t, addr, policy.NewPipeline("test", attempts(3), dependency))

	s, err := conn.NewStream(t.Context(), gatherDesc, methodGather)
	require.NoError(t, err)
	for i := range 3 {
		require.NoError(t, s.SendMsg(number(i)))
	}
	require.NoError(t, s.CloseSend())
	reply := new(text)
	require.NoError(t, s.RecvMsg(reply))
	assert.Equal(t, "0 1 2", reply.GetValue())
	assert.Equal(t, map[string]int64{"closed success": 1}, l.counts("switchgear.circuit_breaker.calls"), "its one message is its end")

	s, err = conn.NewStream(t.Context(), chatDesc, methodChat)
	require.NoError(t, err)
	for i := range 3 {
		require.NoError(t, s.SendMsg(number(i)))
		require.NoError(t, s.RecvMsg(reply))
		assert.Equal(t, strconv.Itoa(i), reply.GetValue())
	}
	assert.Equal(t, map[string]int64{"closed success": 1}, l.counts("switchgear.circuit_breaker.calls"), "it runs")
	require.NoError(t, s.CloseSend())
	require.ErrorIs(t, s.RecvMsg(reply), io.EOF)
	assert.Equal(t, map[string]int64{"closed success": 2}, l.counts("switchgear.circuit_breaker.calls"))

	s, err = conn.NewStream(t.Context(), &grpc.StreamDesc{StreamName: "Say"}, methodSay) // as proxies make unary calls
	require.NoError(t, err)
	require.NoError(t, s.SendMsg(wrapperspb.String("unary")))
	require.NoError(t, s.CloseSend())
	require.NoError(t, s.RecvMsg(reply))
	assert.Equal(t, "unary", reply.GetValue())
	require.ErrorIs(t, s.RecvMsg(reply), io.EOF)
}

func TestAPermitIsHeldUntilTheStreamsEnd(t *testing.T) {
	room := bulkhead.New("test", bulkhead.Config{Max: 1})
	conn := dial(t, serve(t, &service{}), room)
	s, err := conn.NewStream(t.Context(), chatDesc, methodChat)
	require.NoError(t, err)
	assert.Equal(t, 1, room.Stats().Running)
	_, err = conn.NewStream(t.Context(), chatDesc, methodChat)
	requireCode(t, codes.ResourceExhausted, err)
	require.ErrorIs(t, err, bulkhead.ErrFull)
	require.NoError(t, s.CloseSend())
	require.ErrorIs(t, s.RecvMsg(new(text)), io.EOF)
	assert.Zero(t, room.Stats().Running, "given back by the time that the caller knows")
	s, err = conn.NewStream(t.Context(), chatDesc, methodChat)
	require.NoError(t, err)
	require.NoError(t, s.CloseSend())
	require.ErrorIs(t, s.RecvMsg(new(text)), io.EOF)
}

func TestAnAbandonedStreamLeavesNothing(t *testing.T) {
	held := &service{
		list: func(_ *text, s grpc.ServerStream) error { <-s.Context().Done(); return nil },
		chat: func(s grpc.ServerStream) error { <-s.Context().Done(); return nil },
	}
	addr := serve(t, held) // which looks for goroutines afterwards
	room := bulkhead.New("test", bulkhead.Config{Max: 100})
	l := &ledger{}
	dependency := breaker.New("test", breaker.Config{Consecutive: 1, Observer: l})
	p := policy.NewPipeline("test", attempts(3), dependency, room, policy.Timeout(time.Hour))

	t.Run("whose context is canceled", func(t *testing.T) {
		conn := dial(t, addr, p)
		before := runtime.NumGoroutine()
		ctx, cancel := context.WithCancel(t.Context())
		finished := make(chan error, 20)
		for i := range 20 {
			var err error
			if i%2 == 0 {
				_, err = list(ctx, conn, "", grpc.OnFinish(func(err error) { finished <- err }))
			} else {
				_, err = conn.NewStream(ctx, chatDesc, methodChat, grpc.OnFinish(func(err error) { finished <- err }))
			}
			require.NoError(t, err)
		}
		assert.Equal(t, 20, room.Stats().Running)
		cancel()
		for range 20 {
			requireCode(t, codes.Canceled, <-finished)
		}
		assert.Zero(t, room.Stats().Running)
		require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+10 }, eventually, time.Millisecond)
	})
	t.Run("whose connection is closed", func(t *testing.T) {
		conn := dial(t, addr, p)
		finished := make(chan error, 2)
		for _, desc := range []*grpc.StreamDesc{listDesc, chatDesc} {
			_, err := conn.NewStream(context.Background(), desc, "/test.Echo/"+desc.StreamName, grpc.OnFinish(func(err error) { finished <- err }))
			require.NoError(t, err)
		}
		require.NoError(t, conn.Close())
		for range 2 {
			require.Error(t, <-finished)
		}
		assert.Zero(t, room.Stats().Running)
	})
	assert.EqualValues(t, 20, l.counts("switchgear.circuit_breaker.calls")["closed ignored"])
}

func TestAStreamThatIsCanceledWhileItWaits(t *testing.T) {
	began := make(chan struct{})
	srv := &service{list: func(_ *text, s grpc.ServerStream) error { close(began); <-s.Context().Done(); return nil }}
	l := &ledger{}
	dependency := breaker.New("test", breaker.Config{Consecutive: 1, Observer: l})
	ctx, cancel := context.WithCancel(t.Context())
	s, err := list(ctx, dial(t, serve(t, srv), policy.NewPipeline("test", attempts(3), dependency)), "")
	require.NoError(t, err)
	go func() { <-began; cancel() }()
	requireCode(t, codes.Canceled, s.RecvMsg(new(text)))
	assert.EqualValues(t, 1, l.counts("switchgear.circuit_breaker.calls")["closed ignored"])
	assert.EqualValues(t, 1, srv.calls.Load())
	header, err := s.Header()
	require.NoError(t, err)
	assert.Nil(t, header)
}

func TestAHedgeDoesNotOpenASecondStream(t *testing.T) {
	release := make(chan struct{})
	srv := &service{list: func(in *text, s grpc.ServerStream) error { <-release; return s.SendMsg(in) }}
	watch := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		err := fn(ctx)
		if errors.Is(err, grpcx.ErrNotReplayable) {
			close(release)
		}
		return err
	})
	p := policy.NewPipeline("test", retry.NewHedge(retry.HedgeConfig{Delay: time.Millisecond}), watch)
	s, err := list(grpcx.WithReplay(t.Context(), true), dial(t, serve(t, srv), p), "once")
	require.NoError(t, err)
	got, err := receiveAll(s)
	require.NoError(t, err)
	assert.Equal(t, []string{"once"}, got)
	assert.EqualValues(t, 1, srv.calls.Load())
}

func TestAFallbackEndsAStreamWell(t *testing.T) {
	nothing := policy.Fallback(func(context.Context, error) error { return nil })
	srv := &service{list: func(*text, grpc.ServerStream) error { return status.Error(codes.Unavailable, "broken") }}
	open := breaker.New("test", breaker.Config{})
	open.Trip()
	addr := serve(t, srv)
	for _, p := range []policy.Policy{nothing, policy.NewPipeline("test", nothing, open)} {
		s, err := list(t.Context(), dial(t, addr, p), "")
		require.NoError(t, err)
		got, err := receiveAll(s)
		require.NoError(t, err)
		assert.Empty(t, got)
		assert.NotNil(t, s.Context())
		_, err = s.Header()
		require.NoError(t, err)
	}
	assert.EqualValues(t, 1, srv.calls.Load())
}

// broken is a client's stream that panics, or exits, where it is told to.
type broken struct {
	grpc.ClientStream
	where string
	how   func()
}

func (b *broken) at(where string) {
	if b.where == where {
		b.how()
	}
}

func (b *broken) RecvMsg(m any) error          { b.at("RecvMsg"); return b.ClientStream.RecvMsg(m) }
func (b *broken) SendMsg(m any) error          { b.at("SendMsg"); return b.ClientStream.SendMsg(m) }
func (b *broken) CloseSend() error             { b.at("CloseSend"); return b.ClientStream.CloseSend() }
func (b *broken) Header() (metadata.MD, error) { b.at("Header"); return b.ClientStream.Header() }

type panicValue struct{ string }

func TestAPanicInAStreamReachesTheCaller(t *testing.T) {
	addr := serve(t, &service{})
	for _, where := range []string{"open", "RecvMsg", "SendMsg", "CloseSend", "Header", "policy", "Goexit", "policy's Goexit"} {
		for _, desc := range []*grpc.StreamDesc{listDesc, chatDesc} {
			t.Run(where+" of "+desc.StreamName, func(t *testing.T) {
				dependency := breaker.New("test", breaker.Config{Consecutive: 1})
				room := bulkhead.New("test", bulkhead.Config{Max: 1})
				explode := func() { panic(panicValue{where}) }
				if strings.HasSuffix(where, "Goexit") {
					explode = runtime.Goexit
				}
				opened := 0
				bomb := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
					opened++
					if where == "open" {
						explode()
					}
					s, err := streamer(ctx, desc, cc, method, opts...)
					return &broken{s, map[bool]string{true: "RecvMsg", false: where}[where == "Goexit"], explode}, err
				}
				late := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
					err := fn(ctx)
					if strings.HasPrefix(where, "policy") {
						explode()
					}
					return err
				})
				conn := dial(t, addr, nil, grpc.WithChainStreamInterceptor(
					grpcx.StreamClientInterceptor(policy.NewPipeline("test", dependency, attempts(3), room, late)), bomb))

				var raised any
				var after grpc.ClientStream
				done := make(chan bool)
				go func() {
					finished := false
					defer func() { raised = recover(); done <- finished }()
					s, err := conn.NewStream(grpcx.WithReplay(t.Context(), true), desc, "/test.Echo/"+desc.StreamName)
					after = s
					if assert.NoError(t, err) && assert.NoError(t, s.SendMsg(new(text))) && assert.NoError(t, s.CloseSend()) {
						_, _ = s.Header()
						_, _ = receiveAll(s)
					}
					finished = true
				}()
				assert.False(t, <-done)
				assert.Equal(t, 1, opened, "nobody waits for another one")
				if strings.HasSuffix(where, "Goexit") {
					assert.Nil(t, raised)
				} else {
					assert.Equal(t, panicValue{where}, raised)
				}
				assert.Equal(t, breaker.Open, dependency.State(), "a panic is a failure")
				assert.Zero(t, room.Stats().Running)
				if after != nil {
					requireCode(t, codes.Internal, after.RecvMsg(new(text))) // it is raised once
				}
			})
		}
	}
}

func TestAPanicInAStreamThatWasLeftAloneWaitsForTheCaller(t *testing.T) {
	bomb := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := streamer(ctx, desc, cc, method, opts...)
		return &broken{s, "RecvMsg", func() { panic(panicValue{"alone"}) }}, err
	}
	dependency := breaker.New("test", breaker.Config{Consecutive: 1})
	conn := dial(t, serve(t, &service{}), nil, grpc.WithChainStreamInterceptor(grpcx.StreamClientInterceptor(dependency), bomb))
	s, err := conn.NewStream(context.Background(), chatDesc, methodChat)
	require.NoError(t, err)
	require.NoError(t, conn.Close()) // whose end is received on the policies' goroutine
	require.Eventually(t, func() bool { return dependency.State() == breaker.Open }, eventually, time.Millisecond)
	assert.PanicsWithValue(t, panicValue{"alone"}, func() { _, _ = s.Header() })
	requireCode(t, codes.Internal, s.RecvMsg(new(text)))
}

func TestTheTrailerIsThereWhenAStreamIsToldToHaveFinished(t *testing.T) {
	srv := &service{list: func(_ *text, s grpc.ServerStream) error {
		s.SetTrailer(metadata.Pairs("a", "b"))
		return nil
	}}
	var s grpc.ClientStream
	var seen metadata.MD
	s, err := list(t.Context(), dial(t, serve(t, srv), attempts(2)), "", grpc.OnFinish(func(error) { seen = s.Trailer() }))
	require.NoError(t, err)
	assert.Empty(t, s.Trailer(), "yet")
	_, err = receiveAll(s)
	require.NoError(t, err)
	assert.Equal(t, []string{"b"}, seen.Get("a"))
}

func TestAStreamThatPanickedIsOverForTheServerToo(t *testing.T) {
	gone := make(chan struct{})
	srv := &service{chat: func(s grpc.ServerStream) error { <-s.Context().Done(); close(gone); return nil }}
	bomb := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := streamer(ctx, desc, cc, method, opts...)
		return &broken{s, "RecvMsg", func() { panic(panicValue{"boom"}) }}, err
	}
	conn := dial(t, serve(t, srv), nil, grpc.WithChainStreamInterceptor(grpcx.StreamClientInterceptor(attempts(2)), bomb))
	s, err := conn.NewStream(context.Background(), chatDesc, methodChat)
	require.NoError(t, err)
	assert.Panics(t, func() { _ = s.RecvMsg(new(text)) })
	<-gone
}

// counted is a stream that counts what is sent on it.
type counted struct {
	grpc.ClientStream
	closes *atomic.Int64
	send   func() error
}

func (c *counted) CloseSend() error { c.closes.Add(1); return c.ClientStream.CloseSend() }
func (c *counted) SendMsg(m any) error {
	if err := c.send(); err != nil {
		return err
	}
	return c.ClientStream.SendMsg(m)
}

func TestAStreamIsRepeatedWithAllThatWasDoneOnIt(t *testing.T) {
	next := turns(status.Error(codes.Unavailable, "starting"), status.Error(codes.Unavailable, "starting"), nil)
	srv := &service{list: func(in *text, s grpc.ServerStream) error {
		if err := next(); err != nil {
			return err
		}
		return s.SendMsg(in)
	}}
	var closes atomic.Int64
	count := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := streamer(ctx, desc, cc, method, opts...)
		return &counted{s, &closes, func() error { return nil }}, err
	}
	conn := dial(t, serve(t, srv), nil, grpc.WithChainStreamInterceptor(grpcx.StreamClientInterceptor(attempts(3)), count))
	s, err := list(t.Context(), conn, "all")
	require.NoError(t, err)
	got, err := receiveAll(s)
	require.NoError(t, err)
	assert.Equal(t, []string{"all"}, got)
	assert.EqualValues(t, 3, closes.Load(), "each was told that there is no more")
}

func TestARequestThatCouldNotBeSentIsSentOnTheNextStream(t *testing.T) {
	send := turns(status.Error(codes.Unavailable, "no stream left"), nil)
	flaky := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := streamer(ctx, desc, cc, method, opts...)
		return &counted{s, new(atomic.Int64), send}, err
	}
	conn := dial(t, serve(t, &service{}), nil, grpc.WithChainStreamInterceptor(grpcx.StreamClientInterceptor(attempts(3)), flaky))
	s, err := list(t.Context(), conn, "hello")
	require.NoError(t, err)
	got, err := receiveAll(s)
	require.NoError(t, err)
	assert.Equal(t, []string{"hello"}, got)
}

func TestStreamsBelowThatDoNotTellOfTheirFinishEndAllTheSame(t *testing.T) {
	deaf := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
		return streamer(ctx, desc, cc, method)
	}
	conn := dial(t, serve(t, &service{}), nil, grpc.WithChainStreamInterceptor(grpcx.StreamClientInterceptor(attempts(3)), deaf))
	s, err := conn.NewStream(t.Context(), gatherDesc, methodGather)
	require.NoError(t, err)
	require.NoError(t, s.SendMsg(number(1)))
	require.NoError(t, s.CloseSend())
	require.NoError(t, s.RecvMsg(new(text)))
	require.ErrorIs(t, s.RecvMsg(new(text)), io.EOF)
	s, err = list(t.Context(), conn, "hello")
	require.NoError(t, err)
	got, err := receiveAll(s)
	require.NoError(t, err)
	assert.Len(t, got, 1)
}

func TestAMessageThatCannotBeSentEndsItsStream(t *testing.T) {
	addr := serve(t, &service{})
	for _, desc := range []*grpc.StreamDesc{listDesc, chatDesc} {
		dependency := breaker.New("test", breaker.Config{})
		conn := dial(t, addr, policy.NewPipeline("test", dependency), grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(10)))
		s, err := conn.NewStream(t.Context(), desc, "/test.Echo/"+desc.StreamName)
		require.NoError(t, err)
		err = s.SendMsg(wrapperspb.String(strings.Repeat("long", 10)))
		requireCode(t, codes.ResourceExhausted, err)
		requireCode(t, codes.ResourceExhausted, s.RecvMsg(new(text)))
		assert.Equal(t, 1, dependency.Stats().Failed)
	}
}

func TestSendersAndReceiversOfAStreamRunBesideEachOther(t *testing.T) {
	conn := dial(t, serve(t, &service{}), policy.NewPipeline("test", policy.Timeout(time.Hour), attempts(3)))
	talk := func() error {
		s, err := conn.NewStream(t.Context(), chatDesc, methodChat)
		if err != nil {
			return err
		}
		errs := make(chan error, 2)
		go func() {
			for i := range 500 {
				if err := s.SendMsg(number(i)); err != nil {
					errs <- err
					return
				}
			}
			errs <- s.CloseSend()
		}()
		go func() {
			header, err := s.Header()
			if header == nil {
				err = errors.Join(err, errors.New("no header"))
			}
			errs <- err
		}()
		got, err := receiveAll(s)
		if len(got) != 500 {
			err = errors.Join(err, fmt.Errorf("got %d messages", len(got)))
		}
		return errors.Join(err, <-errs, <-errs)
	}
	results := make(chan error, 8)
	for range cap(results) {
		go func() { results <- talk() }()
	}
	for range cap(results) {
		require.NoError(t, <-results)
	}
}

func TestTheMemoryOfALongStreamStaysFlat(t *testing.T) {
	n := 1_000_000
	if testing.Short() || raceEnabled {
		n = 50_000
	}
	conn := dial(t, serve(t, &service{}), policy.NewPipeline("test", policy.Timeout(time.Hour), attempts(3), breaker.New("test", breaker.Config{})))
	s, err := conn.NewStream(grpcx.WithReplay(t.Context(), true), chatDesc, methodChat)
	require.NoError(t, err)
	sent := make(chan error, 1)
	go func() {
		m := wrapperspb.String(strings.Repeat("x", 100))
		for range n {
			if err := s.SendMsg(m); err != nil {
				sent <- err
				return
			}
		}
		sent <- s.CloseSend()
	}()
	var start, end runtime.MemStats
	m := new(text)
	for i := range n {
		require.NoError(t, s.RecvMsg(m))
		if i == n/10 {
			runtime.GC()
			runtime.ReadMemStats(&start)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&end)
	require.NoError(t, <-sent)
	require.ErrorIs(t, s.RecvMsg(m), io.EOF)
	assert.Less(t, int64(end.HeapAlloc)-int64(start.HeapAlloc), int64(2<<20), "what %d messages of 100 bytes have left", n*9/10)
}

func TestAStreamsEventsAreToldUnderTheCallersContext(t *testing.T) {
	type key struct{}
	var values []any
	o := observe.Func(func(ctx context.Context, e observe.Event) {
		if e.Kind == observe.Attempt {
			values = append(values, ctx.Value(key{}))
		}
	})
	srv := &service{list: func(*text, grpc.ServerStream) error { return status.Error(codes.Unavailable, "") }}
	s, err := list(context.WithValue(t.Context(), key{}, 1), dial(t, serve(t, srv), policy.NewPipeline("test", attempts(2)).Observed(o)), "")
	require.NoError(t, err)
	require.Error(t, s.RecvMsg(new(text)))
	assert.Equal(t, []any{1}, values)
}
