package gosdk_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// TestEventStore checks that events come back in their order from any of them on, for their own session, and that
// neither many streams nor much data of a client takes more memory than is documented.
func TestEventStore(t *testing.T) {
	s, ctx := gosdk.NewEventStore(), t.Context()
	add := func(session, stream string, data []byte) {
		t.Helper()
		if err := s.Append(ctx, session, stream, data); err != nil {
			t.Fatal(err)
		}
	}
	after := func(session, stream string, index int) (got string) {
		for data, err := range s.After(ctx, session, stream, index) {
			if err != nil {
				return "gone"
			}
			got += string(data) + ";"
		}
		return got
	}
	open := func(session, stream string) {
		t.Helper()
		if err := s.Open(ctx, session, stream); err != nil {
			t.Fatal(err)
		}
	}
	open("a", "1")
	add("a", "1", nil)
	add("a", "1", []byte("x"))
	add("a", "1", []byte("y"))
	for index, want := range map[int]string{-1: ";x;y;", 0: "x;y;", 1: "y;", 2: "", 3: "gone"} {
		if got := after("a", "1", index); got != want {
			t.Errorf("after %d: %q, want %q", index, got, want)
		}
	}
	if got := after("b", "1", 0) + after("a", "2", 0); got != "gonegone" {
		t.Errorf("of another session and stream: %q", got)
	}
	for i := range 64 { // a session keeps the latest
		open("a", fmt.Sprint("more ", i))
	}
	if got := after("a", "1", 0); got != "gone" {
		t.Errorf("the 65th stream: %q", got)
	}
	if s.Append(ctx, "a", "1", []byte("late")) == nil {
		t.Error("a stream that is forgotten begins anew, with other numbers")
	}
	if err := s.SessionClosed(ctx, "a"); err != nil || after("a", "more 63", -1) != "gone" {
		t.Errorf("a closed session is kept: %v", err)
	}

	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	big := make([]byte, 1<<20)
	open("big", "stream")
	for range 50 {
		add("big", "stream", big)
	}
	for i := range 50_000 {
		open(fmt.Sprint("session ", i), "")
		open("one session", fmt.Sprint("stream ", i))
	}
	runtime.GC()
	runtime.ReadMemStats(&now)
	if grown := int64(now.HeapAlloc) - int64(before.HeapAlloc); grown > 40<<20 {
		t.Errorf("%d bytes for what counts 16 MiB", grown)
	}
	runtime.KeepAlive(s)
}
