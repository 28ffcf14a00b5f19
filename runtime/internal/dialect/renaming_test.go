package dialect

import (
	"bytes"
	"encoding/json"
	"maps"
	"testing"
)

// turned is an invented revision in which two members have changed their names with
// each other, and a key of _meta names the version otherwise.
var turned = Renaming{
	Revision: "next", Protocol: "2", Base: "last", BaseProtocol: "1", VersionKey: "v",
	Methods: map[string]string{"a/get": "a/read"},
	Params:  map[string]*Shape{"a/get": {Names: map[string]string{"key": "id"}, Members: map[string]*Shape{"_meta": turnedMeta}}},
	Request: &Shape{Members: map[string]*Shape{"_meta": turnedMeta}},
	Results: map[string]*Shape{
		"a/get": {
			Names: map[string]string{"left": "right", "right": "left", "more": "rest"},
			Members: map[string]*Shape{
				"left": {Values: map[string]string{"open": "ajar"}},
				"more": {Each: &Shape{Names: map[string]string{"x": "y"}}},
			},
		},
		"call": {By: "kind", Names: map[string]string{"kind": "sort"}, Members: map[string]*Shape{"kind": {Values: map[string]string{"job": "task"}}},
			Of: map[string]*Shape{"job": {Names: map[string]string{"kind": "sort", "n": "m"}, Members: map[string]*Shape{"kind": {Values: map[string]string{"job": "task"}}}}}},
	},
	Failure: &Shape{By: "code", Members: map[string]*Shape{"code": {Values: map[string]string{"-1": "-2"}}}},
}

var turnedMeta = &Shape{Names: map[string]string{"version": "v"}, Members: map[string]*Shape{"version": {Values: map[string]string{"1": "2"}}}}

// TestTranslation: each message goes out and comes back as it was, and nothing that
// is not said to be renamed changes.
func TestTranslation(t *testing.T) {
	tr := NewTranslation(turned)
	for name, test := range map[string]struct{ answers, base, own string }{
		"a request":            {"", `{"id":1,"method":"a/get","params":{"key":"k","_meta":{"version":"1","x":[1]}}}`, `{"id":1,"method":"a/read","params":{"id":"k","_meta":{"v":"2","x":[1]}}}`},
		"another":              {"", `{"id":1,"method":"b","params":{"key":"k","_meta":{"version":"1"}}}`, `{"id":1,"method":"b","params":{"key":"k","_meta":{"v":"2"}}}`},
		"a notification":       {"", `{"method":"n","params":{"_meta":{"version":"1"}}}`, `{"method":"n","params":{"_meta":{"version":"1"}}}`},
		"changed with another": {"a/get", `{"id":1,"result":{"left":"open","right":"open","n":1.50,"more":[{"x":{"x":1}},2]}}`, `{"id":1,"result":{"right":"ajar","left":"open","n":1.50,"rest":[{"y":{"x":1}},2]}}`},
		"another's name":       {"a/get", `{"id":1,"result":{"rest":12345678901234567890}}`, `{"id":1,"result":{"more":12345678901234567890}}`},
		"another's value":      {"a/get", `{"id":1,"result":{"left":"ajar"}}`, `{"id":1,"result":{"right":"open"}}`},
		"in a map":             {"a/get", `{"id":1,"result":{"more":{"x":{"x":1},"k":{"x":"<"}}}}`, `{"id":1,"result":{"rest":{"x":{"y":1},"k":{"y":"<"}}}}`},
		"one kind":             {"call", `{"id":1,"result":{"n":1,"kind":"job"}}`, `{"id":1,"result":{"m":1,"sort":"task"}}`},
		"no kind":              {"call", `{"id":1,"result":{"n":1,"kind":"other"}}`, `{"id":1,"result":{"n":1,"sort":"other"}}`},
		"nothing":              {"call", `{"id":1,"result":null}`, `{"id":1,"result":null}`},
		"not what it should":   {"a/get", `{"id":1,"result":["left",{"left":1}]}`, `{"id":1,"result":["left",{"left":1}]}`},
		"an error":             {"a/get", `{"id":1,"error":{"code":-1,"data":{"left":-1}}}`, `{"id":1,"error":{"code":-2,"data":{"left":-1}}}`},
		"an error of its own":  {"a/get", `{"id":1,"error":{"code":-2}}`, `{"id":1,"error":{"code":-1}}`},
		"a batch":              {"", `[{"id":1,"method":"a/get"}]`, `[{"id":1,"method":"a/get"}]`},
		"no JSON":              {"", `{"method":"a/get"`, `{"method":"a/get"`},
		"a string":             {"", `"a/get"`, `"a/get"`},
	} {
		if got := tr.Out([]byte(test.base), test.answers); string(got) != test.own {
			t.Errorf("%s goes out as %s", name, got)
		}
		if got := tr.In([]byte(test.own), test.answers); string(got) != test.base {
			t.Errorf("%s comes in as %s", name, got)
		}
	}
	for text, own := range map[string]bool{`{"_meta":{"v":"2"}}`: true, `{"_meta":{"v":"1"}}`: false, `{"_meta":{"version":"2"}}`: false, `{"_meta":{"v":2}}`: false, `{"_meta":[]}`: false, ``: false} {
		if _, got := tr.Names(json.RawMessage(text)); got != own {
			t.Errorf("%s names it: %v", text, got)
		}
	}
	if tr.InMethod("a/read") != "a/get" || tr.OutMethod("a/get") != "a/read" || tr.InMethod("a/get") != "a/read" || tr.InVersion("2") != "1" || tr.OutVersion("1") != "2" || tr.InVersion("3") != "3" {
		t.Error("methods or versions")
	}
}

// TestClosed: names lead one way each, also those that lead nowhere.
func TestClosed(t *testing.T) {
	for _, test := range []struct{ names, want map[string]string }{
		{nil, nil},
		{map[string]string{"a": "b"}, map[string]string{"a": "b", "b": "a"}},
		{map[string]string{"a": "b", "b": "c"}, map[string]string{"a": "b", "b": "c", "c": "a"}},
		{map[string]string{"a": "b", "b": "a", "c": "d"}, map[string]string{"a": "b", "b": "a", "c": "d", "d": "c"}},
	} {
		if got := closed(test.names); !maps.Equal(got, test.want) {
			t.Errorf("%v is closed by %v", test.names, got)
		}
	}
}

// FuzzTranslation: whatever a peer sends, it is translated back to what it was.
func FuzzTranslation(f *testing.F) {
	tr := NewTranslation(turned)
	for _, seed := range []string{`{"id":1,"result":{"left":"open","more":[{"x":1}]}}`, `{"method":"a/get","params":{"_meta":{"version":"1"}}}`, `{"error":{"code":-1}}`, `{"result":{"left":{"left":1},"left":2}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		own := tr.Out(message, "a/get")
		if json.Valid(message) != json.Valid(own) {
			t.Fatalf("%s becomes %s", message, own)
		}
		if again := tr.Out(tr.In(own, "a/get"), "a/get"); !bytes.Equal(again, own) {
			t.Errorf("%s comes back as %s", own, again)
		}
	})
}
