package gateway

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// admitMedia refuses a body that is not plain JSON. It returns false if it has refused the request.
func (g *Gateway) admitMedia(w http.ResponseWriter, r *http.Request) bool {
	coding := strings.Join(r.Header.Values("Content-Encoding"), ", ")
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		r.Body, r.ContentLength = http.NoBody, 0 // the SDK refuses it, and must not serve it
		g.sdkOf(r).ServeHTTP(w, r)
		return false
	}
	if coding == "" || strings.EqualFold(coding, "identity") {
		return true
	}
	w.Header().Set("Accept-Encoding", "identity")
	refuse(w, http.StatusUnsupportedMediaType, nil, mcptask.Errorf(mcptask.CodeInvalidRequest,
		"the Content-Encoding %.100q is not supported: send the body without it", coding))
	return false
}

// sdkOf returns the SDK's handler for a request whose body says nothing of its revision.
func (g *Gateway) sdkOf(r *http.Request) http.Handler {
	if isModernVersion(r.Header.Get(versionHeader)) {
		return g.config.Stateless
	}
	return g.config.Stateful
}

// readBody reads a body within the limit. It takes memory once more than smallMessage bytes have come.
// It returns false if it has refused the request.
func (g *Gateway) readBody(w *boundedResponse, r *http.Request) ([]byte, bool) {
	if r.ContentLength > g.maxBody {
		g.refuseBody(w, &http.MaxBytesError{Limit: g.maxBody})
		return nil, false
	}
	body := http.MaxBytesReader(w, r.Body, g.maxBody)
	var read bytes.Buffer // io.ReadAll would copy a body again and again, and keep room for more
	read.Grow(int(min(max(r.ContentLength, 0), smallMessage)) + bytes.MinRead)
	_, err := read.ReadFrom(io.LimitReader(body, smallMessage+1))
	if err == nil && read.Len() > smallMessage {
		err = g.readLargeBody(w, r, body, &read)
	}
	if err != nil {
		g.refuseBody(w, err)
		return nil, false
	}
	return read.Bytes(), true
}

// readLargeBody reads the rest of a body. It takes the memory that the body and its values need until
// the request is handled.
func (g *Gateway) readLargeBody(w *boundedResponse, r *http.Request, body io.Reader, read *bytes.Buffer) error {
	size := r.ContentLength
	if size < 0 {
		size = g.maxBody
	}
	if refusal := w.share.take(r.Context(), ofBodies, int(size)*bodyCopies, 0); refusal != nil {
		return refusal
	}
	transfer := w.share.beginReading(w)
	if r.ContentLength >= 0 {
		read.Grow(int(size) - read.Len() + bytes.MinRead)
	}
	_, err := read.ReadFrom(measuredReader{body, transfer.Move})
	if !transfer.Close() {
		err = errSlowBody
	}
	if err != nil {
		return err
	}
	_ = w.control.SetReadDeadline(time.Time{})
	values := wire.CountValues(read.Bytes(), read.Len())
	if refusal := w.share.take(r.Context(), ofValues, values*valueCost, 0); refusal != nil {
		return refusal
	}
	return nil
}

// errSlowBody says that a body came so slowly that others got its memory.
var errSlowBody = errors.New("gateway: the body comes too slowly")

// measuredReader calls move with the length of each read.
type measuredReader struct {
	io.Reader
	move func(n int) bool
}

// Read implements io.Reader.
func (w measuredReader) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	w.move(n)
	return n, err
}

// refuseBody answers a request whose body could not be read.
func (g *Gateway) refuseBody(w *boundedResponse, err error) {
	var tooLarge *http.MaxBytesError
	var refusal *mcptask.Error
	switch {
	case errors.As(err, &tooLarge):
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusRequestEntityTooLarge, nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "the body exceeds %d bytes: send less, such as a reference to what is big", tooLarge.Limit))
	case errors.As(err, &refusal):
		w.Header().Set("Connection", "close") // the rest of the body is not read
		refuseMemory(w, nil, refusal)
	case errors.Is(err, errSlowBody):
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusRequestTimeout, nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "the body comes too slowly while others wait: send it again"))
	default:
		refuse(w, http.StatusBadRequest, nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "the body could not be read"))
	}
}

// refuseMemory answers a request for which there is too little memory.
func refuseMemory(w http.ResponseWriter, id []byte, err *mcptask.Error) {
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusServiceUnavailable, id, err)
}
