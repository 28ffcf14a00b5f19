// Package taskserver runs the tools of services and keeps their tasks.
//
// [New] makes a [Server] of generated tools. [Options] sets its store, its [Limits], its [Hooks] and its log. The
// server speaks no protocol. Packages gosdk and mcpgo put it beside a server of an SDK:
//
//	tasks, err := taskserver.New(taskserver.Options{}, pipeline.CITools(ci{}))
//	…
//	sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
//	gosdk.AddTools(sdk, tasks)
//	handler := gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil)
//
// An [Operator] sees and changes the tasks of all principals, for the person who runs the server.
//
// # Executors
//
// An [Executor] decides when and where handlers run. Without one, they run in this process, as many at once as
// Options.Concurrency says. An [Engine] keeps tasks alive itself, such as one on a workflow engine. Package
// executortest tests an executor.
//
// # Gateways and adapters
//
// [Server.Backend] returns the server for gateways and adapters. A gateway reads the requests of a protocol. It finds the
// [Caller], and calls [Backend.Call] for a tool and the other methods for tasks. Package gateway is one, for HTTP and
// pipes. An adapter of an SDK does not call them itself: it registers gateway.Tools, and each of these tools takes its
// gateway.Flow and runs it.
package taskserver
