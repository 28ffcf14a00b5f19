//go:build long

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

// TestServeAndCall runs the two halves as two programs would: -http and -call.
func TestServeAndCall(t *testing.T) {
	lines := make(chan string, 1)
	serving, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- run(serving, firstLine(lines), mode{addr: "127.0.0.1:0"}) }()
	url := peer.Tap(t, strings.TrimSpace(strings.TrimPrefix(<-lines, "serving ")))
	var out bytes.Buffer
	if err := run(t.Context(), &out, mode{url: url}); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// firstLine is a writer that sends what is written first.
type firstLine chan string

// Write implements io.Writer.
func (c firstLine) Write(p []byte) (int, error) {
	select {
	case c <- string(p):
	default:
	}
	return len(p), nil
}
