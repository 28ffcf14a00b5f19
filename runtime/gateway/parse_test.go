package gateway

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestMembers tells what is ambiguous from what is not.
func TestMembers(t *testing.T) {
	known := []string{"name", "_meta"}
	for data, want := range map[string]string{
		`{}`:                                  "",
		`null`:                                "",
		`[1]`:                                 "",
		`{"name":1,"_meta":{"a":1,"A":2}}`:    "",
		`{"other":1,"Other":2}`:               "", // nobody reads them
		`{"name":1,"name":1}`:                 `a member stands twice: "name"`,
		`{"other":1,"other":2}`:               `a member stands twice: "other"`,
		`{"n\u0061me":1,"name":1}`:            `a member stands twice: "name"`,
		`{"Name":1}`:                          `"Name" is written "name"`,
		`{"_META":1}`:                         `"_META" is written "_meta"`,
		`{"a":{"b":[{"name":1}]},"name":"}"}`: "",
	} {
		if _, fault := members([]byte(data), known); fault != want {
			t.Errorf("%s: %q, want %q", data, fault, want)
		}
	}
}

// FuzzMembers holds our reading of an object against the library's.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{}`, ` { "a" : 1 , "b":[{"c":"}"}] } `, `{"\"":"\\","x":"\\\"}"}`, `[]`, `"{"`, `{"a":"` + "\u2028" + `","":null}`, `{"\u0061":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want map[string]json.RawMessage
		if !utf8.Valid(data) || json.Unmarshal(data, &want) != nil {
			return // parse has refused it
		}
		ours, fault := members(data, nil)
		if fault == "" && !(len(ours) == 0 && len(want) == 0) && !reflect.DeepEqual(ours, want) {
			t.Errorf("%q: %q, want %q", data, ours, want)
		}
	})
}

// FuzzPlain holds the short way to read a message against the long one.
func FuzzPlain(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"a":{}}}}}`,
		` { "method" : "tasks/get" , "id" : "a" , "params" : { "_meta" : { "progressToken" : 1 } , "taskId" : null } , "jsonrpc" : "2.0" } `,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"A":1,"a":2}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":null}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026\u002d07-28"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":5,"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"_meta":[],"taskId":"x"}}`, `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":[]}`,
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":null}`, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"a":2}}`,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"ping","result":null}`, `{"jsonrpc":"2.0","id":1,"method":null}`,
		`{"jsonrpc":"2.0","id":1,"\u006dethod":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"ping","error":{"code":1}}`, `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping"} x`, `{"jsonrpc":"2.0","id":1,"method":""}`, `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"_meta":{"io.modelcontextprotocol/PROTOCOLVERSION":1}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !utf8.Valid(body) {
			return // parse has refused it
		}
		m := plain(body)
		if m == nil {
			return
		}
		want, refusal := careful(body)
		if refusal != nil {
			t.Fatalf("%q: %v", body, refusal)
		}
		got := *m
		got.said = nil
		if !reflect.DeepEqual(got, *want) || !reflect.DeepEqual(m.meta(), want.meta()) || m.task() != want.task() {
			t.Errorf("%q: %+v, %+v, want %+v, %+v", body, got, m.meta(), *want, want.meta())
		}
		if reply := encodeResult(m.ID, json.RawMessage(`{}`)); m.ID != nil && !json.Valid(reply) {
			t.Errorf("the reply to %q is %q", body, reply)
		}
	})
}

// TestPlain: what clients usually send takes the short way.
func TestPlain(t *testing.T) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`{"method":"tasks/get","params":{"taskId":"x"},"jsonrpc":"2.0","id":"a"}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{},"task":{}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	} {
		if m := plain([]byte(body)); m == nil || (m.said == nil) == interpreted(m.Method) {
			t.Errorf("%s: %+v", body, m)
		}
	}
}

// FuzzParse holds the gateway's reading of a message against the SDK's: what
// the gateway lets through as a request is the same request behind it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{},"task":{"ttl":1}}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tasks/get","params":{"taskId":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":-9007199254740993,"method":"ping","params":null}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":1,"\u006dethod":"ping","method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `[`, ``, `null`, "\xff", `"x"`, `{"jsonrpc":"2.0","id":1,"method":"\ud800"}`,
		`{"jsonrpc":"2.0","id":1,"method":"x\u0000"}`, ` {"jsonrpc":"2.0","id":"","method":"ping"} `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, batch, refusal := parse(body)
		if refusal != nil || batch {
			if refusal != nil && refusal.Message == "" {
				t.Error("a refusal without a message")
			}
			return
		}
		_ = m.meta()
		_ = has(m.Params, "task")
		if stripped := without(m.Params, "task"); len(stripped) > 0 && !json.Valid(stripped) {
			t.Errorf("without made %q", stripped)
		}
		if !json.Valid(encodeReply(m.ID, json.RawMessage(`{}`), nil)) {
			t.Errorf("the reply to %q is no JSON", body)
		}
		theirs, err := jsonrpc.DecodeMessage(bytes.TrimSpace(body))
		if err != nil {
			return // the SDK refuses more
		}
		request, ok := theirs.(*jsonrpc.Request)
		if !ok || !request.IsCall() {
			if m.request() {
				t.Fatalf("a request only for the gateway: %q", body)
			}
			return
		}
		if !m.request() {
			if m.Method == "" && request.Method == "" {
				return // the SDK refuses a method without a name later
			}
			t.Fatalf("a request only for the SDK: %q", body)
		}
		var ourParams, theirParams any
		_ = json.Unmarshal(m.Params, &ourParams)
		_ = json.Unmarshal(request.Params, &theirParams)
		if request.Method != m.Method || !reflect.DeepEqual(ourParams, theirParams) {
			t.Errorf("%q: the gateway reads %q %s, the SDK %q %s", body, m.Method, m.Params, request.Method, request.Params)
		}
		var ourID, theirID any
		raw, err := json.Marshal(request.ID.Raw())
		if err != nil || json.Unmarshal(m.ID, &ourID) != nil || json.Unmarshal(raw, &theirID) != nil || !reflect.DeepEqual(ourID, theirID) {
			t.Errorf("%q: the id is %s for the gateway, %s for the SDK", body, m.ID, raw)
		}
	})
}
