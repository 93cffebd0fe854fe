package grpcx

import (
	"fmt"
	"reflect"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// newLike returns a message to receive in the place of m.
func newLike(m any) any {
	if m, ok := m.(proto.Message); ok {
		return m.ProtoReflect().New().Interface()
	}
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return m
	}
	like := reflect.New(v.Type().Elem())
	like.Elem().Set(v.Elem()) // a codec of the caller's may need what is in it
	return like.Interface()
}

// move makes dst what src is, a message of newLike(dst) which nobody uses any more.
func move(dst, src any) {
	if dst, ok := dst.(proto.Message); ok {
		proto.Reset(dst)
		to, from := dst.ProtoReflect(), src.(proto.Message).ProtoReflect()
		from.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
			to.Set(field, value)
			return true
		})
		to.SetUnknown(from.GetUnknown())
		return
	}
	if v := reflect.ValueOf(dst); v.Kind() == reflect.Pointer && !v.IsNil() {
		v.Elem().Set(reflect.ValueOf(src).Elem())
	}
}

// copyTo makes dst a copy of src, which a policy has supplied.
func copyTo(dst, src any) error {
	to, isProto := dst.(proto.Message)
	from, ok := src.(proto.Message)
	if isProto && ok && to.ProtoReflect().Descriptor() == from.ProtoReflect().Descriptor() {
		proto.Reset(to)
		proto.Merge(to, from)
		return nil
	}
	if !isProto && reflect.TypeOf(dst) == reflect.TypeOf(src) && reflect.TypeOf(dst).Kind() == reflect.Pointer {
		move(dst, src)
		return nil
	}
	return status.Error(codes.Internal, fmt.Sprintf("grpcx: the policy supplied a %T where the call returns a %T", src, dst))
}

// cloned returns a copy of a request, so that the caller has it back while sends that were overtaken may still read it.
func cloned(req any) any {
	if m, ok := req.(proto.Message); ok {
		return proto.Clone(m)
	}
	return req
}

// clear empties a reply that there is none for.
func clearMessage(m any) {
	if m, ok := m.(proto.Message); ok {
		proto.Reset(m)
	}
}
