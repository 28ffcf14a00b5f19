package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// TestFault distinguishes ambiguous members from others.
func TestFault(t *testing.T) {
	known := []string{"name", "_meta"}
	many := strings.Builder{}
	for i := range 100 {
		many.WriteString(`"` + strings.Repeat("x", i) + `":0,`)
	}
	for data, want := range map[string]string{
		`{}`:                                  "",
		`null`:                                "",
		`[1]`:                                 "",
		`{"name":1,"_meta":{"a":1,"A":2}}`:    "",
		`{"other":1,"Other":2}`:               "", // these members are not read
		`{"name":1,"name":1}`:                 `a member stands twice: "name"`,
		`{"other":1,"other":2}`:               `a member stands twice: "other"`,
		`{"n\u0061me":1,"name":1}`:            `a member stands twice: "name"`,
		`{"Name":1}`:                          `"Name" is written "name"`,
		`{"_META":1}`:                         `"_META" is written "_meta"`,
		`{"a":{"b":[{"name":1}]},"name":"}"}`: "",
		`{"Name":1,"other":1,"other":1}`:      `"Name" is written "name"`,
		`{"other":1,"other":1,"Name":1}`:      `a member stands twice: "other"`,
		`{` + many.String() + `"xx":1}`:       `a member stands twice: "xx"`,
		`{` + many.String() + `"y":1}`:        "",
	} {
		if fault := NewObject([]byte(data)).Fault(known); fault != want {
			t.Errorf("%.60s: %q, want %q", data, fault, want)
		}
	}
}

// TestGet reads members by their path.
func TestGet(t *testing.T) {
	o := NewObject([]byte(` { "a" : { "b" : "x\u0041" , "c" : [ 1 ] } , "n" : null , "t" : 1 , "t" : 2 } `))
	for _, c := range []struct{ path, want string }{
		{"a/b", `"x\u0041"`}, {"a/c", `[ 1 ]`}, {"n", "null"}, {"n/x", ""}, {"a/c/x", ""}, {"a/x", ""}, {"x", ""}, {"t", "2"},
	} {
		if got := o.Get(strings.Split(c.path, "/")...); string(got) != c.want {
			t.Errorf("%s: %q, want %q", c.path, got, c.want)
		}
	}
	if text, ok := o.Text("a", "b"); !ok || text != "xA" {
		t.Errorf("%q %v", text, ok)
	}
	if _, ok := o.Text("t"); ok || !o.Has("n") || o.Has("a", "x") || !o.IsObject() || NewObject([]byte("[]")).IsObject() {
		t.Error("a present member is missing, or a missing one is present")
	}
	var none *Object
	if none.Get("x") != nil || none.IsObject() || none.All() != nil || none.Raw() != nil || none.Fault(nil) != "" {
		t.Error("a nil object has something")
	}
}

// FuzzIndex compares our reading of an object with the library's.
func FuzzIndex(f *testing.F) {
	for _, seed := range []string{`{}`, ` { "a" : 1 , "b":[{"c":"}"}] } `, `{"\"":"\\","x":"\\\"}"}`, `[]`, `"{"`, `{"a":"` + "\u2028" + `","":null}`, `{"\u0061":1}`, `{"a":1,"a":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want map[string]json.RawMessage
		if !utf8.Valid(data) || json.Unmarshal(data, &want) != nil {
			return // Read has refused it
		}
		if ours := NewObject(data).All(); !(len(ours) == 0 && len(want) == 0) && !reflect.DeepEqual(ours, want) {
			t.Errorf("%q: %q, want %q", data, ours, want)
		}
	})
}

// TestEdited edits several members in one pass, and keeps the bytes of all others.
func TestEdited(t *testing.T) {
	set := func(value string, path ...string) Edit { return Set(json.RawMessage(value), path...) }
	for _, c := range []struct {
		data  string
		edits []Edit
		want  string
	}{
		{`{"a":1}`, nil, `{"a":1}`},
		{` {"\u0061" : 1.50 , "b":"<\u003c>"} `, []Edit{set("2", "b")}, `{"\u0061":1.50,"b":2}`},
		{`{"a":1,"b":2,"c":3}`, []Edit{Delete("a"), Delete("c")}, `{"b":2}`},
		{`{"a":1,"b":2,"c":3}`, []Edit{Delete("a"), Delete("b"), Delete("c"), Delete("d")}, `{}`},
		{`{"p":{"x":1,"y":[ 1 ]},"q":0}`, []Edit{Delete("p", "x"), set("{}", "p", "y"), set(`"t"`, "p", "_meta", "f")}, `{"p":{"y":{},"_meta":{"f":"t"}},"q":0}`},
		{`{"p":{"_meta":{"a":1}}}`, []Edit{set(`2`, "p", "_meta", "a"), set(`3`, "p", "_meta", "b")}, `{"p":{"_meta":{"a":2,"b":3}}}`},
		{`{"p":null}`, []Edit{set(`1`, "p", "_meta", "f")}, `{"p":{"_meta":{"f":1}}}`},
		{`{}`, []Edit{set(`1`, "p", "_meta", "f"), Delete("q", "r")}, `{"p":{"_meta":{"f":1}}}`},
		{`{"p":null,"q":[1]}`, []Edit{Delete("p", "x"), Delete("q", "x")}, `{"p":null,"q":[1]}`},
		{`{"p":[1]}`, []Edit{set(`1`, "p", "x")}, ""},
		{`{"a":1}`, []Edit{set("2", "a"), Delete("a")}, `{}`},
		{`{}`, []Edit{set("2", "a"), set("3", "a")}, `{"a":3}`},
		{`{"p":{"x":1}}`, []Edit{set(`{"y":2}`, "p"), set("3", "p", "z")}, `{"p":{"y":2,"z":3}}`},
		{`{"p":{"x":1}}`, []Edit{set("3", "p", "z"), set(`{"y":2}`, "p")}, `{"p":{"y":2}}`},
		{`{"p":{"x":1}}`, []Edit{set("3", "p", "z"), Delete("p")}, `{}`},
		{`{"p":{"x":1}}`, []Edit{Delete("p"), set("3", "p", "z")}, `{"p":{"z":3}}`},
		{`{"p":{"x":1}}`, []Edit{Delete("p"), Delete("p", "x")}, `{}`},
		{`{"p":1}`, []Edit{set("2", "p"), set("3", "p", "z")}, ""},
		{`{}`, []Edit{set("{}", "p"), Delete("p", "x")}, `{"p":{}}`},
	} {
		got, err := NewObject([]byte(c.data)).Edited(c.edits...)
		if string(got) != c.want || err == nil != (c.want != "") {
			t.Errorf("%s: %s %v, want %s", c.data, got, err, c.want)
		}
	}
	if got := NewObject([]byte(`{"a":1,"b":2}`)).Without("a").Raw(); string(got) != `{"b":2}` {
		t.Error(string(got))
	}
}

// FuzzEdited compares an edit with one of the decoded object.
func FuzzEdited(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":2}}`), "a", "c")
	f.Add([]byte(`{"\u0061":1," b":[ ]}`), "b", "a")
	f.Fuzz(func(t *testing.T, data []byte, first, second string) {
		var want map[string]any
		if !utf8.Valid(data) || !utf8.ValidString(first) || !utf8.ValidString(second) || json.Unmarshal(data, &want) != nil || want == nil || NewObject(data).Fault(nil) != "" {
			return
		}
		got, err := NewObject(data).Edited(Delete(first), Set([]byte("[7]"), second))
		delete(want, first)
		want[second] = []any{7.0}
		var read map[string]any
		if err != nil || json.Unmarshal(got, &read) != nil || !reflect.DeepEqual(read, want) {
			t.Errorf("%q without %q, with %q: %q %v, want %v", data, first, second, got, err, want)
		}
	})
}

// TestIDKey: an ID is the same however its JSON is written.
func TestIDKey(t *testing.T) {
	for _, same := range [][]string{
		{`"a"`, `"\u0061"`}, {`1`, `1.0`, `10e-1`}, {`0`, `-0`, `0.0`}, {`"1"`}, {`1.5`, `15e-1`}, {`null`}, {`9007199254740993`}, {`9007199254740992`}, {`{}`},
	} {
		for _, id := range same {
			if IDKey([]byte(id)) != IDKey([]byte(same[0])) {
				t.Errorf("%s is not %s", id, same[0])
			}
		}
		for _, id := range []string{`"b"`, `2`, `true`} {
			if IDKey([]byte(id)) == IDKey([]byte(same[0])) {
				t.Errorf("%s is %s", id, same[0])
			}
		}
	}
}

// TestReadEvents reads the kinds of lines that a stream may hold.
func TestReadEvents(t *testing.T) {
	stream := ": open\n\nevent: message\ndata: {\"a\":\ndata:1}\nid: 3\n\r\nretry: 5\n\ndata: two\r\n\r\ndata\n\ndata: cut"
	var got []string
	err := ReadEvents(strings.NewReader(stream), 100, func(data []byte) (bool, error) {
		got = append(got, string(data))
		return false, nil
	})
	if want := []string{"{\"a\":\n1}", "two"}; err == nil || !slices.Equal(got, want) {
		t.Errorf("%q %v, want %q", got, err, want)
	}
	stop := errors.New("stop")
	for _, most := range []int{3, 100} {
		err := ReadEvents(strings.NewReader("data: 123\n\n"), most, func([]byte) (bool, error) { return false, stop })
		if want := map[int]error{3: bufio.ErrTooLong, 100: stop}[most]; !errors.Is(err, want) {
			t.Errorf("%d: %v, want %v", most, err, want)
		}
	}
	event, rest, ok := CutEvent(append(AppendEvent(nil, []byte(`{}`)), "data"...))
	if !ok || string(event.Data()) != "{}" || string(rest) != "data" {
		t.Errorf("%q %q %v", event, rest, ok)
	}
}

// TestReadLine skips the rest of a line that is too long.
func TestReadLine(t *testing.T) {
	r := bufio.NewReaderSize(strings.NewReader("123\n"+strings.Repeat("x", 100)+"\n1234\n12345\nend"), 16)
	var got []string
	for {
		line, err := ReadLine(r, 4)
		switch {
		case errors.Is(err, ErrLongLine):
			got = append(got, "long")
			continue
		case len(line) > 0:
			got = append(got, string(bytes.TrimSpace(line)))
		}
		if errors.Is(err, io.EOF) {
			break
		}
	}
	if want := []string{"123", "long", "1234", "long", "end"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRead reads messages, and checks the error for text that is no message.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		data string
		code int
		want string // of the refusal, else ID and method
	}{
		{`{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1}}`, 0, `"a" m`},
		{` {"jsonrpc":"2.0","method":"m","params":null}`, 0, ` m`},
		{`{"jsonrpc":"2.0","id":1,"result":null}`, 0, `1 `},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}`, 0, `1 `},
		{`{"jsonrpc":"2.0","id":null,"result":{}}`, 0, `null `},
		{"\"\xff\"", mcptask.CodeParseError, "the message is not UTF-8"},
		{``, mcptask.CodeParseError, "the message is not JSON"},
		{`{"jsonrpc":"2.0"`, mcptask.CodeParseError, "the message is not JSON"},
		{`5`, mcptask.CodeInvalidRequest, "the body is not a JSON-RPC message"},
		{`{"jsonrpc":"2.0","id":1,"method":5}`, mcptask.CodeInvalidRequest, "the body is not a JSON-RPC message"},
		{`{"jsonrpc":"2.0","id":1,"error":5}`, mcptask.CodeInvalidRequest, "the body is not a JSON-RPC message"},
		{` [1]`, mcptask.CodeInvalidRequest, "batches of messages are not accepted: send one message at a time"},
		{`null`, mcptask.CodeInvalidRequest, `the message lacks "jsonrpc": "2.0"`},
		{`{"jsonrpc":"1.0","id":1,"method":"m"}`, mcptask.CodeInvalidRequest, `the message lacks "jsonrpc": "2.0"`},
		{`{"jsonrpc":"2.0","id":1.5,"method":"m"}`, mcptask.CodeInvalidRequest, "the request's id is neither a string nor an integer of at most 53 bits"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","Method":"n"}`, mcptask.CodeInvalidRequest, `the message is ambiguous: "Method" is written "method"`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","x":1,"x":1}`, mcptask.CodeInvalidRequest, `the message is ambiguous: a member stands twice: "x"`},
	} {
		m, refusal := Read([]byte(c.data))
		switch {
		case c.code != 0:
			if refusal == nil || refusal.Code != c.code || refusal.Message != c.want {
				t.Errorf("%q: %v, want %d %s", c.data, refusal, c.code, c.want)
			}
		case refusal != nil || string(m.ID)+" "+m.Method != c.want:
			t.Errorf("%q: %+v %v", c.data, m, refusal)
		}
	}
}
