package grpcx_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/switchgear-go/switchgear/grpcx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/retry"
)

// eventually is how long a test waits for what has to happen; it fails after that.
const eventually = 10 * time.Second

type text = wrapperspb.StringValue

// The methods of the test's service: one of each kind.
const (
	methodSay    = "/test.Echo/Say"
	methodList   = "/test.Echo/List"
	methodGather = "/test.Echo/Gather"
	methodChat   = "/test.Echo/Chat"
)

var (
	listDesc   = &grpc.StreamDesc{StreamName: "List", ServerStreams: true}
	gatherDesc = &grpc.StreamDesc{StreamName: "Gather", ClientStreams: true}
	chatDesc   = &grpc.StreamDesc{StreamName: "Chat", ServerStreams: true, ClientStreams: true}
)

// service is what a server of the tests does; nil functions echo.
type service struct {
	say    func(ctx context.Context, in *text) (*text, error)
	list   func(in *text, s grpc.ServerStream) error
	gather func(s grpc.ServerStream) error
	chat   func(s grpc.ServerStream) error

	calls atomic.Int64 // that have reached a handler
}

var serviceDesc = grpc.ServiceDesc{
	ServiceName: "test.Echo",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Say", Handler: func(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		in := new(text)
		if err := dec(in); err != nil {
			return nil, err
		}
		handler := func(ctx context.Context, req any) (any, error) {
			s := srv.(*service)
			s.calls.Add(1)
			if s.say == nil {
				return req, nil
			}
			out, err := s.say(ctx, req.(*text))
			if err != nil {
				return nil, err
			}
			return out, nil
		}
		if interceptor == nil {
			return handler(ctx, in)
		}
		return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: methodSay}, handler)
	}}},
	Streams: []grpc.StreamDesc{
		{StreamName: "List", ServerStreams: true, Handler: func(srv any, stream grpc.ServerStream) error {
			s, in := srv.(*service), new(text)
			s.calls.Add(1)
			if err := stream.RecvMsg(in); err != nil {
				return err
			}
			if s.list == nil {
				return stream.SendMsg(in)
			}
			return s.list(in, stream)
		}},
		{StreamName: "Gather", ClientStreams: true, Handler: func(srv any, stream grpc.ServerStream) error {
			s := srv.(*service)
			s.calls.Add(1)
			if s.gather != nil {
				return s.gather(stream)
			}
			all, err := receiveAll(stream)
			if err != nil {
				return err
			}
			return stream.SendMsg(wrapperspb.String(strings.Join(all, " ")))
		}},
		{StreamName: "Chat", ServerStreams: true, ClientStreams: true, Handler: func(srv any, stream grpc.ServerStream) error {
			s := srv.(*service)
			s.calls.Add(1)
			if s.chat != nil {
				return s.chat(stream)
			}
			for m := new(text); ; {
				if err := stream.RecvMsg(m); errors.Is(err, io.EOF) {
					return nil
				} else if err != nil {
					return err
				}
				if err := stream.SendMsg(m); err != nil {
					return err
				}
			}
		}},
	},
}

// receiveAll receives until the end.
func receiveAll(s interface{ RecvMsg(any) error }) (all []string, err error) {
	for {
		m := new(text)
		if err := s.RecvMsg(m); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, err
		}
		all = append(all, m.GetValue())
	}
}

// serve starts a real server on the loopback. What a test leaves behind once it is stopped fails the test.
func serve(t *testing.T, s *service, opts ...grpc.ServerOption) (addr string) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	server := grpc.NewServer(opts...)
	server.RegisterService(&serviceDesc, s)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-served)
		require.NoError(t, goleak.Find(before), "the test has left goroutines")
	})
	return listener.Addr().String()
}

// dial returns a connection whose calls run under p.
func dial(t *testing.T, addr string, p policy.Policy, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if p != nil {
		opts = append(
			opts,
			grpc.WithUnaryInterceptor(grpcx.UnaryClientInterceptor(p)),
			grpc.WithStreamInterceptor(grpcx.StreamClientInterceptor(p)),
		)
	}
	conn, err := grpc.NewClient(addr, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// say makes the unary call.
func say(ctx context.Context, conn *grpc.ClientConn, what string, opts ...grpc.CallOption) (string, error) {
	reply := new(text)
	err := conn.Invoke(ctx, methodSay, wrapperspb.String(what), reply, opts...)
	return reply.GetValue(), err
}

// list opens a stream on which only the server sends, as generated code does.
func list(ctx context.Context, conn *grpc.ClientConn, what string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := conn.NewStream(ctx, listDesc, methodList, opts...)
	if err != nil {
		return nil, err
	}
	if err := s.SendMsg(wrapperspb.String(what)); err != nil {
		return nil, err
	}
	return s, s.CloseSend()
}

// turns makes a function that returns an error after the other, the last one for ever.
func turns(errs ...error) func() error {
	var n atomic.Int64
	return func() error { return errs[min(int(n.Add(1)), len(errs))-1] }
}

// saying is a service whose unary call fails with one code after the other, the last one for ever.
func saying(cs ...codes.Code) *service {
	errs := make([]error, len(cs))
	for i, c := range cs {
		errs[i] = status.Error(c, c.String())
	}
	next := turns(errs...)
	return &service{say: func(_ context.Context, in *text) (*text, error) { return in, next() }}
}

// instantly is a backoff without waits.
func instantly() backoff.BackOff { return &backoff.ZeroBackOff{} }

// attempts is a retry that does not wait and has no budget.
func attempts(n int) *retry.Retry {
	return retry.New(retry.Config{Attempts: n, BackOff: instantly, Budget: retry.Unlimited})
}

// again is a policy that runs a function n times, whatever comes of it, and returns the last result.
func again(n int) policy.Policy {
	return policy.PolicyFunc(func(ctx context.Context, fn policy.Func) (err error) {
		for range n {
			err = fn(ctx)
		}
		return err
	})
}

// seen keeps what a function returned to the policies around it.
type seen struct {
	mu   sync.Mutex
	errs []error
}

func (s *seen) Do(ctx context.Context, fn policy.Func) error {
	err := fn(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, err)
	return err
}

func (s *seen) all() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errs
}

// ledger is an Observer whose rows and events a test reads.
type ledger struct {
	mu      sync.Mutex
	sources []observe.Source
	events  []observe.Event
}

func (l *ledger) Attach(s observe.Source) observe.Probe {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sources = append(l.sources, s)
	return nil
}

func (l *ledger) Observe(_ context.Context, e observe.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

func (l *ledger) told(kind observe.Kind) (events []observe.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.Kind == kind {
			events = append(events, e)
		}
	}
	return events
}

// counts returns the values that are not 0 of a metric, by their attributes' values.
func (l *ledger) counts(metric string) map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := map[string]int64{}
	for _, s := range l.sources {
		for i := range s.Counts {
			if v := s.Counts[i].Load(); s.Rows[i].Metric == metric && v != 0 && v != observe.None {
				key := make([]string, len(s.Rows[i].Attrs))
				for j, a := range s.Rows[i].Attrs {
					key[j] = a.Value
				}
				counts[strings.Join(key, " ")] += v
			}
		}
	}
	return counts
}

func requireCode(t *testing.T, want codes.Code, err error) {
	t.Helper()
	require.Equal(t, want, status.Code(err), "%v", err)
}

func pushback(values ...string) metadata.MD {
	return metadata.MD{"grpc-retry-pushback-ms": values}
}

func number(n int) *text { return wrapperspb.String(strconv.Itoa(n)) }

// check is for goroutines other than the test's.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
