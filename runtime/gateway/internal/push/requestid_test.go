package push

import (
	"testing"
)

// TestRequestIDs: an ID tells the question that it belongs to, whatever its step is called. No other text is accepted
// as an ID.
func TestRequestIDs(t *testing.T) {
	for _, key := range []string{"one", "one#2", "before/Sure", "", "a/b:c", "get:1/x/y", "ö\n"} {
		for _, kind := range []requestKind{kindQuestion, kindGet, kindResult, kindCancel, kindAgain} {
			want := RequestID{kind: kind, task: "TASK", key: key}
			if kind != kindQuestion {
				want.serial = 1<<64 - 1
			}
			if got, ok := ParseRequestID(want.String()); !ok || got != want {
				t.Errorf("%s: %+v %v", want, got, ok)
			}
		}
	}
	for _, id := range []string{"", "/", "mcptask", "mcptask/", "mcptask/TASK", "mcptask:/T/k", "mcptask:get/T/k", "mcptask:get:/T/k", "mcptask:get:-1/T/k",
		"mcptask:get:1/T", "mcptask:get:01/T/k", "mcptask:get:18446744073709551616/T/k", "mcptask:take:1/T/k", "mcptask::1/T/k", "other/T/k", "get:1/T/k"} {
		if ref, ok := ParseRequestID(id); ok {
			t.Errorf("%s: %+v", id, ref)
		}
	}
}
