package gosdk_test

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
)

// TestMessageReader checks which lines of a server's standard output pass, and which faults end it.
func TestMessageReader(t *testing.T) {
	t.Parallel()
	const ping, answer = `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":"a","result":{}}`
	const most = 100
	noise := strings.Repeat("x", 30)
	for _, c := range []struct {
		name, in, want, fault string
		noted                 string // the line in the log
	}{
		{name: "messages", in: ping + "\n" + answer + "\r\n", want: ping + "\n" + answer + "\n"},
		{name: "no end of the last line", in: ping + "\n" + answer, want: ping + "\n" + answer + "\n"},
		{name: "byte order marks", in: "\ufeff" + ping + "\n\ufeff" + answer + "\n", want: ping + "\n" + answer + "\n"},
		{name: "other lines", in: "Hello\n\n" + ping + "\n[1]\n{\"a\":1}\n" + `{"jsonrpc":"2.0"` + "\n\xff\n" + answer + "\n[", want: ping + "\n" + answer + "\n", noted: "Hello"},
		{name: "a batch", in: "[" + answer + ", " + answer + "]\n", want: answer + "\n" + answer + "\n"},
		{name: "a batch with something else", in: "[" + answer + ",1]\n", noted: `line="[{`},
		{name: "two messages in a line", in: ping + answer + "\n", want: ping + "\n" + answer + "\n"},
		{name: "a message with something behind it", in: ping + " x\n" + answer + "\n", want: answer + "\n", noted: "x"},
		{name: "a long line", in: ping + "\n" + strings.Repeat("x", most+1), want: ping + "\n", fault: "a message of more than 100 bytes"},
		{name: "a flood", in: ping + "\n" + strings.Repeat(noise+"\n", 4), want: ping + "\n", noted: noise, fault: "lines that are not MCP messages to its standard output: more than 100 bytes"},
		{name: "a flood of nothing", in: strings.Repeat("\n", 200), fault: "more than 100 bytes"},
		{name: "lines between messages", in: strings.Repeat(noise+"\n"+ping+"\n", 10), want: strings.Repeat(ping+"\n", 10), noted: noise},
	} {
		for _, cut := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader, func(r io.Reader) io.Reader { return r }} {
			var log strings.Builder
			got, err := gosdk.ReadMessages(cut(strings.NewReader(c.in)), most, slog.New(slog.NewTextHandler(&log, nil)))
			if got != c.want || errors.Is(err, io.EOF) != (c.fault == "") || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
			}
			if n := strings.Count(log.String(), "WARN"); n > 1 || n == 1 != (c.noted != "") || !strings.Contains(log.String(), c.noted) {
				t.Errorf("%s: the log is %q", c.name, &log)
			}
		}
	}
	broken := errors.New("broken")
	if _, err := gosdk.ReadMessages(iotest.ErrReader(broken), most, slog.New(slog.DiscardHandler)); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestByteOrderMarks checks that a client reads the messages of a server that writes a byte order mark before each.
func TestByteOrderMarks(t *testing.T) {
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		t.Run(revision, overEachWay(func(t *testing.T, connect connector) {
			s := &scripted{t: t, revision: revision, before: "\ufeff"}
			s.on("tasks/result", func(call) reply {
				return reply{result: output(1), stream: func(send func(string)) {
					send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
				}}
			})
			s.on("tools/list", func(call) reply {
				return reply{result: `{"resultType":"complete","tools":[{"name":"tool","inputSchema":{"type":"object"}}]}`, stream: func(func(string)) {}}
			})
			conn := connect(s, gosdk.ClientOptions{})
			tools, err := conn.ListTools(t.Context())
			if err != nil || len(tools) != 1 {
				t.Errorf("%v, %v", tools, err)
			}
			wantNumber(t, start(t, conn), 1)
		}))
	}
}

// TestStrayLines checks that lines that are no messages, before and between messages, do not end a session on pipes.
func TestStrayLines(t *testing.T) {
	inEveryRevision(func(t *testing.T, revision string) {
		s := &scripted{t: t, revision: revision, before: "Listening on stdio ...\n{\"level\":\"info\"}\n\n"}
		conn := s.connectPipe(gosdk.ClientOptions{})
		wantNumber(t, start(t, conn), 1)
		if _, err := conn.Task(t.Context(), "t"); err != nil && errors.Is(err, mcptask.ErrDisconnected) {
			t.Error(err)
		}
	})(t)
}
