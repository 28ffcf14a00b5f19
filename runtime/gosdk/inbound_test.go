package gosdk

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// TestEvents: messages are taken out of a stream wherever its reads are cut, and everything else passes unchanged.
func TestEvents(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("b", 3*4096)
	for _, c := range []struct{ name, in, want, taken string }{
		{name: "nothing"},
		{name: "passed", in: "id: 1\ndata: keep\n\n", want: "id: 1\ndata: keep\n\n"},
		{name: "taken", in: "id: 1\ndata: take 1\n\ndata: keep\n\n", want: "id: 1\n\ndata: keep\n\n", taken: "take 1"},
		{name: "retry stays", in: "event: message\nretry: 500\ndata:take 1\nid: 7\n\n", want: "event: message\nretry: 500\nid: 7\n\n", taken: "take 1"},
		{name: "retry has bounds", in: "retry: 5\n\nretry: 300001\n\nretry: 0\n\n", want: "retry: 100\n\nretry: 300000\n\n\n"},
		{name: "carriage returns", in: "id: 1\r\ndata: take 1\r\n\r\ndata: keep\r\n\r\n", want: "id: 1\r\n\r\ndata: keep\r\n\r\n", taken: "take 1"},
		{name: "several lines", in: "data: take 1\nid: 3\ndata: 2\n\n", want: "id: 3\n\n", taken: "take 1\n2"},
		{name: "comments", in: ": hello\n\n: more\ndata: take 1\n\n", want: ": hello\n\n: more\n\n", taken: "take 1"},
		{name: "another event", in: "event: endpoint\ndata: take 1\n\n", want: "event: endpoint\ndata: take 1\n\n"},
		{name: "no data", in: "id: 4\ndata:\n\n", want: "id: 4\ndata:\n\n"},
		{name: "malformed", in: "id\ndata: take 1\n\n", want: "id\ndata: take 1\n\n"},
		{name: "larger than a buffer", in: "data: take " + big + "\nid: 1\n\ndata: keep " + big + "\n\n", want: "id: 1\n\ndata: keep " + big + "\n\n", taken: "take " + big},
		{name: "a line as long as a buffer", in: "data: take " + strings.Repeat("b", 4096-len("data: take ")) + "\n\n", want: "\n", taken: "take " + strings.Repeat("b", 4096-len("data: take "))},
		{name: "ends in the middle", in: "data: keep\n\nid: 1\ndata: take 1", want: "data: keep\n\nid: 1\n", taken: "take 1"},
		{name: "blank lines", in: "\n\n\r\ndata: take 1\n\n\n", want: "\n\n\r\n\n\n", taken: "take 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for name, cut := range map[string]func(io.Reader) io.Reader{
				"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader, "end with data": iotest.DataErrReader,
			} {
				var taken []string
				stream := newEventReader(io.NopCloser(cut(strings.NewReader(c.in))), func(message []byte) []byte {
					if !strings.HasPrefix(string(message), "take") {
						return message
					}
					taken = append(taken, string(message))
					return nil
				})
				got, err := io.ReadAll(iotest.OneByteReader(stream))
				if err != nil || string(got) != c.want || strings.Join(taken, "|") != c.taken {
					t.Errorf("%s: %q, taken %q, %v", name, got, taken, err)
				}
			}
		})
	}
}

// TestEventsEdited: an event whose message is changed keeps its other fields.
func TestEventsEdited(t *testing.T) {
	t.Parallel()
	in := "event: message\nid: 7\ndata: {\"a\":\ndata: 1}\n\n: comment\n\ndata: keep\n\n"
	stream := newEventReader(io.NopCloser(strings.NewReader(in)), func(message []byte) []byte {
		return []byte(strings.ReplaceAll(string(message), "{\"a\":\n1}", "changed"))
	})
	got, err := io.ReadAll(stream)
	if want := "data: changed\nevent: message\nid: 7\n\n: comment\n\ndata: keep\n\n"; string(got) != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestEventsCut: an event that is cut off is not taken, because the server will send it again. Whole events do not wait
// for the rest.
func TestEventsCut(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var taken []string
	stream := newEventReader(io.NopCloser(io.MultiReader(strings.NewReader("id: 1\ndata: one\n\nid: 2\ndata: two\n"), iotest.ErrReader(broken))),
		func(message []byte) []byte { taken = append(taken, string(message)); return nil })
	got, err := io.ReadAll(stream)
	if string(got) != "id: 1\n\nid: 2\ndata: two\n" || !errors.Is(err, broken) || !slices.Equal(taken, []string{"one"}) {
		t.Errorf("%q, taken %q, %v", got, taken, err)
	}

	reader, writer := io.Pipe()
	stream = newEventReader(reader, func(message []byte) []byte { return message })
	go func() { _, _ = io.WriteString(writer, "data: one\n\ndata: tw") }()
	buffer := make([]byte, 100)
	if n, err := stream.Read(buffer); string(buffer[:n]) != "data: one\n\n" || err != nil {
		t.Errorf("%q, %v", buffer[:n], err)
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	if _, err := reader.Read(buffer); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the body was not closed: %v", err)
	}
}

// TestEventsTooLong: nothing of an event that is too long passes. The stream ends with an error in its place.
func TestEventsTooLong(t *testing.T) {
	t.Parallel()
	for _, instead := range []string{"", "no"} {
		body := &limitedBody{ReadCloser: io.NopCloser(strings.NewReader("data: one\n\n: x\r\n\r\ndata: 1234567890\n\ndata: two\n\n")), max: 12, stream: true}
		stream := newEventReader(body, func(message []byte) []byte { return message })
		if instead != "" {
			stream.instead = func(tooLongError) []byte { return []byte(instead) }
		}
		got, err := io.ReadAll(stream)
		want, long := "data: one\n\n: x\r\n\r\n", tooLongError{}
		if instead != "" {
			want += "data: no\n\n"
		}
		if string(got) != want || errors.As(err, &long) != (instead == "") {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// TestLimitedBody: a stream may have any number of messages within the limit.
func TestLimitedBody(t *testing.T) {
	t.Parallel()
	events := strings.Repeat("data: 1\r\n\r\n", 100)
	for _, c := range []struct {
		text   string
		max    int
		stream bool
		fails  bool
	}{
		{events, 11, true, false}, {events, 8, true, true}, {"\n\n\n\n\n\n", 1, true, false},
		{"1234567890", 10, true, false}, {"1234567890", 9, true, true},
		{"12345\n\n789", 10, false, false}, {"12345\n\n7890", 10, false, true},
	} {
		for _, cut := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, func(r io.Reader) io.Reader { return r }} {
			body := &limitedBody{ReadCloser: io.NopCloser(cut(strings.NewReader(c.text))), max: c.max, stream: c.stream}
			_, err := io.ReadAll(body)
			if long := (tooLongError{}); errors.As(err, &long) != c.fails {
				t.Errorf("%.20q, %d: %v", c.text, c.max, err)
			}
		}
	}
}
