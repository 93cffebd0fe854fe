package grpcx_test

import (
	"context"
	"net"
	"strconv"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/switchgear-go/switchgear/grpcx"
	"github.com/switchgear-go/switchgear/policy"
)

// payments is the server of the examples.
type payments struct {
	addr   string
	server *grpc.Server
	done   chan struct{}

	mu     sync.Mutex
	count  int        // guarded by mu: calls
	fails  int        // guarded by mu: how many of the next calls fail
	reason codes.Code // guarded by mu
}

func startPayments(opts ...grpc.ServerOption) *payments {
	p := &payments{server: grpc.NewServer(opts...), done: make(chan struct{})}
	p.server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "Payments",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Charge", Handler: func(_ any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			amount := new(wrapperspb.Int64Value)
			if err := dec(amount); err != nil {
				return nil, err
			}
			handler := func(context.Context, any) (any, error) {
				return wrapperspb.String("charged " + strconv.FormatInt(amount.GetValue(), 10)), p.next()
			}
			if interceptor == nil {
				return handler(ctx, amount)
			}
			return interceptor(ctx, amount, &grpc.UnaryServerInfo{FullMethod: "/Payments/Charge"}, handler)
		}}},
		Streams: []grpc.StreamDesc{{StreamName: "Feed", ServerStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
			if err := p.next(); err != nil {
				return err
			}
			for _, event := range []string{"opened", "closed"} {
				if err := s.SendMsg(wrapperspb.String(event)); err != nil {
					return err
				}
			}
			return nil
		}}},
	}, p)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	p.addr = listener.Addr().String()
	go func() {
		defer close(p.done)
		_ = p.server.Serve(listener)
	}()
	return p
}

func (p *payments) stop() {
	p.server.Stop()
	<-p.done
}

func (p *payments) next() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	if p.fails == 0 {
		return nil
	}
	p.fails--
	return status.Error(p.reason, "out of order")
}

func (p *payments) calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

func (p *payments) unavailable(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails, p.reason = n, codes.Unavailable
}

// reset lets all calls fail with a code, and counts anew.
func (p *payments) reset(reason codes.Code) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count, p.fails, p.reason = 0, -1, reason
}

// dial returns a connection whose unary calls run under a policy.
func (p *payments) dial(under policy.Policy) *grpc.ClientConn {
	opts := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if under != nil {
		opts = append(opts, grpc.WithChainUnaryInterceptor(grpcx.UnaryClientInterceptor(under)))
	}
	conn, err := grpc.NewClient(p.addr, opts...)
	if err != nil {
		panic(err)
	}
	return conn
}

func openFeed(ctx context.Context, conn *grpc.ClientConn) (grpc.ClientStream, error) {
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/Payments/Feed")
	if err != nil {
		return nil, err
	}
	if err := s.SendMsg(wrapperspb.String("today")); err != nil {
		return nil, err
	}
	return s, s.CloseSend()
}
