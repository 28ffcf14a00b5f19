package gosdk

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
)

// served is what is known of an SDK server that has tools of tasks. It does not keep the server. It is safe for
// concurrent use.
type served struct {
	server weak.Pointer[mcp.Server]
	// annotated has the names of the tools whose schema has x-mcp-header, which the SDK compares with the headers.
	annotated sync.Map
	// info is how the SDK names the server in results of 2026-07-28. It is nil until the SDK has made such a
	// result, which also shows that the server speaks the revision.
	info atomic.Pointer[json.RawMessage]
}

// setInfo notes how the SDK names the server.
func (s *served) setInfo(info *mcp.Implementation) {
	if s.info.Load() != nil {
		return
	}
	if data, err := json.Marshal(info); err == nil {
		s.info.Store((*json.RawMessage)(&data))
	}
}

// newResult makes the SDK's type of a result of the server.
func (s *served) newResult(data json.RawMessage, err error) (mcp.Result, error) {
	if err != nil {
		return nil, toSDKError(err)
	}
	return &rawResult{body: data, of: s}, nil
}

// connect tells the flow of an initialize of its session.
func (s *served) connect(flow *gateway.Flow, req mcp.Request, result mcp.Result) {
	session, ok := req.GetSession().(*mcp.ServerSession)
	init, isInit := result.(*mcp.InitializeResult)
	if !ok || !isInit {
		return
	}
	known := &servedSession{server: s.server, session: weak.Make(session)}
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		known.user = extra.TokenInfo.UserID
	}
	flow.Session = known
	flow.Connected(session.ID(), init.ProtocolVersion, session.Wait)
}

// servedSession is what is known of a session of the SDK. It does not keep the session.
type servedSession struct {
	server  weak.Pointer[mcp.Server]
	session weak.Pointer[mcp.ServerSession]
	user    string // the only one whose tokens the SDK takes; "" if it takes any
}

// admits reports whether the SDK takes a request with a token, which is nil if the request has none.
func (s *servedSession) admits(token *auth.TokenInfo) bool {
	return s.user == "" || token != nil && token.UserID == s.user
}

// servedBy returns what is known of an SDK server. It returns nil if the server has no tools of tasks.
func servedBy(tasks *mcptask.Server, server *mcp.Server) *served {
	known, _ := attachedTo(tasks).Load(weak.Make(server))
	of, _ := known.(*served)
	return of
}
