package grpcx_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/grpcx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/retry"
)

func ExampleUnaryClientInterceptor() {
	server := startPayments()
	defer server.stop()
	ctx := context.Background()

	payments := policy.NewPipeline("payments",
		policy.Timeout(5*time.Second),
		retry.New(retry.Config{}),
		breaker.New("payments", breaker.Config{}),
		policy.Timeout(time.Second),
	)
	conn, err := grpc.NewClient(server.addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(grpcx.UnaryClientInterceptor(payments)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()

	server.unavailable(1) // the next call
	receipt := new(wrapperspb.StringValue)
	err = conn.Invoke(ctx, "/Payments/Charge", wrapperspb.Int64(42), receipt) // as generated code does
	fmt.Println(receipt.GetValue(), err, "-", server.calls(), "attempts")
	// Output: charged 42 <nil> - 2 attempts
}

func ExampleStreamClientInterceptor() {
	server := startPayments()
	defer server.stop()
	ctx := context.Background()

	feeds := bulkhead.New("feeds", bulkhead.Config{Max: 10})
	conn, err := grpc.NewClient(server.addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainStreamInterceptor(grpcx.StreamClientInterceptor(
			policy.NewPipeline("feed", retry.New(retry.Config{}), feeds))))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()

	server.unavailable(1)
	feed, err := openFeed(ctx, conn)
	if err != nil {
		fmt.Println(err)
		return
	}
	for {
		event := new(wrapperspb.StringValue)
		if err := feed.RecvMsg(event); err != nil {
			fmt.Println(err, "-", feeds.Stats().Running, "running")
			break
		}
		fmt.Println(event.GetValue(), "-", feeds.Stats().Running, "running")
	}
	// Output:
	// opened - 1 running
	// closed - 1 running
	// EOF - 0 running
}

func ExampleWithReplay() {
	server := startPayments()
	defer server.stop()
	conn := server.dial(policy.NewPipeline("payments", retry.New(retry.Config{Attempts: 2})))
	defer func() { _ = conn.Close() }()

	charge := func(ctx context.Context) {
		server.reset(codes.Internal) // has it charged or not?
		err := conn.Invoke(ctx, "/Payments/Charge", wrapperspb.Int64(42), new(wrapperspb.StringValue))
		fmt.Println(status.Code(err), "-", server.calls(), "attempts")
	}
	ctx := context.Background()
	charge(ctx)
	charge(grpcx.WithReplay(ctx, true)) // this server knows a request that it has served
	// Output:
	// Internal - 1 attempts
	// Internal - 2 attempts
}

func ExampleUnaryServerInterceptor() {
	room := bulkhead.New("server", bulkhead.Config{Max: 1})
	server := startPayments(grpc.ChainUnaryInterceptor(grpcx.UnaryServerInterceptor(room)))
	defer server.stop()
	conn := server.dial(nil)
	defer func() { _ = conn.Close() }()
	ctx := context.Background()

	release, _ := room.Acquire(ctx) // somebody else's call
	err := conn.Invoke(ctx, "/Payments/Charge", wrapperspb.Int64(42), new(wrapperspb.StringValue))
	fmt.Println(err)
	release()
	err = conn.Invoke(ctx, "/Payments/Charge", wrapperspb.Int64(42), new(wrapperspb.StringValue))
	fmt.Println(err)
	// Output:
	// rpc error: code = ResourceExhausted desc = bulkhead: no permit free
	// <nil>
}

func ExampleStreamServerInterceptor() {
	upstream := breaker.New("events", breaker.Config{})
	server := startPayments(grpc.ChainStreamInterceptor(grpcx.StreamServerInterceptor(upstream)))
	defer server.stop()
	conn := server.dial(nil)
	defer func() { _ = conn.Close() }()

	upstream.ForceOpen()
	feed, err := openFeed(context.Background(), conn)
	if err == nil {
		err = feed.RecvMsg(new(wrapperspb.StringValue))
	}
	fmt.Println(err)
	// Output: rpc error: code = Unavailable desc = circuit_breaker: circuit open
}

// A caller tells a refusal from what the server has answered.
func ExampleUnaryClientInterceptor_refusal() {
	server := startPayments()
	defer server.stop()
	payments := breaker.New("payments", breaker.Config{Cooldown: time.Minute, Jitter: -1})
	conn := server.dial(payments)
	defer func() { _ = conn.Close() }()

	payments.Trip()
	err := conn.Invoke(context.Background(), "/Payments/Charge", wrapperspb.Int64(42), new(wrapperspb.StringValue))
	wait, known := policy.RetryAfter(err)
	fmt.Println(status.Code(err), errors.Is(err, breaker.ErrCircuitOpen), known, wait.Round(time.Minute))
	// Output: Unavailable true true 1m0s
}
