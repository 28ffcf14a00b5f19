// Package mcptask runs the tools of the Model Context Protocol (MCP) that take
// minutes or hours. A call of such a tool becomes a task: the client gets the
// task's ID at once, follows its progress, answers its questions, and reads the
// result when it is there.
//
// You declare the tools as a Go interface, and the command mcptaskgen generates
// their registration and a typed client:
//
//	//go:generate go tool mcptaskgen
//
//	// CI runs continuous-integration jobs.
//	//
//	//mcptask:service
//	type CI interface {
//		// RunPipeline builds and tests one branch of a repository.
//		//
//		//mcptask:tool task=optional ttl=24h
//		RunPipeline(ctx context.Context, task *mcptask.Task, in RunInput) (RunReport, error)
//	}
//
// # Handlers
//
// A handler is a method of the interface. It reports its progress with
// [Task.Progress], and returns when its context ends. It asks the user with a
// generated function or with [Ask]. If the user refuses, that returns
// [ErrDeclined] or [ErrDismissed]. If the client cannot ask, it returns
// [ErrCannotAsk]. An ordinary error becomes a tool error, which the model reads.
// [Errorf] makes a protocol error instead. A handler can return a [Result] to
// choose the content blocks itself.
//
// # Servers
//
// Package taskserver makes a server of generated tools, and package gosdk connects it to the official Go SDK, over HTTP
// or over standard input and output:
//
//	tasks, err := taskserver.New(taskserver.Options{}, pipeline.CITools(ci{}))
//	…
//	sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
//	gosdk.AddTools(sdk, tasks)
//	handler := gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil)
//
// # Clients
//
// gosdk.Connect opens a connection, on which the generated client calls the tools
// like Go functions. Its Start methods return a [Call], which can wait for the
// task, cancel it, or hand out a token to resume it in another process. [Settled]
// waits for many calls. [IdempotencyKey], [Plain] and [TTL] are options of a call.
// A failed call returns a [ToolError], an [Error], or one of [ErrCancelled],
// [ErrChanged], [ErrExpired], [ErrNotFound], [ErrWorkerLost] and [ErrDeadline].
// [errors.As] finds a type under //mcptask:error in it, and [CodeOf] returns its code.
//
// # Tests
//
// Package mcptasktest tests handlers, servers and clients without a network.
//
// # Without the generator
//
// Make each tool with [NewTool], put the tools into a [Tools] and pass it to taskserver.New. [Run] and [Start] call a tool by
// its name.
//
// # Other names
//
// Generated code calls these functions too, and [Resume], [Ask] and [Asked]. Clients over other transports implement
// [Conn]. Servers make a [Task] with [NewTask] and carry out its requests with a [Host]. Tasks are stored in package
// taskstore.
//
// The package keeps a task in one form for all revisions of the protocol. It imports no server, no MCP SDK and no
// database driver. Those are in its subpackages.
package mcptask
