package gateway

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// refused is n requests that the reader of a pipe answers itself.
func refused(n int) string {
	var in strings.Builder
	for id := range n {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"notifications/tasks"}`+"\n", id)
	}
	return in.String()
}

// pipeOf opens a pipe whose SDK reads until the end and says nothing.
func pipeOf(t *testing.T, in io.Reader, out io.Writer) (sdk io.WriteCloser, ended chan struct{}) {
	t.Helper()
	server, err := mcptask.NewServer(mcptask.Options{})
	if err != nil {
		t.Fatal(err)
	}
	reader, writer, err := New(Config{Server: server}).Pipe(t.Context(), in, out)
	if err != nil {
		t.Fatal(err)
	}
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, reader)
		_ = writer.Close()
	}()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return writer, ended
}

// A client that does not read its replies still ends its server by ending its input.
func TestEndOfInputBehindUnreadReplies(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		unread, out := io.Pipe()
		defer func() { _ = unread.Close() }()
		_, ended := pipeOf(t, strings.NewReader(refused(1000)), out)
		began := time.Now()
		<-ended
		if took := time.Since(began); took >= writeWithin {
			t.Errorf("the end was seen after %v", took)
		}
	})
}

// A client that goes on asking and never reads is gone once a write has taken as long
// as one may: its server ends though the input does not.
func TestClientThatNeverReads(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		unread, out := io.Pipe()
		defer func() { _ = unread.Close() }()
		in, asks := io.Pipe()
		defer func() { _ = asks.Close() }()
		_, ended := pipeOf(t, in, out)
		go func() {
			for line := refused(1); ; {
				if _, err := io.WriteString(asks, line); err != nil {
					return
				}
			}
		}()
		began := time.Now()
		<-ended
		if took := time.Since(began); took < writeWithin || took > 2*writeWithin {
			t.Errorf("it ended after %v", took)
		}
		_ = in.Close()
	})
}

// A client that reads late loses nothing, and gets it in order.
func TestLateReader(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const asked = 100
		replies, out := io.Pipe()
		defer func() { _ = replies.Close() }()
		in, asks := io.Pipe()
		_, ended := pipeOf(t, in, out)
		_, _ = io.WriteString(asks, refused(asked))
		time.Sleep(10 * writeWithin) // longer than a write may take, but nothing is in its way
		lines := bufio.NewScanner(replies)
		for id := range asked {
			if !lines.Scan() || !strings.Contains(lines.Text(), fmt.Sprintf(`"id":%d,`, id)) {
				t.Fatalf("reply %d: %q", id, lines.Text())
			}
		}
		_ = asks.Close()
		<-ended
		synctest.Wait()
	})
}

// What the SDK says last is written before the closing of its end returns.
func TestLastWordsAreWritten(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		replies, out := io.Pipe()
		defer func() { _ = replies.Close() }()
		in, asks := io.Pipe()
		defer func() { _ = asks.Close() }()
		sdk, ended := pipeOf(t, in, out)
		const last = `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`
		heard := make(chan string, 1)
		go func() {
			time.Sleep(lastReplies / 2)
			line, _ := bufio.NewReader(replies).ReadString('\n')
			heard <- strings.TrimSpace(line)
		}()
		_, _ = io.WriteString(sdk, last+"\n")
		_ = sdk.Close()
		synctest.Wait()
		select {
		case line := <-heard:
			if line != last {
				t.Errorf("%q", line)
			}
		default:
			t.Error("it had not been written")
		}
		_ = in.Close()
		<-ended
	})
}
