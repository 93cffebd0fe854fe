package main

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// What generated code would have.
const (
	getQuote    = "/Quotes/Get"
	watchQuotes = "/Quotes/Watch"
)

var watchDesc = &grpc.StreamDesc{StreamName: "Watch", ServerStreams: true}

// quotes is a service of two methods.
type quotes struct {
	// answer is asked before anything is answered.
	answer func(ctx context.Context) error

	calls atomic.Int64 // that have reached a handler
}

var quotesDesc = grpc.ServiceDesc{
	ServiceName: "Quotes",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Get", Handler: func(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		symbol := new(wrapperspb.StringValue)
		if err := dec(symbol); err != nil {
			return nil, err
		}
		handler := func(ctx context.Context, _ any) (any, error) { return srv.(*quotes).get(ctx, symbol) }
		if interceptor == nil {
			return handler(ctx, symbol)
		}
		return interceptor(ctx, symbol, &grpc.UnaryServerInfo{Server: srv, FullMethod: getQuote}, handler)
	}}},
	Streams: []grpc.StreamDesc{{StreamName: "Watch", ServerStreams: true, Handler: func(srv any, stream grpc.ServerStream) error {
		symbol := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(symbol); err != nil {
			return err
		}
		return srv.(*quotes).watch(symbol, stream)
	}}},
}

func (q *quotes) get(ctx context.Context, _ *wrapperspb.StringValue) (*wrapperspb.DoubleValue, error) {
	q.calls.Add(1)
	return wrapperspb.Double(42), q.answer(ctx)
}

func (q *quotes) watch(_ *wrapperspb.StringValue, stream grpc.ServerStream) error {
	q.calls.Add(1)
	if err := q.answer(stream.Context()); err != nil {
		return err
	}
	for _, price := range []float64{42, 43, 44} {
		if err := stream.SendMsg(wrapperspb.Double(price)); err != nil {
			return err
		}
	}
	return nil
}

// serve serves q on the loopback, and returns a connection to it.
func serve(q *quotes, server []grpc.ServerOption, client []grpc.DialOption) (_ *grpc.ClientConn, stop func() error, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	s := grpc.NewServer(server...)
	s.RegisterService(&quotesDesc, q)
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	stopServer := func() error {
		s.GracefulStop()
		return <-served
	}
	conn, err := grpc.NewClient(listener.Addr().String(), append(client, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return nil, nil, errors.Join(err, stopServer())
	}
	return conn, func() error { return errors.Join(conn.Close(), stopServer()) }, nil
}
