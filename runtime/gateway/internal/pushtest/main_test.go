package pushtest

import (
	"fmt"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestMain lets the tests reach servers in memory.
func TestMain(m *testing.M) { wiretest.Main(m) }

// inBubble runs a subtest in a bubble, in parallel with the others.
func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, test)
	})
}

// askedPeer returns a client that answers every question.
func askedPeer(t *testing.T, url string) *wiretest.Peer {
	t.Helper()
	return wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "a", wiretest.AllCapabilities)
}

// keepingPeer returns a client that keeps questions as tasks.
func keepingPeer(t *testing.T, url string) *wiretest.Peer {
	t.Helper()
	return wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "a", wiretest.TaskCapabilities(wiretest.AllTaskCapabilities))
}

// modernPeer returns an anonymous client of 2026-07-28 that cannot be asked.
func modernPeer(t *testing.T, url string) *wiretest.Peer {
	t.Helper()
	return wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
}

// wantText waits for a task to end, and fails the test unless its result has the text.
func wantText(p *wiretest.Peer, id, text string) {
	p.T.Helper()
	if got := p.TaskText(id); got != text {
		p.T.Errorf("the result is %q, want %q", got, text)
	}
}

// wantResult fails the test unless the next message is a tool's result with the text.
func wantResult(f *wiretest.Feed, text string) {
	f.T.Helper()
	if m := f.Next(); wiretest.ToolText(m.Result) != text {
		f.T.Errorf("%s, want %q", m.Text, text)
	}
}

// wantTask fails the test unless the next message is a task in this status.
func wantTask(f *wiretest.Feed, status string) {
	f.T.Helper()
	if task := f.NextTask(); task["status"] != status {
		f.T.Errorf("%v, want %s", task, status)
	}
}

// wantAgain fails the test unless a question repeats an earlier one.
func wantAgain(t *testing.T, again, q wiretest.WireMessage) {
	t.Helper()
	if string(again.ID) != string(q.ID) {
		t.Errorf("%s, want %s again", again.Text, q.ID)
	}
}

// streamTest tests a client that is asked on its streams. The server has the tool "driven".
type streamTest func(t *testing.T, p *wiretest.Peer, d *wiretest.Driven)

// eachReplyForm runs tests against servers that reply with streams, and servers that reply with
// JSON. Each test has a server and a client of its own.
func eachReplyForm(t *testing.T, revision, capabilities string, tests func(run func(name string, test streamTest))) {
	t.Helper()
	t.Parallel()
	for _, jsonReplies := range []bool{false, true} {
		tests(func(name string, test streamTest) {
			inBubble(t, fmt.Sprint(name, " json=", jsonReplies), func(t *testing.T) {
				url, d := listening(t, wiretest.Setup{Revision: revision, Bearer: true, HTTP: wiretest.HTTPOptions(jsonReplies)})
				test(t, wiretest.NewAskedPeer(t, url, revision, "a", capabilities), d)
			})
		})
	}
}
