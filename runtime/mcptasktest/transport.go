package mcptasktest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/origin"
)

// handlerTransport is an http.RoundTripper that calls a handler in this process. It streams
// responses: the client reads while the handler writes.
type handlerTransport struct {
	handler  http.Handler
	requests sync.WaitGroup
}

// RoundTrip implements http.RoundTripper.
func (t *handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	request := r.Clone(origin.WithLocal(ctx))
	if request.Body == nil {
		request.Body = http.NoBody
	}
	request.Host, request.RequestURI, request.RemoteAddr = r.URL.Host, r.URL.RequestURI(), "mcptasktest"
	reader, writer := io.Pipe()
	w := &responseWriter{header: http.Header{}, body: writer, begun: make(chan struct{})}
	t.requests.Go(func() {
		defer guard.Recover(nil, "a request")
		defer cancel()
		code := http.StatusInternalServerError // if the handler panics or ends its goroutine
		defer func() {
			p := recover()
			w.WriteHeader(code)
			if p != nil {
				_ = writer.CloseWithError(fmt.Errorf("the handler panicked: %v", p))
			}
			_ = writer.Close()
		}()
		t.handler.ServeHTTP(w, request)
		code = http.StatusOK
	})
	select {
	case <-w.begun:
	case <-r.Context().Done(): // not ctx, which may have ended with the handler
		cancel()
		_ = reader.CloseWithError(r.Context().Err()) // makes the handler's writes fail
		return nil, context.Cause(r.Context())
	}
	// The end of the request's context ends the reading, as over a socket.
	stop := context.AfterFunc(ctx, func() {
		defer guard.Recover(nil, "the end of a request")
		if r.Context().Err() != nil {
			_ = writer.CloseWithError(context.Cause(r.Context())) // for the reader, unlike the error of its own end
		}
	})
	return &http.Response{
		Status: http.StatusText(w.code), StatusCode: w.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: &responseBody{reader, cancel, stop}, ContentLength: -1, Request: r,
	}, nil
}

// responseBody ends the request when it is closed, as a closed connection does.
type responseBody struct {
	*io.PipeReader
	cancel context.CancelFunc
	stop   func() bool
}

// Close implements io.Closer.
func (b *responseBody) Close() error {
	b.stop()
	b.cancel()
	return b.PipeReader.Close()
}

// responseWriter passes the writes of a handler to the client at once.
type responseWriter struct {
	header http.Header
	body   *io.PipeWriter
	once   sync.Once
	begun  chan struct{}
	code   int
	sent   http.Header
}

// Header implements http.ResponseWriter.
func (w *responseWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *responseWriter) WriteHeader(code int) {
	w.once.Do(func() {
		w.code, w.sent = code, w.header.Clone()
		close(w.begun)
	})
}

// Write implements http.ResponseWriter.
func (w *responseWriter) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(data)
}

// Flush implements http.Flusher.
func (w *responseWriter) Flush() { w.WriteHeader(http.StatusOK) }
