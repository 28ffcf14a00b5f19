package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/internal/nearest"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// sdkServer has the facts about an SDK server that has tools of tasks. Its pointer to the server is weak. It is safe for
// concurrent use.
type sdkServer struct {
	server weak.Pointer[mcp.Server]
	// annotated has the names of the tools whose schema has x-mcp-header. The SDK's handler checks their headers.
	annotated sync.Map
	// added has the names of the tools of AddTools and the fallback tools.
	added sync.Map
	// middlewareCode is the code pointer of the middleware of tasks. By it, explainUnknown sees whether that is the
	// outermost one.
	middlewareCode uintptr
	// info is the server's name and version in results of 2026-07-28. It is nil until the SDK has made such a result,
	// which also shows that the server speaks the revision.
	info atomic.Pointer[json.RawMessage]
}

// setInfo sets the name and version, unless they are known.
func (s *sdkServer) setInfo(info *mcp.Implementation) {
	if s.info.Load() != nil {
		return
	}
	if data, err := json.Marshal(info); err == nil {
		s.info.Store((*json.RawMessage)(&data))
	}
}

// newResult makes the SDK's type of a result of the server.
func (s *sdkServer) newResult(data json.RawMessage, err error) (mcp.Result, error) {
	if err != nil {
		return nil, toSDKError(err)
	}
	return &rawResult{body: data, server: s}, nil
}

// explainUnknown adds the nearest tool of tasks to the SDK's error for a tool that does not exist. It looks among the tools
// that next lists, so that middleware which was added before can hide some. If middleware was added later, the error stays
// as it is: that may hide more tools, and may hold a lock while it serves the call.
func (s *sdkServer) explainUnknown(ctx context.Context, next mcp.MethodHandler, tasks *taskserver.Backend, req *mcp.CallToolRequest, err error) error {
	name, server := req.Params.Name, s.server.Value()
	var unknown *jsonrpc.Error
	if server == nil || !errors.As(err, &unknown) || unknown.Message != fmt.Sprintf("unknown tool %q", name) ||
		reflect.ValueOf(findReceivingHandler(server)).Pointer() != s.middlewareCode {
		return err
	}
	result, unlisted := next(ctx, "tools/list", &mcp.ListToolsRequest{Session: req.Session, Params: new(mcp.ListToolsParams), Extra: req.Extra})
	listed, ok := result.(*mcp.ListToolsResult)
	if unlisted != nil || !ok {
		return err
	}
	var names []string
	for _, tool := range listed.Tools {
		if _, ok := tasks.Tool(tool.Name); ok {
			names = append(names, tool.Name)
		}
	}
	near := nearest.Name(name, names, len(name)/3+1)
	if near == "" {
		return err
	}
	explained := *unknown
	if explained.Message += fmt.Sprintf("; the nearest is %q", near); !gateway.IsAdopted(tasks, near) {
		explained.Message += fmt.Sprintf(". If that is its new name, was=%s in its declaration keeps the old one", name)
	}
	return &explained
}

// reportSession reports to the flow of an initialize the session that it opened.
func (s *sdkServer) reportSession(flow *gateway.Flow, req mcp.Request, result mcp.Result) {
	opened, ok := req.GetSession().(*mcp.ServerSession)
	init, isInit := result.(*mcp.InitializeResult)
	if !ok || !isInit {
		return
	}
	session := &sdkSession{server: s.server, session: weak.Make(opened)}
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		session.user = extra.TokenInfo.UserID
	}
	flow.Session = session
	flow.Connected(opened.ID(), init.ProtocolVersion, opened.Wait)
}

// sdkSession has a session of the SDK and its server. Both pointers are weak.
type sdkSession struct {
	server  weak.Pointer[mcp.Server]
	session weak.Pointer[mcp.ServerSession]
	user    string // the only one whose tokens the SDK takes; "" if it takes any
}

// admits reports whether the SDK takes a request of the session.
func (s *sdkSession) admits(r *http.Request) bool {
	token := auth.TokenInfoFromContext(r.Context())
	return s.user == "" || token != nil && token.UserID == s.user
}

// findSDKServer returns the sdkServer of an SDK server. It returns nil if the server has no tools of tasks.
func findSDKServer(tasks *taskserver.Backend, server *mcp.Server) *sdkServer {
	found, _ := sdkServersOf(tasks).Load(weak.Make(server))
	sdk, _ := found.(*sdkServer)
	return sdk
}
