package gateway

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/storetest"
)

// TestPipeAnswersWhatWasAsked checks that requests before the end of the input are answered, also
// if the store is slow and obeys contexts.
func TestPipeAnswersWhatWasAsked(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := storetest.NewFaulty(mcptask.NewMemoryStore(), storetest.Faults{Latency: lastReplies / 4}, 1)
		server, err := mcptask.NewServer(mcptask.Options{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		var in strings.Builder
		for id, method := range []string{"tasks/get", "tasks/cancel", "tasks/get"} {
			fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"taskId":"NOSUCHTASK","_meta":{`+
				`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`+"\n", id, method)
		}
		var out bytes.Buffer
		reader, writer, err := New(Config{Server: server}).Pipe(t.Context(), strings.NewReader(in.String()), &out)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, _ = io.Copy(io.Discard, reader) // as the SDK does, until the end
		took := time.Since(began)
		_ = writer.Close()
		synctest.Wait()
		if text := out.String(); strings.Count(text, `"code":-32602`) != 3 || took >= lastReplies {
			t.Errorf("after %v: %s", took, text)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		_ = store.Close()
	})
}
