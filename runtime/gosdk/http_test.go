package gosdk

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// TestReadEvents checks that a stream is read wherever its reads are cut.
func TestReadEvents(t *testing.T) {
	t.Parallel()
	message := func(method string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q}`, method) }
	long := strings.Repeat("b", 3*4096)
	for _, c := range []struct{ name, in, methods, id string }{
		{name: "nothing"},
		{name: "a message", in: "id: 1\ndata: " + message("a") + "\n\n", methods: "a", id: "1"},
		{name: "another event", in: "event: endpoint\ndata: " + message("a") + "\n\n"},
		{name: "carriage returns", in: "id: 1\r\ndata: " + message("a") + "\r\n\r\ndata: " + message("b") + "\r\n\r\n", methods: "a b", id: "1"},
		{name: "several lines", in: "data: {\"jsonrpc\":\"2.0\",\nid: 3\ndata: \"method\":\"a\"}\n\n", methods: "a", id: "3"},
		{name: "comments", in: ": hello\n\n: more\ndata: " + message("a") + "\n\n", methods: "a"},
		{name: "no data", in: "id: 4\ndata:\n\n", id: "4"},
		{name: "no field", in: "id\ndata: " + message("a") + "\n\n", methods: "a"},
		{name: "larger than a buffer", in: "data: " + message("a"+long) + "\nid: 1\n\ndata: " + message("b") + "\n\n", methods: "a" + long + " b", id: "1"},
		{name: "ends in the middle", in: "data: " + message("a") + "\n\nid: 1\ndata: " + message("b"), methods: "a b", id: "1"},
		{name: "blank lines", in: "\n\n\r\ndata: " + message("a") + "\n\n\n", methods: "a"},
		{name: "a long ID", in: "id: 1\n\nid: " + strings.Repeat("x", maxIdentifier+1) + "\n\n", id: "1"},
	} {
		for name, cut := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader, "end with data": iotest.DataErrReader,
		} {
			var at position
			var methods []string
			progress, err := at.readEvents(cut(strings.NewReader(c.in)), 1<<20, func(m *wire.Message) bool {
				methods = append(methods, m.Method)
				return false
			})
			if got := strings.Join(methods, " "); got != c.methods || at.id != c.id || progress != (c.methods+c.id != "") || !errors.Is(err, io.EOF) {
				t.Errorf("%s, %s: %.50q, %+v, %v, %v", c.name, name, got, at, progress, err)
			}
		}
	}
}

// TestReadEventsCut: an event that is cut off is not taken, because the server sends it again.
func TestReadEventsCut(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var at position
	taken := 0
	_, err := at.readEvents(io.MultiReader(strings.NewReader("id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n\nid: 2\ndata: {}\n"), iotest.ErrReader(broken)), 1<<20,
		func(*wire.Message) bool { taken++; return false })
	if taken != 1 || at.id != "1" || !errors.Is(err, broken) {
		t.Errorf("%d taken, %+v, %v", taken, at, err)
	}
}

// TestReadEventsLimit: a stream may have any number of events within the limit.
func TestReadEventsLimit(t *testing.T) {
	t.Parallel()
	events := strings.Repeat("data:\r\n\r\n", 100)
	for _, c := range []struct {
		text  string
		max   int
		fails bool
	}{
		{events, 9, false}, {events, 8, true}, {"\n\n\n\n\n\n", 1, false}, {"1234567890", 10, false}, {"1234567890", 9, true},
	} {
		for _, cut := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, func(r io.Reader) io.Reader { return r }} {
			_, err := new(position).readEvents(cut(strings.NewReader(c.text)), c.max, func(*wire.Message) bool { return false })
			if long := (tooLongError{}); errors.As(err, &long) != c.fails {
				t.Errorf("%.20q, %d: %v", c.text, c.max, err)
			}
		}
	}
}
