package taskstore_test

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestStatus checks what people read of progress, and that the message is found again in it.
func TestStatus(t *testing.T) {
	for _, test := range []struct {
		progress      taskstore.Progress
		message, want string
	}{
		{taskstore.Progress{}, "soon", "soon"},
		{taskstore.Progress{Done: 1, Total: 3}, "build", "build (1/3)"},
		{taskstore.Progress{Done: 1, Total: 3}, "", "1/3"},
		{taskstore.Progress{Done: 258064384}, "258 MB restored", "258 MB restored"},
		{taskstore.Progress{Done: 2.003330957}, "step (2.003330957)", "step (2.003330957)"},
		{taskstore.Progress{Done: 258064384}, "", "258064384"},
		{taskstore.Progress{Done: 2, Total: -1}, "", "2"},
	} {
		got := test.progress.Status(test.message)
		r := taskstore.Record{Progress: test.progress, StatusMessage: got}
		if got != test.want || r.Report().Message != test.message {
			t.Errorf("%+v with %q: %q, and back %q", test.progress, test.message, got, r.Report().Message)
		}
	}
}
