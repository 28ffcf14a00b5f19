package gosdk_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// A page in a browser first asks whether it may call, without a token. AllowOrigins answers that in front of the check of
// tokens, and lets the page read the refusal of a token.
func ExampleAllowOrigins() {
	tasks, err := taskserver.New(taskserver.Options{
		AllowedOrigins: []string{"https://app.example.com"},
	}, pipeline.CITools(exampleCI{}))
	if err != nil {
		log.Fatal(err)
	}
	defer tasks.Close()
	sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	verify := func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
		return nil, auth.ErrInvalidToken
	}

	handler := gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil)
	pages := gosdk.AllowOrigins(tasks, gosdk.RequireBearerToken(verify, nil)(handler))

	preflight := httptest.NewRequest(http.MethodOptions, "/mcp", nil)
	preflight.Header.Set("Access-Control-Request-Method", http.MethodPost)
	preflight.Header.Set("Access-Control-Request-Headers", "authorization,content-type,mcp-protocol-version")
	for _, r := range []*http.Request{preflight, httptest.NewRequest(http.MethodPost, "/mcp", nil)} {
		r.Header.Set("Origin", "https://app.example.com")
		answer := httptest.NewRecorder()
		pages.ServeHTTP(answer, r)
		fmt.Println(r.Method, answer.Code, answer.Header().Get("Access-Control-Allow-Origin"), answer.Header().Get("Access-Control-Allow-Headers"))
	}
	// Output:
	// OPTIONS 204 https://app.example.com authorization,content-type,mcp-protocol-version
	// POST 401 https://app.example.com
}
