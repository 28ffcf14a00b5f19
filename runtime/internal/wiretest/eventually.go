package wiretest

import (
	"testing"
	"time"
)

// Eventually waits until done returns true. what says what the test waits for.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("this does not become true: %s", what)
		}
	}
}

// Status sends a request and returns the HTTP status of the response, which it does not read. So
// the response may be a stream that stays open.
func (p *Peer) Status(method, body string, edits ...Edit) int {
	p.T.Helper()
	res, err := p.Client.Do(p.NewRequest(p.T.Context(), method, body, edits...))
	if err != nil {
		p.T.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}
