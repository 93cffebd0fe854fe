package httpx

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/switchgear-go/switchgear/policy"
)

const (
	drainBytes = 64 << 10
	drainTime  = 100 * time.Millisecond
)

// send is one request on its way, and its response.
type send struct {
	req     *http.Request
	attempt context.Context
	ctx     *sendContext // nil where the attempt lives as long as the caller
	own     sendContext  // room for ctx
	resp    *http.Response
	failure *StatusError // what policies are told of resp; nil if it is no failure
	body    body
}

// start makes the request of the send, which begins now for the attempt of ctx. Where runs may overlap, the request shares
// nothing that the caller may change once it has its response.
func (s *send) start(req *http.Request, ctx context.Context) {
	s.attempt = ctx
	own, alone := s.own.start(req.Context(), ctx)
	if own {
		s.ctx = &s.own
		ctx = s.ctx
	}
	if alone {
		s.req = req.WithContext(ctx)
	} else {
		s.req = req.Clone(ctx)
	}
}

// do sends the request.
func (s *send) do(base http.RoundTripper) (*http.Response, error) {
	returned := false
	defer func() {
		if !returned {
			s.end()
		}
	}()
	resp, err := base.RoundTrip(s.req)
	returned = true
	if resp != nil && resp.Body == nil {
		resp.Body = http.NoBody
	}
	switch {
	case err != nil && resp != nil: // against its contract
		_ = resp.Body.Close()
	case err == nil && resp == nil:
		err = errNothing
	case err == nil && s.ctx != nil && !s.ctx.outlive():
		_ = resp.Body.Close() // it came as the attempt ended, and its body has died
		err = s.attempt.Err()
	}
	if err != nil {
		s.end()
		return nil, s.explain(err)
	}
	s.resp = resp
	s.keepAlive()
	return resp, nil
}

// explain returns the error of a send that did not get a response. Where the attempt's end was its end, HTTP/2 tells that the
// context has ended, and HTTP/1 why; this tells why.
func (s *send) explain(err error) error {
	ended := s.attempt.Err()
	if ended == nil || err != ended && err != context.Cause(s.attempt) { //nolint:errorlint // what stands around them has more to tell
		return err
	}
	return endOf(s.attempt)
}

// endOf returns why ctx has ended. A timeout adds itself to the error of whatever it ended.
func endOf(ctx context.Context) error {
	cause := context.Cause(ctx)
	if _, ok := cause.(*policy.TimeoutError); ok { //nolint:errorlint // the very cause
		return ctx.Err()
	}
	return cause
}

// keepAlive arranges that the context of the send ends with the body of the response, or the caller's before that.
func (s *send) keepAlive() {
	if s.ctx == nil || s.ctx.stopCaller == nil {
		return // as it is without a Transport
	}
	if _, writable := s.resp.Body.(io.Writer); writable || s.resp.Body == http.NoBody {
		s.ctx.release() // after a 101 the connection is the caller's, whose type must stay what it is
		return
	}
	s.body = body{s.resp.Body, s.ctx}
	s.resp.Body = &s.body
}

// end ends what is left of a send without a response.
func (s *send) end() {
	if s.ctx != nil {
		s.ctx.release()
		s.ctx.end(context.Canceled)
	}
}

func (s *send) close() { _ = s.resp.Body.Close() }

func closeAll(sends []*send) {
	for _, s := range sends {
		s.close()
	}
}

// drain reads the rest of the response, if that is quick, so that the connection can be used again. It ends with ctx, that
// of the next attempt.
func (s *send) drain(ctx context.Context) {
	defer s.close()
	if s.resp.ContentLength > drainBytes {
		return
	}
	timer := time.AfterFunc(drainTime, s.close) // a Close ends the Read of a response's body
	defer timer.Stop()
	defer context.AfterFunc(ctx, s.close)()
	_, _ = io.CopyN(io.Discard, s.resp.Body, drainBytes)
}

// body is the body of a response whose send has a context of its own.
type body struct {
	io.ReadCloser
	ctx *sendContext
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ctx.release()
	}
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.ctx.release()
	b.ctx.end(context.Canceled)
	return err
}
