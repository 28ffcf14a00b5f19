// This server has the issues of projects. It serves HTTP with bearer tokens that its own middleware checks. It logs
// the HTTP requests, and the calls by middleware of the SDK.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// users maps tokens to users. A real server asks its identity provider.
var users = map[string]string{"token-of-ann": "ann", "token-of-bob": "bob"}

type userKey struct{}

// userOf returns the user of a request.
func userOf(ctx context.Context) string {
	user, _ := ctx.Value(userKey{}).(string)
	return user
}

// authenticate refuses requests without a known token.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		user, ok := users[token]
		if !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the token is unknown", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

// statusWriter remembers the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets handlers flush the response.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// logRequests logs each HTTP request.
func logRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun, recorded := time.Now(), &statusWriter{w, http.StatusOK}
		next.ServeHTTP(recorded, r)
		slog.Info("request", "method", r.Method, "user", userOf(r.Context()), "status", recorded.status, "took", time.Since(begun))
	})
}

// logCalls logs each request of the protocol.
func logCalls(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		begun := time.Now()
		result, err := next(ctx, method, req)
		call := slog.Group("call", "method", method)
		if params, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok {
			call = slog.Group("call", "method", method, "tool", params.Name)
		}
		slog.Info("handled", call, "took", time.Since(begun), "error", err)
		return result, err
	}
}

type issue struct {
	Number int    `json:"number"`
	Title  string `json:"title"`
}

// issues has the issues of each project.
var issues = map[string][]issue{
	"engine": {{1, "Stalls in cold weather"}, {2, "Starts twice"}, {3, "Leaks oil"}, {4, "Hums at night"}},
	"wheels": {{1, "One is square"}, {2, "The spare is missing"}},
}

type searchInput struct {
	Words string `json:"words" jsonschema:"Words that the title has."`
}

type searchOutput struct {
	Issues []issue `json:"issues"`
}

func searchIssues(_ context.Context, _ *mcp.CallToolRequest, in searchInput) (*mcp.CallToolResult, searchOutput, error) {
	found := searchOutput{Issues: []issue{}}
	for _, project := range []string{"engine", "wheels"} {
		for _, i := range issues[project] {
			if strings.Contains(strings.ToLower(i.Title), strings.ToLower(in.Words)) {
				found.Issues = append(found.Issues, i)
			}
		}
	}
	return nil, found, nil
}

type getInput struct {
	Project string `json:"project"`
	Number  int    `json:"number"`
}

func getIssue(_ context.Context, _ *mcp.CallToolRequest, in getInput) (*mcp.CallToolResult, issue, error) {
	for _, i := range issues[in.Project] {
		if i.Number == in.Number {
			return nil, i, nil
		}
	}
	return nil, issue{}, fmt.Errorf("project %q has no issue %d", in.Project, in.Number)
}

// exporter exports issues, each in the same time.
type exporter struct{ step time.Duration }

type exportInput struct {
	Project string `json:"project" jsonschema:"The project, such as engine."`
}

type exportOutput struct {
	Lines []string `json:"lines"`
}

// export reads the issues of a project one by one.
func (e exporter) export(ctx context.Context, req *mcp.CallToolRequest, in exportInput) (*mcp.CallToolResult, exportOutput, error) {
	all, ok := issues[in.Project]
	if !ok {
		return nil, exportOutput{}, fmt.Errorf("there is no project %q", in.Project)
	}
	var out exportOutput
	for n, i := range all {
		if token := req.Params.GetProgressToken(); token != nil {
			progress := &mcp.ProgressNotificationParams{ProgressToken: token, Message: i.Title, Progress: float64(n + 1), Total: float64(len(all))}
			if err := req.Session.NotifyProgress(ctx, progress); err != nil {
				return nil, exportOutput{}, err
			}
		}
		select {
		case <-time.After(e.step):
		case <-ctx.Done():
			return nil, exportOutput{}, ctx.Err()
		}
		out.Lines = append(out.Lines, fmt.Sprintf("#%d %s", i.Number, i.Title))
	}
	return nil, out, nil
}

// newServer returns the SDK server, which all sessions share.
func newServer(step time.Duration) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "issues", Version: "0.9.2"}, nil)
	s.AddReceivingMiddleware(logCalls)
	mcp.AddTool(s, &mcp.Tool{Name: "search_issues", Description: "Finds issues by words of their titles."}, searchIssues)
	mcp.AddTool(s, &mcp.Tool{Name: "get_issue", Description: "Returns an issue of a project."}, getIssue)
	mcp.AddTool(s, &mcp.Tool{
		Name: "export_issues", Description: "Exports all issues of a project. This takes a second for each.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, exporter{step}.export)
	return s
}

// run serves HTTP until ctx ends, and then lets the requests under way finish.
func run(ctx context.Context, address string, step time.Duration) error {
	s := newServer(step)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
	mux := http.NewServeMux()
	mux.Handle("/mcp", authenticate(logRequests(handler)))
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("serving http://%s/mcp\n", listener.Addr())
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return web.Shutdown(ending)
}

func main() {
	address := flag.String("http", "127.0.0.1:8080", "serve HTTP at this `address`")
	step := flag.Duration("step", time.Second, "how long the export of an issue takes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *address, *step); err != nil {
		slog.Error("the server ended", "error", err)
	}
}
