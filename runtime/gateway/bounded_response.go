package gateway

import (
	"net/http"
	"time"
)

const (
	// writeWithin limits how long a write may wait for a client that does not read. After that the
	// connection ends, together with its requests.
	writeWithin = 30 * time.Second
	// slowestClient is the minimum rate, in bytes per second, at which a client must read.
	slowestClient = 64 << 10
	// pieceSize is how many bytes of a response have a time limit of their own. A client on a slow line reads a large
	// result for longer than any limit that ends one which does not read.
	pieceSize = 256 << 10
)

// writeTime returns the time limit for a write of n bytes.
func writeTime(n int) time.Duration {
	return writeWithin + time.Duration(n)*time.Second/slowestClient
}

// boundedResponse sets a deadline for each piece that is written to a client, by the gateway or by the SDK. It
// replaces http.Server.WriteTimeout, which limits the whole response and so would end streams.
type boundedResponse struct {
	http.ResponseWriter
	control *http.ResponseController
}

func boundResponse(w http.ResponseWriter) *boundedResponse {
	return &boundedResponse{w, http.NewResponseController(w)}
}

// setDeadline sets the deadline for a write of n bytes. Some transports do not support deadlines.
func (b *boundedResponse) setDeadline(n int) {
	_ = b.control.SetWriteDeadline(time.Now().Add(writeTime(n)))
}

// clearDeadline removes the deadline. HTTP/2 would end an idle stream whose deadline has passed.
func (b *boundedResponse) clearDeadline() { _ = b.control.SetWriteDeadline(time.Time{}) }

// Write implements http.ResponseWriter.
func (b *boundedResponse) Write(data []byte) (written int, err error) {
	defer b.clearDeadline()
	for {
		piece := data[:min(len(data), pieceSize)]
		b.setDeadline(len(piece))
		n, err := b.ResponseWriter.Write(piece)
		written += n
		if data = data[len(piece):]; err != nil || len(data) == 0 {
			return written, err
		}
	}
}

// Flush implements http.Flusher.
func (b *boundedResponse) Flush() { _ = b.FlushError() } // fails if the client has disconnected

// FlushError implements the interface that http.ResponseController uses to flush.
func (b *boundedResponse) FlushError() error {
	b.setDeadline(0)
	defer b.clearDeadline()
	return b.control.Flush()
}

// Unwrap implements the interface that http.ResponseController uses to find the writer.
func (b *boundedResponse) Unwrap() http.ResponseWriter { return b.ResponseWriter }
