package grpcx_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/grpcx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/retry"
)

// What a pipeline adds to a call over the loopback, and to a message on a stream.
func BenchmarkCall(b *testing.B) {
	p := policy.NewPipeline("bench",
		policy.Timeout(time.Minute),
		retry.New(retry.Config{}),
		breaker.New("bench", breaker.Config{Observer: observe.Discard}),
		bulkhead.New("bench", bulkhead.Config{Max: 100, Observer: observe.Discard}),
	).Observed(observe.Discard)
	server := grpc.NewServer()
	server.RegisterService(&serviceDesc, &service{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() { server.Stop(); <-served }()

	for name, opts := range map[string][]grpc.DialOption{
		"plain": nil,
		"under policies": {
			grpc.WithUnaryInterceptor(grpcx.UnaryClientInterceptor(p)),
			grpc.WithStreamInterceptor(grpcx.StreamClientInterceptor(p)),
		},
	} {
		conn, err := grpc.NewClient(listener.Addr().String(), append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
		require.NoError(b, err)
		req, reply := wrapperspb.String("hello"), new(text)
		b.Run("unary/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := conn.Invoke(b.Context(), methodSay, req, reply); err != nil {
					b.Fatal(err)
				}
			}
		})
		if opts == nil {
			b.Run("unary/plain with a deadline", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
					err := conn.Invoke(ctx, methodSay, req, reply)
					cancel()
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run("message/"+name, func(b *testing.B) {
			s, err := conn.NewStream(b.Context(), chatDesc, methodChat)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if err := s.SendMsg(req); err != nil {
					b.Fatal(err)
				}
				if err := s.RecvMsg(reply); err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, s.CloseSend())
			require.Error(b, s.RecvMsg(reply))
		})
		b.Run("stream/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, err := list(b.Context(), conn, "hello")
				if err != nil {
					b.Fatal(err)
				}
				if _, err := receiveAll(s); err != nil {
					b.Fatal(err)
				}
			}
		})
		require.NoError(b, conn.Close())
	}
}
