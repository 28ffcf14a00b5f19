package protocol

import "context"

type roomKey struct{}

// WithRoom returns a context whose requests ask take for the memory of a result before they encode
// it. size is the size of the stored result in bytes. An error of take is that of the request.
func WithRoom(ctx context.Context, take func(ctx context.Context, size int) error) context.Context {
	return context.WithValue(ctx, roomKey{}, take)
}

// TakeRoom takes the memory to encode a result of a size.
func TakeRoom(ctx context.Context, size int) error {
	take, ok := ctx.Value(roomKey{}).(func(context.Context, int) error)
	if !ok {
		return nil
	}
	return take(ctx, size)
}
