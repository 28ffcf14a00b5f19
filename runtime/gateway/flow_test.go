package gateway

import (
	"net/http"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// TestFlowTokens checks that a token gives its flow once, and never after the request has ended.
func TestFlowTokens(t *testing.T) {
	server := newServer(t, taskserver.Options{})
	token, _ := OpenFlow(server.Backend(), &Flow{})
	if TakeFlow(server.Backend(), token) == nil || TakeFlow(server.Backend(), token) != nil {
		t.Error("the token is not for a single use")
	}
	token = ""
	g := New(Config{Server: server.Backend(), Stateless: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		token = r.Header.Get(FlowHeader) // and the SDK does not take the flow
	})})
	serve(g, newRequest(t.Context(), http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+taskMeta+`}}`))
	if token == "" || TakeFlow(server.Backend(), token) != nil {
		t.Errorf("the flow of token %q is left", token)
	}
}
