package grpcx

import (
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// callOptions are a call's options, split: what each send gets, and where the caller wants to see how the call went. Those
// places belong to the caller alone; sends may overlap, and end when the caller has gone on.
type callOptions struct {
	each     []grpc.CallOption
	headers  []*metadata.MD
	trailers []*metadata.MD
	peers    []*peer.Peer
	finish   []func(error)
}

func splitOptions(opts []grpc.CallOption) (o callOptions) {
	o.each = opts
	taken := false
	for i, opt := range opts {
		if o.take(opt) {
			if !taken {
				o.each, taken = slices.Clone(opts[:i]), true
			}
		} else if taken {
			o.each = append(o.each, opt)
		}
	}
	return o
}

// take keeps an option that is not for sends, and reports whether it is one.
func (o *callOptions) take(opt grpc.CallOption) bool {
	switch opt := opt.(type) {
	case grpc.HeaderCallOption:
		o.headers = append(o.headers, opt.HeaderAddr)
	case grpc.TrailerCallOption:
		o.trailers = append(o.trailers, opt.TrailerAddr)
	case grpc.PeerCallOption:
		o.peers = append(o.peers, opt.PeerAddr)
	case grpc.OnFinishCallOption:
		o.finish = append(o.finish, opt.OnFinish)
	default:
		return false
	}
	return true
}

// with returns the options of a send that has some of its own.
func (o *callOptions) with(own ...grpc.CallOption) []grpc.CallOption {
	return slices.Concat(o.each, own)
}

// wants reports whether the caller wants to see more of a send than its trailer.
func (o *callOptions) wants() bool { return len(o.headers)+len(o.peers) > 0 }

// fill tells the caller how the call went: by the metadata of the send that decided it.
func (o *callOptions) fill(m *callMetadata) {
	for _, h := range o.headers {
		*h = m.header
	}
	for _, t := range o.trailers {
		*t = m.trailer
	}
	for _, p := range o.peers {
		*p = m.peer
	}
}

// finished tells those whom the caller asked to tell.
func (o *callOptions) finished(err error) {
	for _, f := range o.finish {
		f(err)
	}
}

// callMetadata is what a server tells beside its messages.
type callMetadata struct {
	header, trailer metadata.MD
	peer            peer.Peer
}
