package grpcx

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// plain is a message of some other codec's.
type plain struct {
	to   *string // where that codec decodes to
	data string
}

func newInfo() *errdetails.ErrorInfo {
	m := &errdetails.ErrorInfo{Domain: "here", Metadata: map[string]string{"k": "v"}}
	m.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 7))
	return m
}

func TestAMessageIsMovedWhole(t *testing.T) {
	dst := &errdetails.ErrorInfo{Reason: "stale", Metadata: map[string]string{"old": "v"}}
	src := newLike(dst).(*errdetails.ErrorInfo)
	assert.True(t, proto.Equal(new(errdetails.ErrorInfo), src), "it is new")
	proto.Merge(src, newInfo())
	move(dst, src)
	assert.True(t, proto.Equal(newInfo(), dst), "got %v, want %v", dst, newInfo())
}

func TestAMessageIsCopiedWhole(t *testing.T) {
	dst, src := &errdetails.ErrorInfo{Reason: "stale"}, newInfo()
	require.NoError(t, copyTo(dst, src))
	assert.True(t, proto.Equal(newInfo(), dst), "got %v, want %v", dst, newInfo())
	dst.Metadata["k"] = "changed"
	assert.Equal(t, "v", src.GetMetadata()["k"])
	require.Error(t, copyTo(dst, new(errdetails.RetryInfo)))
	require.Error(t, copyTo(dst, nil))
	require.Error(t, copyTo(nil, src))
}

func TestAMessageOfAnotherCodecIsMovedWhole(t *testing.T) {
	place := ""
	dst := &plain{to: &place, data: "stale"}
	src := newLike(dst).(*plain)
	assert.NotSame(t, dst, src)
	assert.Same(t, &place, src.to, "what its codec needs is there")
	src.data = "fresh"
	move(dst, src)
	assert.Equal(t, plain{&place, "fresh"}, *dst)
	require.NoError(t, copyTo(dst, &plain{data: "supplied"}))
	assert.Equal(t, "supplied", dst.data)

	for _, odd := range []any{nil, "text", (*plain)(nil)} {
		assert.Equal(t, odd, newLike(odd))
		assert.NotPanics(t, func() { move(odd, odd); clearMessage(odd) })
	}
}
