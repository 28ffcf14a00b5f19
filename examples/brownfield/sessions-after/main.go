// This server runs builds. It serves one client on standard input and output, or many over HTTP. Each session over HTTP
// has an SDK server for its user. A proxy in front has checked who the user is.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// targets maps each target to the stages of its build.
var targets = map[string][]string{
	"api":     {"fetch", "compile", "test", "package"},
	"docs":    {"render", "check links"},
	"release": {"fetch", "generate", "compile", "vet", "test", "race", "package", "sign"},
}

type userKey struct{}

// userOf returns the user that a context belongs to.
func userOf(ctx context.Context) string {
	user, _ := ctx.Value(userKey{}).(string)
	return user
}

// withUser takes the user from the header that the proxy sets.
func withUser(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, r.Header.Get("X-Forwarded-User"))))
	})
}

// builder has the tools of one user.
type builder struct {
	user string
	step time.Duration // how long a stage takes
}

type buildInput struct {
	Target string `json:"target" jsonschema:"The target to build, as list_targets names it."`
}

type buildOutput struct {
	Target string   `json:"target"`
	User   string   `json:"user"`
	Stages []string `json:"stages"`
}

// build runs the stages of a target one after another, and reports each.
func (b builder) build(ctx context.Context, req *mcp.CallToolRequest, in buildInput) (*mcp.CallToolResult, buildOutput, error) {
	stages, ok := targets[in.Target]
	if !ok {
		return nil, buildOutput{}, fmt.Errorf("there is no target %q: see list_targets", in.Target)
	}
	for i, stage := range stages {
		if token := req.Params.GetProgressToken(); token != nil {
			progress := &mcp.ProgressNotificationParams{ProgressToken: token, Message: stage, Progress: float64(i + 1), Total: float64(len(stages))}
			if err := req.Session.NotifyProgress(ctx, progress); err != nil {
				return nil, buildOutput{}, err
			}
		}
		select {
		case <-time.After(b.step):
		case <-ctx.Done():
			return nil, buildOutput{}, ctx.Err()
		}
	}
	return nil, buildOutput{Target: in.Target, User: b.user, Stages: stages}, nil
}

type targetsOutput struct {
	Targets []string `json:"targets"`
}

func (b builder) listTargets(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, targetsOutput, error) {
	return nil, targetsOutput{slices.Sorted(maps.Keys(targets))}, nil
}

func (b builder) whoami(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "You are " + cmp.Or(b.user, "nobody") + "."}}}, nil, nil
}

// newTasks returns the server of the tasks, which the SDK servers of all users share.
func newTasks() (*taskserver.Server, error) {
	return taskserver.New(taskserver.Options{
		Store:     taskstore.NewMemory(), // tasks end with the process
		Principal: func(ctx context.Context) (string, error) { return userOf(ctx), nil },
	})
}

// newServer returns the SDK server of a user.
func newServer(user string, step time.Duration, tasks *taskserver.Server) (*mcp.Server, error) {
	b := builder{user, step}
	s := mcp.NewServer(&mcp.Implementation{Name: "builds", Version: "1.4.0"}, nil)
	build := &mcp.Tool{Name: "build", Title: "Build", Description: "Builds a target. This takes minutes."}
	if err := gosdk.AddTaskTool(s, tasks, build, b.build, mcptask.Policy{TTL: time.Hour, OnLeave: mcptask.KeepOnLeave}); err != nil {
		return nil, err
	}
	mcp.AddTool(s, &mcp.Tool{Name: "list_targets", Description: "Lists the targets that can be built."}, b.listTargets)
	mcp.AddTool(s, &mcp.Tool{Name: "whoami", Description: "Says which user the session belongs to."}, b.whoami)
	return s, nil
}

// serve serves HTTP until ctx ends, and then lets the requests under way finish.
func serve(ctx context.Context, address string, step time.Duration, tasks *taskserver.Server) error {
	getServer := func(r *http.Request) *mcp.Server {
		s, err := newServer(userOf(r.Context()), step, tasks)
		if err != nil {
			log.Print(err)
		}
		return s
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", withUser(gosdk.NewHandler(tasks, getServer, nil)))
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
	return gosdk.Shutdown(ending, web, tasks)
}

// run serves HTTP, or standard input and output if there is no address.
func run(ctx context.Context, address string, step time.Duration) error {
	tasks, err := newTasks()
	if err != nil {
		return err
	}
	if address != "" {
		return serve(ctx, address, step, tasks)
	}
	ctx = context.WithValue(ctx, userKey{}, cmp.Or(os.Getenv("USER"), "local"))
	s, err := newServer(userOf(ctx), step, tasks)
	if err != nil {
		return err
	}
	return errors.Join(s.Run(ctx, gosdk.StdioTransport(tasks)), tasks.Close())
}

func main() {
	address := flag.String("http", "", "serve HTTP at this `address`, instead of standard input and output")
	step := flag.Duration("step", time.Second, "how long a stage of a build takes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *address, *step); err != nil {
		log.Print(err)
	}
}
