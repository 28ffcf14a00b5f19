package gateway

import (
	"net/http"
	"time"
)

const (
	// writeWithin is how long a client may leave unread what it is sent once the
	// buffers are full; then the connection ends, and with it all that hangs on it.
	writeWithin = 30 * time.Second
	// slowestClient is the bytes a second that a client has to read of what is large.
	slowestClient = 64 << 10
)

// writeTime returns how long the write of n bytes may take.
func writeTime(n int) time.Duration {
	return writeWithin + time.Duration(n)*time.Second/slowestClient
}

// boundedResponse bounds each write to a client, whoever writes: what is answered
// here, and what the SDK writes. It takes the place of http.Server.WriteTimeout,
// which would bound the whole of a response, and so end streams.
type boundedResponse struct {
	http.ResponseWriter
	control *http.ResponseController
}

func boundResponse(w http.ResponseWriter) *boundedResponse {
	return &boundedResponse{w, http.NewResponseController(w)}
}

// limit sets the deadline for n bytes. Not every transport has one.
func (b *boundedResponse) limit(n int) { _ = b.control.SetWriteDeadline(time.Now().Add(writeTime(n))) }

// free takes the deadline away: HTTP/2 would end an idle stream at one that stays.
func (b *boundedResponse) free() { _ = b.control.SetWriteDeadline(time.Time{}) }

// Write implements http.ResponseWriter.
func (b *boundedResponse) Write(data []byte) (int, error) {
	b.limit(len(data))
	defer b.free()
	return b.ResponseWriter.Write(data)
}

// Flush implements http.Flusher.
func (b *boundedResponse) Flush() { _ = b.FlushError() } // a client that has left

// FlushError flushes for http.ResponseController.
func (b *boundedResponse) FlushError() error {
	b.limit(0)
	defer b.free()
	return b.control.Flush()
}

// Unwrap is for http.ResponseController.
func (b *boundedResponse) Unwrap() http.ResponseWriter { return b.ResponseWriter }
