package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// span is a line of the file of -traces, as far as tests read it.
type span struct {
	Name                string
	SpanContext, Parent spanContext
	SpanKind            int
	Attributes          []spanAttribute
	Links               []struct{ SpanContext spanContext }
}

// spanContext names a span.
type spanContext struct{ TraceID, SpanID string }

type spanAttribute struct {
	Key   string
	Value struct{ Value any }
}

// attribute returns an attribute of the span, or nil.
func (s span) attribute(key string) any {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.Value
		}
	}
	return nil
}

// readSpans reads the finished spans of a process that may still run or was killed. It leaves out a last line without
// its end.
func readSpans(t *testing.T, file string) []span {
	t.Helper()
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []span
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var s span
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, s)
	}
	return all
}
