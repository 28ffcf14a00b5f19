package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
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
//
// It also takes memory for each large write. If there is too little, it answers with an error, and
// all later writes fail.
type boundedResponse struct {
	http.ResponseWriter
	control *http.ResponseController
	ctx     context.Context
	share   share
	id      json.RawMessage // the request's, or nil
	begun   bool            // the header is written
	failed  error           // of a write that had too little memory
}

func boundResponse(w http.ResponseWriter) *boundedResponse {
	return &boundedResponse{ResponseWriter: w, control: http.NewResponseController(w)}
}

// WriteHeader implements http.ResponseWriter.
func (b *boundedResponse) WriteHeader(code int) {
	if b.failed != nil {
		return
	}
	b.begun = b.begun || code >= http.StatusOK
	b.ResponseWriter.WriteHeader(code)
}

// setDeadline sets the deadline for a write of n bytes. Some transports do not support deadlines.
func (b *boundedResponse) setDeadline(n int) {
	_ = b.control.SetWriteDeadline(time.Now().Add(writeTime(n)))
}

// clearDeadline removes the deadline. HTTP/2 would end an idle stream whose deadline has passed.
func (b *boundedResponse) clearDeadline() { _ = b.control.SetWriteDeadline(time.Time{}) }

// Write implements http.ResponseWriter.
func (b *boundedResponse) Write(data []byte) (written int, err error) {
	if b.failed != nil {
		return 0, b.failed
	}
	if len(data) > smallMessage && b.share.g != nil {
		return b.writeLarge(data)
	}
	return b.writePieces(data, nil)
}

// writeLarge takes the memory of an answer while it is written.
func (b *boundedResponse) writeLarge(data []byte) (written int, err error) {
	give, refusal := b.share.borrow(b.ctx, ofAnswers, len(data)*answerCopies-b.share.has(ofAnswers), len(data))
	if refusal != nil {
		b.refuse(refusal)
		return 0, b.failed
	}
	defer give()
	transfer := b.share.beginWriting(b.control)
	defer transfer.Close()
	return b.writePieces(data, transfer)
}

// refuse writes an error in the place of an answer. It writes nothing if it is too late for that.
func (b *boundedResponse) refuse(refusal *mcptask.Error) {
	switch {
	case !b.begun:
		maps.DeleteFunc(b.Header(), func(name string, _ []string) bool { // a page must be able to read the refusal
			return name != "Vary" && !strings.HasPrefix(name, "Access-Control-")
		})
		refuseMemory(b, b.id, refusal)
	case strings.HasPrefix(b.Header().Get("Content-Type"), "text/event-stream") && b.id != nil:
		_, _ = b.writePieces(wire.AppendEvent(nil, wire.EncodeReply(b.id, nil, refusal)), nil) // fails if the client has disconnected
	}
	b.failed = refusal
}

// writePieces writes data. It fails if the transfer, which may be nil, was cut.
func (b *boundedResponse) writePieces(data []byte, transfer *limit.Transfer[memoryKey]) (written int, err error) {
	b.begun = true
	defer b.clearDeadline()
	for {
		piece := data[:min(len(data), pieceSize)]
		b.setDeadline(len(piece))
		n, err := b.ResponseWriter.Write(piece)
		written += n
		if transfer != nil && err == nil && !transfer.Move(n) {
			err = os.ErrDeadlineExceeded
		}
		if data = data[len(piece):]; err != nil || len(data) == 0 {
			return written, err
		}
	}
}

// Flush implements http.Flusher.
func (b *boundedResponse) Flush() { _ = b.FlushError() } // fails if the client has disconnected

// FlushError implements the interface that http.ResponseController uses to flush.
func (b *boundedResponse) FlushError() error {
	b.begun = true
	b.setDeadline(0)
	defer b.clearDeadline()
	return b.control.Flush()
}

// Unwrap implements the interface that http.ResponseController uses to find the writer.
func (b *boundedResponse) Unwrap() http.ResponseWriter { return b.ResponseWriter }
