// This server runs builds. It serves one client on standard input and output, or many over HTTP. Each session over HTTP
// has an SDK server for its user. A proxy in front has checked who the user is.
package main

import (
	"cmp"
	"context"
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

// newServer returns the SDK server of a user.
func newServer(user string, step time.Duration) *mcp.Server {
	b := builder{user, step}
	s := mcp.NewServer(&mcp.Implementation{Name: "builds", Version: "1.4.0"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "build", Title: "Build", Description: "Builds a target. This takes minutes."}, b.build)
	mcp.AddTool(s, &mcp.Tool{Name: "list_targets", Description: "Lists the targets that can be built."}, b.listTargets)
	mcp.AddTool(s, &mcp.Tool{Name: "whoami", Description: "Says which user the session belongs to."}, b.whoami)
	return s
}

// serve serves HTTP until ctx ends, and then lets the requests under way finish.
func serve(ctx context.Context, address string, step time.Duration) error {
	getServer := func(r *http.Request) *mcp.Server { return newServer(userOf(r.Context()), step) }
	mux := http.NewServeMux()
	mux.Handle("/mcp", withUser(mcp.NewStreamableHTTPHandler(getServer, nil)))
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

// run serves HTTP, or standard input and output if there is no address.
func run(ctx context.Context, address string, step time.Duration) error {
	if address != "" {
		return serve(ctx, address, step)
	}
	ctx = context.WithValue(ctx, userKey{}, cmp.Or(os.Getenv("USER"), "local"))
	return newServer(userOf(ctx), step).Run(ctx, &mcp.StdioTransport{})
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
