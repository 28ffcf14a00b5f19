//go:build long

package main

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

// TestServeAndCall runs the two halves as two programs would: -http and -call.
func TestServeAndCall(t *testing.T) {
	read, printed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- run(serving, printed, mode{addr: "127.0.0.1:0"}) }()
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := peer.Tap(t, strings.TrimSpace(strings.TrimPrefix(line, "serving ")))
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }() // it has been read
	if err := run(t.Context(), out, mode{url: url}); err != nil {
		told, _ := os.ReadFile(out.Name())
		t.Errorf("%v\n%s", err, told)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
