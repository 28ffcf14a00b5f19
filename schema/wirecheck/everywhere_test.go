package wirecheck_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// serves are the calls that start a server, or make one that could be started.
var serves = map[string]bool{
	"memnet.NewServer": true, "httptest.NewServer": true, "httptest.NewUnstartedServer": true, "httptest.NewTLSServer": true, "httptest.NewRecorder": true,
	"gosdk.NewHandler": true, "mcpgo.NewHandler": true, "gateway.New": true, "mcp.NewStreamableHTTPHandler": true,
	"server.NewStreamableHTTPServer": true, "gosdk.StdioTransport": true, "gosdk.PipeTransport": true, "wiretest.PipeTransport": true, "PipeTransport": true, "pipeTransport": true,
	"mcptasktest.Connect": true, "net.Listen": true, "http.Serve": true,
}

// taps are the calls that put the tap in between.
var taps = map[string]bool{
	"wirecheck.Handler": true, "wirecheck.Pipes": true, "wirecheck.Process": true, "wirecheck.TB": true,
	"wirecheck.RevisionHandler": true, "wirecheck.RevisionPipes": true, "wirecheck.RevisionTB": true,
}

// untapped are the functions whose servers stand without the tap, and why.
var untapped = map[string]string{
	"generator/internal/record/record_test.go TestHTTP":                           "answers for a server of somebody else's, so as no server of ours does",
	"generator/internal/record/record_test.go TestStateless":                      "as TestHTTP",
	"generator/internal/record/record_test.go TestBadServers":                     "as TestHTTP",
	"generator/internal/record/record_test.go TestDeepList":                       "as TestHTTP",
	"cmd/mcptask/terminal_linux_test.go TestTerminalTasks":                        "plays a server that means ill",
	"cmd/mcptask/calls_test.go listTools":                                         "plays a server that refuses, or answers nonsense",
	"runtime/gosdk/auth_test.go TestRequireBearerToken":                           "is about who is let in, and serves nothing behind it",
	"runtime/console/console_test.go openWith":                                    "serves a page to browsers",
	"runtime/console/example_test.go ExampleNew":                                  "as openWith",
	"runtime/gosdk/passthrough_test.go TestPassthrough":                           "compares the SDK's own answers, broken or not",
	"runtime/mcpgo/passthrough_test.go TestPassthrough":                           "as gosdk's TestPassthrough",
	"runtime/gosdk/health_test.go TestProbes":                                     "answers probes, which speak no protocol",
	"runtime/internal/wiretest/beside.go Echo":                                    "the floor of the benchmarks, which is no server of ours",
	"runtime/mcptasktest/example_test.go ExampleConnect":                          "reads as a user's test does; TestAnHourTakesNoTime has the same traffic",
	"runtime/internal/wiretest/piped.go PipeTransport":                            "serves for tests that are looked at themselves",
	"runtime/internal/wiretest/piped.go Connect":                                  "as PipeTransport",
	"runtime/internal/wiretest/serve.go listen":                                   "serves the handler that it gets",
	"runtime/gosdk/fuzz_test.go newFuzzed":                                        "FuzzHTTP taps the handler for each input",
	"runtime/gosdk/internal/siege/served_test.go serve":                           "a process whose processor time and memory are measured, which the tap would take too; FuzzHTTP taps the same requests",
	"runtime/gosdk/internal/siege/client_test.go TestClient":                      "plays a server that means ill",
	"runtime/gosdk/fuzz_test.go serve":                                            "serves the handler that it gets",
	"runtime/gateway/internal/hostiletest/hostile_pipe_test.go close":             "counts, and serves no client",
	"runtime/gosdk/export_test.go PipeTransport":                                  "serves for tests that are looked at themselves",
	"runtime/gateway/internal/hostiletest/hostile_test.go TestHostileBareHandler": "the SDK's own handler beside ours, behind the tap of the whole server",
	"runtime/gosdk/receiver_hostile_test.go TestReceiverNotIn20260728":            "plays a foreign server",
	"runtime/gosdk/connect_test.go TestConnectRefused":                            "plays a proxy that refuses everything",
	"runtime/gosdk/receiver_peer_test.go overHTTP":                                "plays a foreign server",
	"runtime/gosdk/client_bounds_test.go TestCompressed":                          "plays a server that means ill",
	"runtime/gateway/internal/edgetest/security_test.go TestAllowedHosts":         "counts what a proxy gets through; other tests of the package have the same traffic",
	"runtime/gosdk/connect_fallback_test.go TestConnectFindsTasks":                "plays a server that has no tasks",
	"runtime/gosdk/connect_test.go TestRedirectElsewhere":                         "plays a server that sends its clients elsewhere",
	"runtime/gosdk/connect_test.go TestRedirectWithin":                            "as TestRedirectElsewhere",
	"runtime/gosdk/connect_test.go TestNoBearer":                                  "is sent nothing: the client has no token",
	"runtime/gosdk/collected_test.go TestHandlersAndPipesAreCollected":            "makes handlers and pipes, which say nothing, and drops them",
	"runtime/gosdk/export_test.go NewSDKHandler":                                  "wiretest.ServeWith puts the tap in front",
	"runtime/gosdk/call_test.go TestServerOfRequest":                              "as NewSDKHandler",
	"examples/internal/scaffold/testdata/weight/mcpgo/main.go main":               "is measured: its size, its build and its start",
	"examples/internal/scaffold/testdata/weight/memory/main.go main":              "is measured: its size, its build and its start",
	"examples/internal/scaffold/testdata/weight/sdk/main.go main":                 "is measured: its size, its build and its start",
	"examples/internal/scaffold/full_test.go testOAuth":                           "serves keys, and speaks no protocol",
	"runtime/internal/wiretest/beside.go ServeUnchecked":                          "measures the server alone; edgetest has the same traffic",
	"runtime/gateway/shared_response_test.go TestSharedResponse":                  "has no server behind the gateway: the test writes the response",
	"runtime/gateway/shared_response_test.go TestCallResponse":                    "as TestSharedResponse",
	"runtime/gateway/shared_response_test.go TestCallResponseEnded":               "as TestSharedResponse",
	"runtime/gateway/shared_response_test.go TestCallResponseInformed":            "as TestSharedResponse",
	"runtime/gateway/shared_response_test.go TestCallResponseUnread":              "as TestSharedResponse",
	"runtime/mcptasktest/log_test.go TestDefaultLogger":                           "reads the log; other tests have the same traffic",
	"runtime/mcptasktest/example_resume_test.go TestResumedCall":                  "reads as a user's test does; gosdk's tests have the same traffic",
	"runtime/mcptasktest/example_resume_test.go TestResumedCallIsGone":            "as TestResumedCall",
	"runtime/mcptasktest/hours_test.go TestSixHours":                              "reads as a user's test does, and most polls are not sent",
	"runtime/mcptasktest/example_steps_test.go TestEachStepRunsOnce":              "reads as a user's test does; TestInterrupt has the same traffic",
	"runtime/mcptasktest/example_steps_test.go ExampleOnce":                       "as TestEachStepRunsOnce",
	"runtime/mcptasktest/conn_test.go TestPollsEnd":                               "as TestPollsFindNews",
	"runtime/mcptasktest/conn_test.go TestPollsFindNews":                          "as TestSixHours: with the tap all polls are sent",
	"runtime/mcptasktest/conn_test.go TestPollsMeetLimits":                        "as TestPollsFindNews",
	"runtime/mcptasktest/conn_test.go TestPollsOfAnother":                         "as TestPollsFindNews",
	"runtime/gateway/gateway_test.go serve":                                       "its callers have the tap, or no server behind the gateway that answers",
	"runtime/gosdk/example_test.go ExampleNewHandler":                             "reads as a user's program does; other tests of gosdk have the same traffic",
	"runtime/gosdk/example_test.go ExampleAddTaskTool":                            "as ExampleNewHandler",
	"runtime/gosdk/example_origins_test.go ExampleAllowOrigins":                   "reads as a user's program does; no request reaches the server",
	"runtime/gosdk/example_test.go ExampleStdioTransport":                         "as ExampleNewHandler",
	"cmd/mcptask/call_test.go serveCalls":                                         "speaks on standard pipes to the command that started it; TestScripts has the same traffic over HTTP",
	"examples/hosts/demopicture_test.go TestDemoPicture":                          "serves a recording to a browser, and speaks no protocol",
	"examples/hosts/originpage_test.go servePage":                                 "serves a page to a browser, and speaks no protocol",
	"runtime/internal/wiretest/stdio.go servePrinting":                            "is about who gets standard output; its test reads each line",
	"runtime/gosdk/held_test.go serveHeld":                                        "a process whose processor time is measured, which the tap would take too",
	"examples/internal/replicas/proxy_test.go startProxy":                         "the proxy passes on whatever it gets",
	"examples/internal/replicas/proxy_test.go newNumbered":                        "stands behind the proxy and speaks no protocol",
	"examples/internal/replicas/proxy_test.go TestProxyRepeatsNothing":            "as newNumbered",
	"examples/internal/replicas/proxy_test.go TestProxyFlushes":                   "as newNumbered",
	"examples/oauth/authserver_test.go startAuthServer":                           "signs users in, and speaks no MCP",
	"runtime/internal/chaos/worker_test.go newServer":                             "is killed while it speaks; edgetest and pushtest have the same traffic",
	"runtime/internal/chaos/lossless_test.go serveHere":                           "as newServer",
	"runtime/gosdk/example_test.go serveExample":                                  "as ExampleNewHandler",
}

// helpers are the directories of packages that tests share.
var helpers = []string{"golden/internal/", "examples/internal/", "runtime/internal/wiretest/"}

// TestEverywhere finds tests with a server whose messages are not checked. A server in its own process cannot have the
// tap inside. If it speaks HTTP, peer.Serve puts the tap in front. If it speaks on standard pipes to the client that
// started it, only runtime/gosdk checks it.
func TestEverywhere(t *testing.T) {
	root := filepath.Join("..", "..")
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		if d.IsDir() {
			if d.Name() == "node_modules" || d.Name() == ".git" || name == "schema/wirecheck" {
				return filepath.SkipDir
			}
			return nil
		}
		// The helpers of tests too.
		helper := strings.HasSuffix(name, ".go") && slices.ContainsFunc(helpers, func(directory string) bool { return strings.HasPrefix(name, directory) })
		if !strings.HasSuffix(name, "_test.go") && !helper {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, declaration := range file.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if !ok || f.Body == nil || strings.HasPrefix(f.Name.Name, "Benchmark") { // measures the server alone
				continue
			}
			server, tapped := "", false
			ast.Inspect(f.Body, func(n ast.Node) bool {
				switch call := called(n); {
				case serves[call]:
					server = call
				case taps[call]:
					tapped = true
				}
				return true
			})
			where := name + " " + f.Name.Name
			switch {
			case server == "" || tapped:
			case untapped[where] != "":
				found[where] = true
			default:
				t.Errorf("%s: %s serves without the tap: put wirecheck.Handler in front, or Pipes, or give mcptasktest.Connect wirecheck.TB(t)", where, server)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for where := range untapped {
		if !found[where] {
			t.Errorf("%s is an exception without a server", where)
		}
	}
}

// called returns the name of the function that a node calls or of the type that it makes, with its
// package.
func called(n ast.Node) string {
	var what ast.Expr
	switch n := n.(type) {
	case *ast.CallExpr:
		what = n.Fun
	case *ast.CompositeLit:
		what = n.Type
	}
	switch what := what.(type) {
	case *ast.Ident:
		return what.Name
	case *ast.SelectorExpr:
		if x, ok := what.X.(*ast.Ident); ok {
			return x.Name + "." + what.Sel.Name
		}
	}
	return ""
}
