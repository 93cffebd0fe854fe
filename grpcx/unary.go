package grpcx

import (
	"context"

	"google.golang.org/grpc"

	"github.com/switchgear-go/switchgear/policy"
)

// UnaryClientInterceptor returns an interceptor that runs each unary call of a client under p, such as a [policy.Pipeline]
// with a timeout, a retry and a breaker. It panics if p is nil. Put it first in a chain: what comes after it, such as what
// adds credentials to a context, runs for each attempt.
//
// A call is sent again after Unavailable and ResourceExhausted, and not after any other failure or beside a slow attempt,
// unless [WithReplay] says so. To a retry every other failure is final, as one marked [backoff.Permanent] is; a policy that
// runs the call again all the same gets a refusal for [ErrNotReplayable].
//
// A retry waits as long as a server asks it to by a grpc-retry-pushback-ms trailer or a RetryInfo. A pushback that is
// negative or cannot be read means not to try again.
//
// Each attempt has a reply, a header, a trailer and a peer of its own; the caller gets those of the attempt that decided the
// call. [grpc.OnFinish] is called once. With WithReplay the request is copied, since an attempt that was overtaken may read
// it after the call has returned.
//
// A [policy.FallbackValue] of any supplies the reply: a message of the call's type, which is copied. After a
// [policy.Fallback] the reply is empty.
func UnaryClientInterceptor(p policy.Policy) grpc.UnaryClientInterceptor {
	checkPolicy("UnaryClientInterceptor", p)
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		c := &unaryCall{
			ctx: ctx, method: method, req: req, reply: reply, cc: cc, invoker: invoker,
			options: splitOptions(opts),
			sends:   sends{replay: replayOf(ctx), overlaps: true},
		}
		if c.sends.replay == always {
			c.req = cloned(req)
		}
		err := c.run(p)
		c.options.finished(err)
		return err
	}
}

// unaryCall is one unary call of a client under its policies.
type unaryCall struct {
	ctx     context.Context // the caller's
	method  string
	req     any
	reply   any // the caller's
	cc      *grpc.ClientConn
	invoker grpc.UnaryInvoker
	options callOptions
	sends   sends
}

// answer is what one send of a unary call brought.
type answer struct {
	callMetadata
	reply   any
	err     error
	failure *failure // what policies see of err; nil if they see none
}

// run runs the call under p. The value beside the error tells which of the sends the policies took: they may overlap.
func (c *unaryCall) run(p policy.Policy) error {
	defer c.sends.close()
	value, err := policy.Get(c.ctx, p, c.send)
	c.sends.close()
	if err != nil {
		told, err := clientError(c.ctx, err, &c.sends)
		if told != nil {
			c.options.fill(&told.of.(*answer).callMetadata)
		}
		return err
	}
	a, ok := value.(*answer)
	switch {
	case value == nil: // a fallback's
		clearMessage(c.reply)
		return nil
	case !ok: // a fallback's, with a value
		return copyTo(c.reply, value)
	}
	c.options.fill(&a.callMetadata)
	switch {
	case a.err == nil:
		move(c.reply, a.reply)
	case a.failure == nil:
		return a.err
	default: // a policy has made a success of it
		clearMessage(c.reply)
	}
	return nil
}

// send sends the request once, for the attempt that ctx belongs to.
func (c *unaryCall) send(ctx context.Context) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // it was overtaken before it began
	}
	if err := c.sends.begin(); err != nil {
		return nil, err
	}
	a := &answer{reply: newLike(c.reply)}
	defer func() { c.sends.end(a.failure) }()
	a.err = c.invoker(ctx, c.method, c.req, a.reply, c.cc, c.optionsFor(a)...)
	awaitDeadline(ctx, a.err)
	if a.failure = c.sends.failure(ctx, a.err, a.trailer, a); a.failure != nil {
		return a, a.failure
	}
	return a, nil
}

func (c *unaryCall) optionsFor(a *answer) []grpc.CallOption {
	if !c.options.wants() {
		return c.options.with(grpc.Trailer(&a.trailer))
	}
	return c.options.with(grpc.Trailer(&a.trailer), grpc.Header(&a.header), grpc.Peer(&a.peer))
}
