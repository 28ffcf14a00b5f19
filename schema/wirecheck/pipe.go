package wirecheck

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
)

// Pipes wraps a server's two pipes and checks every line that the server writes, each response with
// its request. Faults fail the test at its end.
func Pipes(t testing.TB, in io.Reader, out io.Writer) (io.Reader, io.Writer) {
	t.Helper()
	return RevisionPipes(t, Legacy, in, out)
}

// RevisionPipes is like Pipes for a server whose sessions use a revision.
func RevisionPipes(t testing.TB, revision string, in io.Reader, out io.Writer) (io.Reader, io.Writer) {
	t.Helper()
	c, err := sharedChecker()
	if err != nil {
		t.Fatal(err)
	}
	tap := newPipeTap(c, revision, in, out)
	tap.reportAtEnd(t)
	return (*tapIn)(tap), (*tapOut)(tap)
}

// Process is like RevisionPipes for a server in its own process, without a test to fail. faults
// returns the faults so far.
func Process(revision string, in io.Reader, out io.Writer) (_ io.Reader, _ io.Writer, faults func() string, err error) {
	c, err := sharedChecker()
	if err != nil {
		return nil, nil, nil, err
	}
	tap := newPipeTap(c, revision, in, out)
	return (*tapIn)(tap), (*tapOut)(tap), tap.String, nil
}

type pipeTap struct {
	faults

	checker *Checker
	legacy  string // the revision of the session
	in      io.Reader
	out     io.Writer

	mu                    sync.Mutex
	partialIn, partialOut []byte                       // incomplete lines
	open                  map[string][]*pendingRequest // by ID
	subscribed            map[string]*pendingRequest
}

func newPipeTap(c *Checker, revision string, in io.Reader, out io.Writer) *pipeTap {
	return &pipeTap{
		checker: c, legacy: legacyRevision(revision), in: in, out: out,
		open: map[string][]*pendingRequest{}, subscribed: map[string]*pendingRequest{},
	}
}

type tapIn pipeTap

// Read implements io.Reader.
func (t *tapIn) Read(p []byte) (int, error) {
	n, err := t.in.Read(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines [][]byte
	lines, t.partialIn = splitLines(t.partialIn, p[:n])
	if err != nil && len(t.partialIn) > 0 {
		lines, t.partialIn = append(lines, t.partialIn), nil
	}
	for _, line := range lines {
		for _, a := range readRequests(line, "", t.legacy) {
			t.open[a.id] = append(t.open[a.id], a)
			if a.method == "subscriptions/listen" && len(t.open[a.id]) == 1 { // otherwise another request still uses the ID
				t.subscribed[a.id] = a
			}
		}
	}
	return n, err
}

type tapOut pipeTap

// Write implements io.Writer.
func (t *tapOut) Write(p []byte) (int, error) {
	t.mu.Lock()
	var lines [][]byte
	lines, t.partialOut = splitLines(t.partialOut, p)
	for _, line := range lines {
		t.add((*pipeTap)(t).checkLine(line))
	}
	t.mu.Unlock()
	return t.out.Write(p)
}

// checkLine checks a line. The caller must hold t.mu.
func (t *pipeTap) checkLine(line []byte) error {
	revision := t.legacy
	if id, ok := subscriptionID(line); ok {
		revision = Modern
		a := t.subscribed[id]
		if i := slices.IndexFunc(t.open[id], isUnacknowledged); i >= 0 && a != nil && a.acknowledged && isAcknowledgement(line) {
			a = t.open[id][i] // the client has left the earlier subscription
			t.subscribed[id] = a
		}
		if a == nil {
			return fmt.Errorf("a message of an unknown subscription: %s", line)
		}
		if err := a.checkPushed(line); err != nil {
			return err
		}
	}
	return t.checker.checkSent(line, revision, func(id string) *pendingRequest {
		open := t.open[id]
		if len(open) == 0 {
			return nil
		}
		t.open[id] = open[1:]
		return open[0]
	})
}

// isUnacknowledged reports whether a is a subscription that was not acknowledged yet.
func isUnacknowledged(a *pendingRequest) bool {
	return a.method == "subscriptions/listen" && !a.acknowledged
}

func isAcknowledgement(line []byte) bool {
	method, _ := member(line, "method")
	return string(method) == `"notifications/subscriptions/acknowledged"`
}

// subscriptionID returns the ID in the _meta of a subscription's notification.
func subscriptionID(line []byte) (string, bool) {
	params, _ := member(line, "params")
	meta, _ := member(params, "_meta")
	id, ok := member(meta, metaSubscription)
	return sameID(id), ok
}

// splitLines splits the input into complete lines and the rest.
func splitLines(rest, more []byte) (lines [][]byte, left []byte) {
	rest = append(rest, more...)
	for {
		line, after, ok := bytes.Cut(rest, []byte("\n"))
		if !ok {
			return lines, bytes.Clone(rest)
		}
		if rest = after; len(bytes.TrimSpace(line)) > 0 {
			lines = append(lines, line)
		}
	}
}
