package grpcx_test

import (
	"context"
	"errors"
	"math"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/grpcx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/policy/observe"
	"github.com/switchgear-go/switchgear/ratelimit"
	"github.com/switchgear-go/switchgear/retry"
)

func TestEachCodeIsAFailureOrAnAnswerAndRepeatedOrNot(t *testing.T) {
	failures := map[codes.Code]bool{
		codes.Unavailable: true, codes.DeadlineExceeded: true, codes.Internal: true,
		codes.Unknown: true, codes.DataLoss: true, codes.ResourceExhausted: true,
	}
	repeated := map[codes.Code]bool{codes.Unavailable: true, codes.ResourceExhausted: true}
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		t.Run(code.String(), func(t *testing.T) {
			srv := saying(code)
			addr := serve(t, srv)
			dependency := breaker.New("test", breaker.Config{Consecutive: 100})
			conn := dial(t, addr, policy.NewPipeline("test", attempts(3), dependency))
			for _, row := range []struct {
				name  string
				ctx   context.Context
				sends int
			}{
				{"by default", t.Context(), map[bool]int{true: 3, false: 1}[repeated[code]]},
				{"with replay", grpcx.WithReplay(t.Context(), true), map[bool]int{true: 3, false: 1}[failures[code]]},
				{"without replay", grpcx.WithReplay(t.Context(), false), 1},
			} {
				before, failed := srv.calls.Load(), dependency.Stats().Failed
				reply, err := say(row.ctx, conn, "hello")
				requireCode(t, code, err)
				if code == codes.OK {
					require.Equal(t, "hello", reply)
				}
				assert.Equal(t, row.sends, int(srv.calls.Load()-before), "sends %s", row.name)
				want := map[bool]int{true: row.sends, false: 0}[failures[code]]
				assert.Equal(t, want, dependency.Stats().Failed-failed, "failures %s", row.name)
			}
			assert.Zero(t, dependency.Stats().Calls-int(srv.calls.Load()), "calls that the breaker judged and the server did not get")
		})
	}
}

func TestAnAnswerComesBackAsItCame(t *testing.T) {
	want, err := status.New(codes.NotFound, "no such account").WithDetails(wrapperspb.String("A-1"))
	require.NoError(t, err)
	addr := serve(t, &service{say: func(context.Context, *text) (*text, error) { return nil, want.Err() }})
	for name, p := range map[string]policy.Policy{
		"pipeline": policy.NewPipeline("test", policy.Timeout(time.Minute), attempts(3)),
		"bare":     policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error { return fn(ctx) }),
	} {
		_, err := say(t.Context(), dial(t, addr, p), "")
		got, ok := status.FromError(err)
		require.True(t, ok, name)
		assert.True(t, proto.Equal(want.Proto(), got.Proto()), "%s: got %v, want %v", name, got, want)
	}
}

func TestAFailureThatIsFinalIsNotWaitedForOrPaidFor(t *testing.T) {
	srv := saying(codes.Internal)
	l := &ledger{}
	p := policy.NewPipeline("test", retry.New(retry.Config{
		BackOff: func() backoff.BackOff { t.Error("a wait"); return instantly() }, Budget: retry.NewBudget("test", retry.BudgetConfig{}),
	})).Observed(l)
	_, err := say(t.Context(), dial(t, serve(t, srv), p), "")
	requireCode(t, codes.Internal, err)
	assert.EqualValues(t, 1, srv.calls.Load())
	assert.Equal(t, map[string]int64{"not_retryable": 1}, l.counts("switchgear.retry.calls"))
	assert.Empty(t, l.told(observe.Attempt))
	var mark *backoff.PermanentError
	assert.NotErrorAs(t, err, &mark, "the mark must not stop a retry of the caller's")
}

func TestAMarkIsGoneWhereverItStands(t *testing.T) {
	s := &seen{}
	cause := errors.New("wrapped")
	wrap := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		return errors.Join(cause, fn(ctx))
	})
	var mark *backoff.PermanentError
	p := policy.NewPipeline("test", wrap, policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		err := s.Do(ctx, fn)
		assert.ErrorAs(t, err, &mark, "while the policies run")
		return err
	}))
	_, err := say(t.Context(), dial(t, serve(t, saying(codes.Internal)), p), "")
	requireCode(t, codes.Internal, err)
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, err, s.all()[0], "the tree is whole")
	assert.NotErrorAs(t, err, &mark, "afterwards")
}

func TestAPolicyThatRunsAFinalCallAgainIsRefused(t *testing.T) {
	for name, row := range map[string]struct {
		code   codes.Code
		replay context.Context
		sends  int
	}{
		"answer":               {codes.OK, t.Context(), 1},
		"final":                {codes.Internal, t.Context(), 1},
		"unserved":             {codes.Unavailable, t.Context(), 3},
		"replayable":           {codes.Internal, grpcx.WithReplay(t.Context(), true), 3},
		"not replayable":       {codes.Unavailable, grpcx.WithReplay(t.Context(), false), 1},
		"replayable, answered": {codes.NotFound, grpcx.WithReplay(t.Context(), true), 3},
	} {
		t.Run(name, func(t *testing.T) {
			srv, s := saying(row.code), &seen{}
			_, err := say(row.replay, dial(t, serve(t, srv), policy.NewPipeline("test", again(3), s)), "")
			assert.EqualValues(t, row.sends, srv.calls.Load())
			if row.sends == 3 {
				requireCode(t, row.code, err)
				return
			}
			refusal := s.all()[2]
			require.ErrorIs(t, refusal, grpcx.ErrNotReplayable)
			require.ErrorIs(t, refusal, policy.ErrRejected)
			var rejected *policy.RejectedError
			require.ErrorAs(t, refusal, &rejected)
			assert.Equal(t, "grpc", rejected.Policy)
			require.ErrorIs(t, err, grpcx.ErrNotReplayable)
			if row.code != codes.OK {
				requireCode(t, row.code, err) // how the one send went
			}
		})
	}
}

func TestAsManyAttemptsAreSentAsAreConfigured(t *testing.T) {
	for _, n := range []int{1, 3, 8} {
		srv, l := saying(codes.Unavailable), &ledger{}
		_, err := say(t.Context(), dial(t, serve(t, srv), policy.NewPipeline("test", attempts(n)).Observed(l)), "")
		requireCode(t, codes.Unavailable, err)
		assert.EqualValues(t, n, srv.calls.Load())
		assert.EqualValues(t, n-1, l.counts("switchgear.retry.attempts")["retry failure"])
		var exhausted *retry.ExhaustedError
		require.ErrorAs(t, err, &exhausted)
		assert.Equal(t, n, exhausted.Attempts)
		assert.Contains(t, status.Convert(err).Message(), "gave up after "+strconv.Itoa(n))
	}
}

func TestAServersHintIsHeeded(t *testing.T) {
	info := func(d time.Duration) *errdetails.RetryInfo {
		return &errdetails.RetryInfo{RetryDelay: durationpb.New(d)}
	}
	for name, row := range map[string]struct {
		pushback []string
		info     *errdetails.RetryInfo
		hint     time.Duration // 0: none
		final    bool
	}{
		"none":                    {},
		"pushback":                {pushback: []string{"2500"}, hint: 2500 * time.Millisecond},
		"pushback of nothing":     {pushback: []string{"0"}},
		"negative pushback":       {pushback: []string{"-1"}, final: true},
		"unreadable pushback":     {pushback: []string{"soon"}, final: true},
		"empty pushback":          {pushback: []string{""}, final: true},
		"fractional pushback":     {pushback: []string{"1.5"}, final: true},
		"two pushbacks":           {pushback: []string{"1", "2"}, final: true},
		"pushback without end":    {pushback: []string{"9223372036854775807"}, hint: math.MaxInt64},
		"pushback beyond numbers": {pushback: []string{"99999999999999999999"}, final: true},
		"info":                    {info: info(3 * time.Second), hint: 3 * time.Second},
		"info of nothing":         {info: info(0)},
		"negative info":           {info: info(-time.Second)},
		"info without end":        {info: &errdetails.RetryInfo{RetryDelay: &durationpb.Duration{Seconds: math.MaxInt64}}, hint: math.MaxInt64},
		"both":                    {pushback: []string{"1000"}, info: info(time.Hour), hint: time.Second},
		"both, final":             {pushback: []string{"-1"}, info: info(time.Hour), final: true},
	} {
		t.Run(name, func(t *testing.T) {
			srv := &service{say: func(ctx context.Context, _ *text) (*text, error) {
				st := status.New(codes.Unavailable, "busy")
				var err error
				if row.pushback != nil {
					err = grpc.SetTrailer(ctx, pushback(row.pushback...))
				}
				if row.info != nil && err == nil {
					st, err = st.WithDetails(row.info)
				}
				if err != nil {
					t.Error(err)
				}
				return nil, st.Err()
			}}
			l := &ledger{}
			p := policy.NewPipeline("test", retry.New(retry.Config{
				Attempts: 2, BackOff: instantly, Budget: retry.Unlimited, MaxRetryAfter: 1, // stops at any hint
			})).Observed(l)
			for _, ctx := range []context.Context{t.Context(), grpcx.WithReplay(t.Context(), true)} {
				before, told := srv.calls.Load(), len(l.told(observe.Exhausted))
				_, err := say(ctx, dial(t, serve(t, srv), p), "")
				requireCode(t, codes.Unavailable, err)
				switch {
				case row.final:
					assert.EqualValues(t, 1, srv.calls.Load()-before)
					require.NotErrorIs(t, err, retry.ErrRetryAfter)
				case row.hint > 0:
					assert.EqualValues(t, 1, srv.calls.Load()-before)
					require.ErrorIs(t, err, retry.ErrRetryAfter)
					assert.Equal(t, row.hint, l.told(observe.Exhausted)[told].Delay)
				default:
					assert.EqualValues(t, 2, srv.calls.Load()-before)
				}
			}
		})
	}
}

func TestAPushbackToStopHoldsForAnyPolicy(t *testing.T) {
	srv := &service{say: func(ctx context.Context, _ *text) (*text, error) {
		check(t, grpc.SetTrailer(ctx, pushback("-1")))
		return nil, status.Error(codes.Unavailable, "leave me alone")
	}}
	_, err := say(grpcx.WithReplay(t.Context(), true), dial(t, serve(t, srv), again(3)), "")
	requireCode(t, codes.Unavailable, err)
	require.ErrorIs(t, err, grpcx.ErrNotReplayable)
	assert.EqualValues(t, 1, srv.calls.Load())
}

func TestTheCallerSeesTheMetadataOfTheDecidingAttempt(t *testing.T) {
	var n atomic.Int64
	srv := &service{say: func(ctx context.Context, in *text) (*text, error) {
		md := metadata.Pairs("attempt", strconv.FormatInt(n.Add(1), 10))
		check(t, grpc.SetHeader(ctx, md))
		check(t, grpc.SetTrailer(ctx, md))
		if in.GetValue() == "fail" || n.Load() < 3 {
			return nil, status.Error(codes.Unavailable, "busy")
		}
		return in, nil
	}}
	addr := serve(t, srv)
	conn := dial(t, addr, attempts(3))
	for _, what := range []string{"succeed", "fail"} {
		n.Store(0)
		var (
			header, trailer metadata.MD
			from            peer.Peer
			finished        []error
		)
		_, err := say(t.Context(), conn, what, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from),
			grpc.OnFinish(func(err error) { finished = append(finished, err) }))
		assert.Equal(t, what == "fail", err != nil)
		assert.Equal(t, []string{"3"}, header.Get("attempt"), what)
		assert.Equal(t, []string{"3"}, trailer.Get("attempt"), what)
		assert.Equal(t, addr, from.Addr.String(), what)
		assert.Equal(t, []error{err}, finished, "once, with what the caller gets")
	}
}

func TestTheOptionsOfADialReachEveryAttempt(t *testing.T) {
	srv := saying(codes.Unavailable, codes.Unavailable, codes.OK)
	conn := dial(t, serve(t, srv), attempts(3), grpc.WithDefaultCallOptions(grpc.OnFinish(func(error) {}), grpc.MaxCallSendMsgSize(3)))
	_, err := say(t.Context(), conn, "a")
	require.NoError(t, err)
	_, err = say(t.Context(), conn, "too long a text")
	requireCode(t, codes.ResourceExhausted, err)
}

func TestWhatTheCallerSeesIsFilledByNoAttempt(t *testing.T) {
	var (
		header, trailer metadata.MD
		from            peer.Peer
	)
	inspect := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		for _, o := range opts {
			switch o := o.(type) {
			case grpc.HeaderCallOption:
				assert.NotSame(t, &header, o.HeaderAddr)
			case grpc.TrailerCallOption:
				assert.NotSame(t, &trailer, o.TrailerAddr)
			case grpc.PeerCallOption:
				assert.NotSame(t, &from, o.PeerAddr)
			case grpc.OnFinishCallOption:
				t.Error("an attempt is not the call")
			}
		}
		return invoker(ctx, method, req, reply, cc, opts...)
	}
	conn := dial(t, serve(t, &service{}), nil, grpc.WithChainUnaryInterceptor(grpcx.UnaryClientInterceptor(attempts(2)), inspect))
	_, err := say(t.Context(), conn, "", grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from), grpc.OnFinish(func(error) {}))
	require.NoError(t, err)
	assert.NotNil(t, header)
	assert.NotNil(t, from.Addr)
}

func TestAnAttemptThatWasOvertakenBeforeItBeganSendsNothing(t *testing.T) {
	dead := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return fn(ctx)
	})
	sends := 0
	conn := dial(
		t, serve(t, &service{}), nil,
		grpc.WithChainUnaryInterceptor(grpcx.UnaryClientInterceptor(dead), func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
			sends++
			return nil
		}),
		grpc.WithChainStreamInterceptor(grpcx.StreamClientInterceptor(dead), func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, grpc.Streamer, ...grpc.CallOption) (grpc.ClientStream, error) {
			sends++
			return nil, errors.New("no")
		}),
	)
	_, err := say(t.Context(), conn, "")
	requireCode(t, codes.Canceled, err)
	_, err = list(t.Context(), conn, "")
	requireCode(t, codes.Canceled, err)
	assert.Zero(t, sends)
}

func TestOverlappingAttemptsShareNothing(t *testing.T) {
	var n atomic.Int64
	holdFirst := make(chan struct{})
	var asked sync.Map
	srv := &service{say: func(ctx context.Context, in *text) (*text, error) {
		i := n.Add(1)
		asked.Store(in.GetValue(), true)
		check(t, grpc.SetHeader(ctx, metadata.Pairs("attempt", strconv.FormatInt(i, 10))))
		check(t, grpc.SetTrailer(ctx, metadata.Pairs("attempt", strconv.FormatInt(i, 10))))
		return wrapperspb.String(in.GetValue() + strconv.FormatInt(i, 10)), nil
	}}
	late := make(chan struct{})
	// The first attempt to begin is held up below the policies, and goes on once the call has returned.
	var began atomic.Int64
	slow := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if began.Add(1) != 1 {
			return invoker(ctx, method, req, reply, cc, opts...)
		}
		defer close(late)
		<-holdFirst
		return invoker(context.WithoutCancel(ctx), method, req, reply, cc, opts...)
	}
	hedge := retry.NewHedge(retry.HedgeConfig{Delay: time.Millisecond, Budget: retry.Unlimited})
	conn := dial(t, serve(t, srv), nil, grpc.WithChainUnaryInterceptor(grpcx.UnaryClientInterceptor(hedge), slow))
	var header, trailer metadata.MD
	var from peer.Peer
	req, reply := wrapperspb.String("reply "), new(text)
	finished := 0
	err := conn.Invoke(grpcx.WithReplay(t.Context(), true), methodSay, req, reply, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from),
		grpc.OnFinish(func(error) { finished++ }))
	require.NoError(t, err)
	req.Value = "changed" // it is the caller's again
	close(holdFirst)
	reply.Value += "!"
	<-late
	assert.EqualValues(t, 2, n.Load(), "both reached the server")
	_, changed := asked.Load("changed")
	assert.False(t, changed, "the late one asks what it was to ask")
	assert.Equal(t, "reply 1!", reply.GetValue())
	assert.Equal(t, []string{"1"}, header.Get("attempt"))
	assert.Equal(t, []string{"1"}, trailer.Get("attempt"))
	assert.Equal(t, 1, finished)
}

func TestAHedgeNeedsReplay(t *testing.T) {
	release := make(chan struct{})
	srv := &service{say: func(ctx context.Context, in *text) (*text, error) {
		<-release
		return in, nil
	}}
	l, s := &ledger{}, &seen{}
	watch := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		err := s.Do(ctx, fn)
		if errors.Is(err, grpcx.ErrNotReplayable) {
			close(release)
		}
		return err
	})
	p := policy.NewPipeline("test", retry.NewHedge(retry.HedgeConfig{Delay: time.Millisecond}), watch).Observed(l)
	reply, err := say(t.Context(), dial(t, serve(t, srv), p), "once")
	require.NoError(t, err)
	assert.Equal(t, "once", reply)
	assert.EqualValues(t, 1, srv.calls.Load())
	assert.Len(t, s.all(), 2)
}

func TestALosingHedgeSaysNothingOfTheDependency(t *testing.T) {
	var n atomic.Int64
	srv := &service{say: func(ctx context.Context, in *text) (*text, error) {
		if n.Add(1) == 1 {
			<-ctx.Done()
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		return in, nil
	}}
	dependency := breaker.New("test", breaker.Config{Consecutive: 1})
	l := &ledger{}
	p := policy.NewPipeline("test", retry.NewHedge(retry.HedgeConfig{Delay: time.Millisecond}), dependency).Observed(l)
	reply, err := say(grpcx.WithReplay(t.Context(), true), dial(t, serve(t, srv), p), "fast")
	require.NoError(t, err)
	assert.Equal(t, "fast", reply)
	require.Eventually(t, func() bool { return !dependency.InUse() }, eventually, time.Millisecond)
	assert.Zero(t, dependency.Stats().Failed)
	assert.Equal(t, breaker.Closed, dependency.State())
}

func TestACallerWhoLeavesDuringAReconnectIsNotRetriedFor(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().String()
	require.NoError(t, listener.Close()) // nobody listens
	l := &ledger{}
	conn := dial(t, addr, policy.NewPipeline("test", attempts(100), policy.Timeout(time.Hour)).Observed(l))

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = say(ctx, conn, "", grpc.WaitForReady(true))
	requireCode(t, codes.DeadlineExceeded, err)
	require.NotErrorIs(t, err, policy.ErrTimeout, "it was the caller's own")

	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	stop := time.AfterFunc(50*time.Millisecond, cancel)
	defer stop.Stop()
	_, err = say(ctx, conn, "", grpc.WaitForReady(true))
	requireCode(t, codes.Canceled, err)
	assert.Empty(t, l.told(observe.Attempt))
}

func TestACallerWhoCancelsBetweenAttemptsGetsThatCode(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	srv := saying(codes.Unavailable)
	canceling := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		defer cancel() // as the retry is about to wait
		return fn(ctx)
	})
	_, err := say(ctx, dial(t, serve(t, srv), policy.NewPipeline("test", attempts(3), canceling)), "")
	requireCode(t, codes.Canceled, err)
	require.ErrorIs(t, err, context.Canceled)
	assert.EqualValues(t, 1, srv.calls.Load())
}

func TestAServersOwnCanceledIsAnAnswer(t *testing.T) {
	s := &seen{}
	_, err := say(t.Context(), dial(t, serve(t, saying(codes.Canceled)), s), "")
	requireCode(t, codes.Canceled, err)
	assert.Equal(t, []error{nil}, s.all())
}

func TestTheCodesOfContextsMatchTheErrorsOfContexts(t *testing.T) {
	s := &seen{}
	_, err := say(t.Context(), dial(t, serve(t, saying(codes.DeadlineExceeded)), s), "")
	requireCode(t, codes.DeadlineExceeded, err)
	require.ErrorIs(t, s.all()[0], context.DeadlineExceeded)
	assert.NotErrorIs(t, s.all()[0], context.Canceled)

	// So a retry keeps the last real failure, not the cancellation that came after it.
	ctx, cancel := context.WithCancel(t.Context())
	next := turns(status.Error(codes.Unavailable, "the real one"), nil)
	srv := &service{say: func(ctx context.Context, in *text) (*text, error) {
		if err := next(); err != nil {
			return nil, err
		}
		cancel()
		<-ctx.Done()
		return in, nil
	}}
	_, err = say(ctx, dial(t, serve(t, srv), attempts(3)), "")
	requireCode(t, codes.Canceled, err)
	var exhausted *retry.ExhaustedError
	require.ErrorAs(t, err, &exhausted)
	require.ErrorIs(t, exhausted.Reason, context.Canceled)
	requireCode(t, codes.Unavailable, exhausted.Last)
}

func TestACallersCancellationIsIgnoredByABreaker(t *testing.T) {
	began := make(chan struct{})
	srv := &service{say: func(ctx context.Context, _ *text) (*text, error) {
		close(began)
		<-ctx.Done()
		return nil, status.Error(codes.Canceled, "gone")
	}}
	l := &ledger{}
	dependency := breaker.New("test", breaker.Config{Consecutive: 1, Observer: l})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	_, err := say(ctx, dial(t, serve(t, srv), dependency), "")
	requireCode(t, codes.Canceled, err)
	assert.Equal(t, map[string]int64{"closed ignored": 1}, l.counts("switchgear.circuit_breaker.calls"))
}

func TestARefusalIsAStatusThatTellsWhenToComeBack(t *testing.T) {
	hold := make(chan struct{})
	srv := &service{say: func(context.Context, *text) (*text, error) { <-hold; return nil, nil }}
	addr := serve(t, srv)
	now := time.Now()
	clock := func() time.Time { return now }

	open := breaker.New("test", breaker.Config{Cooldown: 3 * time.Second, Jitter: -1, Clock: clock})
	open.Trip()
	forced := breaker.New("test", breaker.Config{})
	forced.ForceOpen()
	full := bulkhead.New("test", bulkhead.Config{Max: 1})
	release, err := full.Acquire(t.Context())
	require.NoError(t, err)
	defer release()
	spent := ratelimit.New("test", ratelimit.Config{Rate: 0.5, Burst: 1, Clock: clock})
	require.NoError(t, spent.Allow(t.Context()))
	stranger := policy.PolicyFunc(func(context.Context, policy.Func) error { return policy.ErrRejected })

	for name, row := range map[string]struct {
		policy policy.Policy
		code   codes.Code
		wait   time.Duration
		is     error
	}{
		"open breaker":       {open, codes.Unavailable, 3 * time.Second, breaker.ErrCircuitOpen},
		"forced breaker":     {forced, codes.Unavailable, 0, breaker.ErrCircuitOpen},
		"full bulkhead":      {full, codes.ResourceExhausted, 0, bulkhead.ErrFull},
		"rate limiter":       {spent, codes.ResourceExhausted, 2 * time.Second, ratelimit.ErrLimited},
		"stranger":           {stranger, codes.Unavailable, 0, policy.ErrRejected},
		"retry over breaker": {policy.NewPipeline("test", attempts(3), open), codes.Unavailable, 3 * time.Second, breaker.ErrCircuitOpen},
	} {
		for side, call := range map[string]func() error{
			"unary":  func() error { _, err := say(t.Context(), dial(t, addr, row.policy), ""); return err },
			"stream": func() error { _, err := list(t.Context(), dial(t, addr, row.policy), ""); return err },
		} {
			err := call()
			requireCode(t, row.code, err)
			require.ErrorIs(t, err, row.is, name)
			require.ErrorIs(t, err, policy.ErrRejected, name)
			requireRetryInfo(t, row.wait, err)
			_, ok := status.FromError(err)
			require.True(t, ok, "%s %s", name, side)
		}
	}
	assert.Zero(t, srv.calls.Load())
	close(hold)
}

// requireRetryInfo requires a RetryInfo of that wait, or none for 0.
func requireRetryInfo(t *testing.T, want time.Duration, err error) {
	t.Helper()
	var got time.Duration
	for _, d := range status.Convert(err).Details() {
		info, ok := d.(*errdetails.RetryInfo)
		require.True(t, ok)
		got = info.GetRetryDelay().AsDuration()
	}
	require.Equal(t, want, got, "%v", err)
}

func TestARealFailureStandsBeforeTheRefusalThatEndedItsRetries(t *testing.T) {
	dependency := breaker.New("test", breaker.Config{Consecutive: 2})
	var trailer metadata.MD
	srv := &service{say: func(ctx context.Context, _ *text) (*text, error) {
		check(t, grpc.SetTrailer(ctx, metadata.Pairs("from", "server")))
		return nil, status.Error(codes.ResourceExhausted, "quota")
	}}
	_, err := say(t.Context(), dial(t, serve(t, srv), policy.NewPipeline("test", attempts(5), dependency)), "", grpc.Trailer(&trailer))
	requireCode(t, codes.ResourceExhausted, err)
	require.ErrorIs(t, err, breaker.ErrCircuitOpen)
	assert.Equal(t, []string{"server"}, trailer.Get("from"))
	assert.EqualValues(t, 2, srv.calls.Load())
}

func TestAFallbackSuppliesTheReply(t *testing.T) {
	cached := wrapperspb.String("cached")
	addr := serve(t, saying(codes.Unavailable))
	supply := func(v any) policy.Policy {
		return policy.FallbackValue(func(context.Context, error) (any, error) { return v, nil })
	}

	reply := wrapperspb.String("stale")
	err := dial(t, addr, supply(cached)).Invoke(t.Context(), methodSay, new(text), reply)
	require.NoError(t, err)
	assert.Equal(t, "cached", reply.GetValue())
	reply.Value = "changed"
	assert.Equal(t, "cached", cached.GetValue(), "it is a copy")

	err = dial(t, addr, supply(wrapperspb.Int64(1))).Invoke(t.Context(), methodSay, new(text), reply)
	requireCode(t, codes.Internal, err)
	err = dial(t, addr, supply("no message")).Invoke(t.Context(), methodSay, new(text), reply)
	requireCode(t, codes.Internal, err)

	nothing := policy.Fallback(func(context.Context, error) error { return nil })
	reply = wrapperspb.String("stale")
	require.NoError(t, dial(t, addr, nothing).Invoke(t.Context(), methodSay, new(text), reply))
	assert.Empty(t, reply.GetValue())

	own := status.Error(codes.FailedPrecondition, "try the other one")
	other := policy.Fallback(func(context.Context, error) error { return own })
	_, err = say(t.Context(), dial(t, addr, other), "")
	requireCode(t, codes.FailedPrecondition, err)
	require.ErrorIs(t, err, own)
	bare := policy.PolicyFunc(func(context.Context, policy.Func) error { return own })
	_, err = say(t.Context(), dial(t, addr, bare), "")
	assert.Equal(t, own, err, "as it is")
}

func TestAPanicBelowThePoliciesReachesTheCaller(t *testing.T) {
	type mine struct{ int }
	bomb := func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
		panic(mine{7})
	}
	dependency := breaker.New("test", breaker.Config{Consecutive: 1})
	hedge := retry.NewHedge(retry.HedgeConfig{Delay: time.Hour})
	conn := dial(t, serve(t, &service{}), nil,
		grpc.WithChainUnaryInterceptor(grpcx.UnaryClientInterceptor(policy.NewPipeline("test", dependency, hedge)), bomb))
	assert.PanicsWithValue(t, mine{7}, func() { _, _ = say(t.Context(), conn, "") })
	assert.Equal(t, breaker.Open, dependency.State())
}

func TestAPolicyThatRunsACallAfterItHasReturnedSendsNothing(t *testing.T) {
	srv := &service{}
	var kept func() error
	keep := policy.PolicyFunc(func(ctx context.Context, fn policy.Func) error {
		kept = func() error { return fn(ctx) }
		return errors.New("no")
	})
	conn := dial(t, serve(t, srv), keep)
	_, err := say(t.Context(), conn, "")
	requireCode(t, codes.Unknown, err)
	require.Error(t, kept())
	_, err = list(t.Context(), conn, "")
	requireCode(t, codes.Unknown, err)
	require.Error(t, kept())
	assert.Zero(t, srv.calls.Load())
}

func TestInterceptorsNest(t *testing.T) {
	srv := saying(codes.Unavailable)
	dependency := breaker.New("test", breaker.Config{Consecutive: 2})
	conn := dial(t, serve(t, srv), nil, grpc.WithChainUnaryInterceptor(
		grpcx.UnaryClientInterceptor(attempts(5)),
		grpcx.UnaryClientInterceptor(dependency),
	))
	var trailer metadata.MD
	_, err := say(t.Context(), conn, "", grpc.Trailer(&trailer))
	requireCode(t, codes.Unavailable, err)
	require.ErrorIs(t, err, breaker.ErrCircuitOpen, "the outer retry sees the refusal for what it is")
	assert.EqualValues(t, 2, srv.calls.Load())
}

// raw is a message that is not of protobuf's.
type raw struct{ Data []byte }

// rawCodec passes raw messages, and needs to find them where it is told to.
type rawCodec struct{}

func (rawCodec) Name() string { return "raw" }
func (rawCodec) Marshal(v any) ([]byte, error) {
	return proto.Marshal(wrapperspb.String(string(v.(*raw).Data)))
}

func (rawCodec) Unmarshal(data []byte, v any) error {
	var m text
	err := proto.Unmarshal(data, &m)
	v.(*raw).Data = []byte(m.GetValue())
	return err
}

func TestOtherMessagesThanProtobufsPass(t *testing.T) {
	addr := serve(t, &service{}, grpc.ForceServerCodec(serverCodec{}))
	conn := dial(t, addr, attempts(2), grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{})))
	reply := new(raw)
	require.NoError(t, conn.Invoke(grpcx.WithReplay(t.Context(), true), methodSay, &raw{[]byte("bytes")}, reply))
	assert.Equal(t, "bytes", string(reply.Data))
}

type serverCodec struct{}

func (serverCodec) Name() string                  { return "raw" }
func (serverCodec) Marshal(v any) ([]byte, error) { return proto.Marshal(v.(proto.Message)) }
func (serverCodec) Unmarshal(data []byte, v any) error {
	return proto.Unmarshal(data, v.(proto.Message))
}
