package gateway

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// FuzzParse compares the gateway's reading of a message with the SDK's: the SDK reads every request that the gateway
// accepts as the same request.
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
		m, refusal := parseMessage(body)
		if refusal != nil {
			if refusal.Message == "" {
				t.Error("a refusal without a message")
			}
			return
		}
		if edited, err := m.Edited(wire.Delete("params", "task"), wire.Set([]byte(`"t"`), "params", "_meta", FlowMeta)); err == nil && !json.Valid(edited) {
			t.Errorf("the edits made %q", edited)
		}
		if !json.Valid(wire.EncodeReply(m.ID, json.RawMessage(`{}`), nil)) {
			t.Errorf("the reply to %q is no JSON", body)
		}
		theirs, err := jsonrpc.DecodeMessage(bytes.TrimSpace(body))
		if err != nil {
			return // the SDK refuses more
		}
		request, ok := theirs.(*jsonrpc.Request)
		if !ok || !request.IsCall() {
			if m.IsRequest() {
				t.Fatalf("a request only for the gateway: %q", body)
			}
			return
		}
		if !m.IsRequest() {
			if m.Method == "" && request.Method == "" {
				return // the SDK refuses a method without a name later
			}
			t.Fatalf("a request only for the SDK: %q", body)
		}
		var ourParams, theirParams any
		_ = json.Unmarshal(m.Params.Raw(), &ourParams)
		_ = json.Unmarshal(request.Params, &theirParams)
		if request.Method != m.Method || !reflect.DeepEqual(ourParams, theirParams) {
			t.Errorf("%q: the gateway reads %q %s, the SDK %q %s", body, m.Method, m.Params.Raw(), request.Method, request.Params)
		}
		var ourID, theirID any
		raw, err := json.Marshal(request.ID.Raw())
		if err != nil || json.Unmarshal(m.ID, &ourID) != nil || json.Unmarshal(raw, &theirID) != nil || !reflect.DeepEqual(ourID, theirID) {
			t.Errorf("%q: the id is %s for the gateway, %s for the SDK", body, m.ID, raw)
		}
	})
}
