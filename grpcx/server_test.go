package grpcx_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/grpcx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/ratelimit"
	"github.com/switchgear-go/switchgear/retry"
)

// outside keeps what an interceptor further in returned, on the server's side.
type outside struct {
	mu  sync.Mutex
	err error
}

func (o *outside) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	reply, err := handler(ctx, req)
	o.set(err)
	return reply, err
}

func (o *outside) stream(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	err := handler(srv, s)
	o.set(err)
	return err
}

func (o *outside) set(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

func (o *outside) get() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// serveUnder starts a server whose handlers run under p.
func serveUnder(t *testing.T, s *service, p policy.Policy) (addr string, o *outside) {
	t.Helper()
	o = &outside{}
	return serve(t, s,
		grpc.ChainUnaryInterceptor(o.unary, grpcx.UnaryServerInterceptor(p)),
		grpc.ChainStreamInterceptor(o.stream, grpcx.StreamServerInterceptor(p)),
	), o
}

// callers are a unary and a streaming call.
var callers = map[string]func(ctx context.Context, conn *grpc.ClientConn) error{
	"unary": func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := say(ctx, conn, "")
		return err
	},
	"stream": func(ctx context.Context, conn *grpc.ClientConn) error {
		s, err := list(ctx, conn, "")
		if err != nil {
			return err
		}
		_, err = receiveAll(s)
		return err
	},
}

// handling is a service whose unary and streaming handlers do the same.
func handling(do func(ctx context.Context) error) *service {
	return &service{
		say:  func(ctx context.Context, in *text) (*text, error) { return in, do(ctx) },
		list: func(_ *text, s grpc.ServerStream) error { return do(s.Context()) },
	}
}

func failing(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

func TestWhatPoliciesSayReachesTheClientAsAStatus(t *testing.T) {
	secret := errors.New("password=hunter2")
	tripped := breaker.New("internal-db", breaker.Config{Consecutive: 1, Cooldown: time.Minute, Jitter: -1})
	_ = tripped.Do(t.Context(), failing(secret))
	full := bulkhead.New("test", bulkhead.Config{Max: 1})
	release, err := full.Acquire(t.Context())
	require.NoError(t, err)
	defer release()
	spent := ratelimit.New("test", ratelimit.Config{Rate: 0.001, Burst: 1})
	require.NoError(t, spent.Allow(t.Context()))
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	strangers := errors.New("a stranger's")

	for name, row := range map[string]struct {
		policy  policy.Policy
		handler func(context.Context) error
		code    codes.Code
		is      error
		text    string
		hint    bool
	}{
		"open":              {tripped, nil, codes.Unavailable, breaker.ErrCircuitOpen, "circuit_breaker: circuit open", true},
		"full":              {full, nil, codes.ResourceExhausted, bulkhead.ErrFull, "bulkhead: no permit free", false},
		"limited":           {spent, nil, codes.ResourceExhausted, ratelimit.ErrLimited, "rate_limiter: rate limit exceeded", true},
		"refused by others": {policy.PolicyFunc(func(context.Context, policy.Func) error { return policy.ErrRejected }), nil, codes.Unavailable, policy.ErrRejected, "call rejected", false},
		"timeout":           {policy.Timeout(10 * time.Millisecond), hang, codes.DeadlineExceeded, policy.ErrTimeout, "policy: timeout after 10ms: context deadline exceeded", false},
		"timeout, not its error": {policy.Timeout(10 * time.Millisecond), func(ctx context.Context) error {
			<-ctx.Done()
			return errors.New("query: interrupted")
		}, codes.DeadlineExceeded, policy.ErrTimeout, "policy: timeout after 10ms: query: interrupted", false},
		"a stranger's error":  {policy.PolicyFunc(func(context.Context, policy.Func) error { return strangers }), nil, codes.Unknown, strangers, "a stranger's", false},
		"a stranger's status": {policy.PolicyFunc(func(context.Context, policy.Func) error { return status.Error(codes.Aborted, "no") }), nil, codes.Aborted, nil, "no", false},
	} {
		for kind, call := range callers {
			t.Run(name+" "+kind, func(t *testing.T) {
				srv := handling(row.handler)
				addr, o := serveUnder(t, srv, row.policy)
				err := call(t.Context(), dial(t, addr, nil))
				requireCode(t, row.code, err)
				assert.Equal(t, row.text, status.Convert(err).Message())
				assert.Equal(t, row.hint, len(status.Convert(err).Details()) == 1, "a RetryInfo")
				assert.Equal(t, row.code, status.Code(o.get()))
				if row.is != nil {
					require.ErrorIs(t, o.get(), row.is, "on the server's side")
				}
				assert.EqualValues(t, map[bool]int{true: 1}[row.handler != nil], srv.calls.Load())
			})
		}
	}
}

func TestAHandlersStatusIsNeverReplaced(t *testing.T) {
	open := breaker.New("test", breaker.Config{})
	late := func(err error) func(context.Context) error {
		return func(ctx context.Context) error { <-ctx.Done(); return err }
	}
	details, err := status.New(codes.Internal, "with details").WithDetails(wrapperspb.String("detail"))
	require.NoError(t, err)
	forgetful := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		_ = fn(ctx)
		return fn(ctx) // and so returns the refusal
	})
	other := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		_ = fn(ctx)
		return errors.New("something else")
	})
	for name, row := range map[string]struct {
		policy  policy.Policy
		handler func(context.Context) error
		code    codes.Code
		text    string
	}{
		"an answer":                   {open, failing(status.Error(codes.NotFound, "no such")), codes.NotFound, "no such"},
		"a failure":                   {open, failing(details.Err()), codes.Internal, "with details"},
		"a failure, wrapped":          {open, failing(fmt.Errorf("wrapped: %w", status.Error(codes.DataLoss, "lost"))), codes.DataLoss, "wrapped: rpc error: code = DataLoss desc = lost"},
		"no status":                   {open, failing(errors.New("plain")), codes.Unknown, "plain"},
		"after a timeout":             {policy.Timeout(time.Millisecond), late(status.Error(codes.Internal, "own")), codes.Internal, "own"},
		"an answer after a timeout":   {policy.Timeout(time.Millisecond), late(status.Error(codes.NotFound, "own")), codes.NotFound, "own"},
		"under a retry":               {attempts(3), failing(status.Error(codes.Unavailable, "own")), codes.Unavailable, "own"},
		"under a retry and a timeout": {policy.NewPipeline("test", policy.Timeout(time.Hour), attempts(3)), failing(status.Error(codes.Unavailable, "own")), codes.Unavailable, "own"},
		"under one that forgets it":   {forgetful, failing(status.Error(codes.DataLoss, "own")), codes.DataLoss, "own"},
		"an answer that is forgotten": {other, failing(status.Error(codes.NotFound, "own")), codes.NotFound, "own"},
		"under a fallback":            {policy.Fallback(func(context.Context, error) error { return nil }), failing(status.Error(codes.Internal, "own")), codes.Internal, "own"},
	} {
		for kind, call := range callers {
			t.Run(name+" "+kind, func(t *testing.T) {
				srv := handling(row.handler)
				addr, _ := serveUnder(t, srv, row.policy)
				err := call(t.Context(), dial(t, addr, nil))
				requireCode(t, row.code, err)
				assert.Equal(t, row.text, status.Convert(err).Message())
				assert.EqualValues(t, 1, srv.calls.Load())
			})
		}
	}
	assert.Equal(t, breaker.Closed, open.State())
}

func TestAHandlersErrorIsInTheTreeWhateverThePoliciesReturn(t *testing.T) {
	own, other := status.Error(codes.DataLoss, "own"), errors.New("other")
	forgetful := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		_ = fn(ctx)
		return other
	})
	for _, call := range callers {
		addr, o := serveUnder(t, handling(failing(own)), forgetful)
		requireCode(t, codes.DataLoss, call(t.Context(), dial(t, addr, nil)))
		require.ErrorIs(t, o.get(), own)
		require.ErrorIs(t, o.get(), other)
	}
}

func TestAHandlerIsCalledOnceWhateverThePolicies(t *testing.T) {
	refused := &seen{}
	chain := []policy.Policy{
		attempts(5),
		retry.NewHedge(retry.HedgeConfig{Delay: time.Millisecond, MaxHedges: 3, Budget: retry.Unlimited}),
		policy.NewPipeline("test", again(3), refused),
	}
	var passed [3]atomic.Int64 // interceptors between ours
	count := func(i int) grpc.ServerOption {
		return grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			passed[i].Add(1)
			return handler(ctx, req)
		})
	}
	srv := saying(codes.Unavailable)
	addr := serve(t, srv,
		grpc.ChainUnaryInterceptor(grpcx.UnaryServerInterceptor(chain[0])), count(0),
		grpc.ChainUnaryInterceptor(grpcx.UnaryServerInterceptor(chain[1])), count(1),
		grpc.ChainUnaryInterceptor(grpcx.UnaryServerInterceptor(chain[2])), count(2),
	)
	_, err := say(t.Context(), dial(t, addr, nil), "")
	requireCode(t, codes.Unavailable, err)
	assert.EqualValues(t, 1, srv.calls.Load())
	for i := range passed {
		assert.EqualValues(t, 1, passed[i].Load())
	}
	for _, err := range refused.all()[1:] {
		require.ErrorIs(t, err, grpcx.ErrNotReplayable)
	}
}

func TestAClientThatLeavesSaysNothingOfAHandler(t *testing.T) {
	interrupted := errors.New("query: interrupted")
	for kind, call := range callers {
		t.Run(kind, func(t *testing.T) {
			began := make(chan struct{}, 2)
			srv := handling(func(ctx context.Context) error {
				began <- struct{}{}
				<-ctx.Done()
				return interrupted
			})
			l := &ledger{}
			dependency := breaker.New("test", breaker.Config{Consecutive: 1, Observer: l})
			addr, o := serveUnder(t, srv, policy.NewPipeline("test", dependency, policy.Timeout(time.Hour)))
			conn := dial(t, addr, nil)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-began; cancel() }()
			requireCode(t, codes.Canceled, call(ctx, conn))
			require.Eventually(t, func() bool { return o.get() != nil }, eventually, time.Millisecond)
			requireCode(t, codes.Canceled, o.get())
			require.ErrorIs(t, o.get(), interrupted)
			assert.Equal(t, map[string]int64{"closed ignored": 1}, l.counts("switchgear.circuit_breaker.calls"))
		})
	}
}

func TestAHandlersCodesAreJudgedAsAClients(t *testing.T) {
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		dependency := breaker.New("test", breaker.Config{Consecutive: 1})
		addr, _ := serveUnder(t, saying(code), dependency)
		_, err := say(t.Context(), dial(t, addr, nil), "")
		requireCode(t, code, err)
		switch code {
		case codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Unknown, codes.DataLoss, codes.ResourceExhausted:
			assert.Equal(t, breaker.Open, dependency.State(), code)
		default:
			assert.Equal(t, breaker.Closed, dependency.State(), code)
		}
	}
}

func TestAServersFallbackSuppliesTheReply(t *testing.T) {
	open := breaker.New("test", breaker.Config{})
	open.Trip()
	supply := policy.FallbackValue(func(context.Context, error) (any, error) { return wrapperspb.String("cached"), nil })
	addr, _ := serveUnder(t, &service{}, policy.NewPipeline("test", supply, open))
	reply, err := say(t.Context(), dial(t, addr, nil), "")
	require.NoError(t, err)
	assert.Equal(t, "cached", reply)

	nothing := policy.Fallback(func(context.Context, error) error { return nil })
	addr, _ = serveUnder(t, &service{}, policy.NewPipeline("test", nothing, open))
	conn := dial(t, addr, nil)
	_, err = say(t.Context(), conn, "")
	requireCode(t, codes.Internal, err)
	require.NoError(t, callers["stream"](t.Context(), conn), "a stream without messages is one")
}

func TestAHandlersPanicPasses(t *testing.T) {
	dependency := breaker.New("test", breaker.Config{Consecutive: 1})
	rescued := make(chan any, 2)
	rescue := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
		defer func() {
			rescued <- recover()
			err = status.Error(codes.Internal, "panic")
		}()
		return handler(ctx, req)
	}
	srv := handling(func(context.Context) error { panic("handler") })
	addr := serve(t, srv, grpc.ChainUnaryInterceptor(rescue, grpcx.UnaryServerInterceptor(dependency)))
	requireCode(t, codes.Internal, callers["unary"](t.Context(), dial(t, addr, nil)))
	assert.Equal(t, "handler", <-rescued)
	assert.Equal(t, breaker.Open, dependency.State())
}

func TestAServersStreamHasTheContextOfThePolicies(t *testing.T) {
	type key struct{}
	p := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		return fn(context.WithValue(ctx, key{}, "here"))
	})
	got := make(chan any, 2)
	srv := handling(func(ctx context.Context) error { got <- ctx.Value(key{}); return nil })
	addr, _ := serveUnder(t, srv, p)
	conn := dial(t, addr, nil)
	for _, call := range callers {
		require.NoError(t, call(t.Context(), conn))
		assert.Equal(t, "here", <-got)
	}
}

func TestANilPolicyIsAMisuse(t *testing.T) {
	assert.PanicsWithValue(t, "grpcx: UnaryClientInterceptor with a nil policy", func() { grpcx.UnaryClientInterceptor(nil) })
	assert.PanicsWithValue(t, "grpcx: StreamClientInterceptor with a nil policy", func() { grpcx.StreamClientInterceptor(nil) })
	assert.PanicsWithValue(t, "grpcx: UnaryServerInterceptor with a nil policy", func() { grpcx.UnaryServerInterceptor(nil) })
	assert.PanicsWithValue(t, "grpcx: StreamServerInterceptor with a nil policy", func() { grpcx.StreamServerInterceptor(nil) })
}
