// This server looks after the backups of databases. It serves HTTP. A restore is the work of a child process, which is
// this program too.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// snapshot is the backup of a database at a time.
type snapshot struct {
	ID    string `json:"id"`
	Taken string `json:"taken"`
	Parts int    `json:"parts"`
}

// databases maps each database to its snapshots, the oldest first.
var databases = map[string][]snapshot{
	"orders": {{"0001", "2026-11-01T00:00:00Z", 3}, {"0002", "2026-11-02T00:00:00Z", 4}},
	"users":  {{"0001", "2026-11-01T12:00:00Z", 2}},
}

// toolText returns a value as the text of a result.
func toolText(value any) (*mcp.CallToolResult, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return mcp.NewToolResultText(string(data)), nil
}

// withSnapshots makes a handler for a tool that is about a database.
func withSnapshots(answer func(name string, all []snapshot) any) server.ToolHandlerFunc {
	return func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		name := req.GetString("database", "")
		all, ok := databases[name]
		if !ok {
			return mcp.NewToolResultErrorf("there is no database %q", name), nil
		}
		return toolText(answer(name, all))
	}
}

// restorer runs restores.
type restorer struct{ step time.Duration }

// restore has a child process restore a database, and passes on the parts that it reports.
func (r restorer) restore(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	name := req.GetString("database", "")
	all, ok := databases[name]
	if !ok {
		return mcp.NewToolResultErrorf("there is no database %q", name), nil
	}
	parts, output := all[len(all)-1].Parts, req.GetString("output", "")
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	child := exec.CommandContext(ctx, self, "-restore", output, "-parts", fmt.Sprint(parts), "-step", r.step.String())
	var faults bytes.Buffer
	child.Stderr = &faults
	lines, err := child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := child.Start(); err != nil {
		return nil, err
	}
	part := 0
	for scan := bufio.NewScanner(lines); scan.Scan(); {
		if part++; req.Params.Meta == nil || req.Params.Meta.ProgressToken == nil {
			continue
		}
		progress := map[string]any{"progressToken": req.Params.Meta.ProgressToken, "progress": part, "total": parts, "message": scan.Text()}
		if err := server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress", progress); err != nil {
			log.Print(err)
		}
	}
	if err := child.Wait(); err != nil {
		return mcp.NewToolResultErrorf("the restore failed: %v: %s", err, faults.String()), nil
	}
	return mcp.NewToolResultText(fmt.Sprintf("Restored %s: %d parts.", name, part)), nil
}

// restoreParts is the work of the child process. Its output has a line for each part.
func restoreParts(output string, parts int, step time.Duration) error {
	file, err := os.CreateTemp(filepath.Dir(output), "restore")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // it has the name output if all went well
	for i := range parts {
		fmt.Printf("part %d of %d\n", i+1, parts)
		time.Sleep(step)
		if _, err := fmt.Fprintf(file, "part %d\n", i+1); err != nil {
			return err
		}
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), output)
}

// newServer returns the server with its seven tools.
func newServer(step time.Duration) *server.MCPServer {
	s := server.NewMCPServer("backups", "2.0.1", server.WithToolCapabilities(true), server.WithRecovery())
	about := mcp.WithString("database", mcp.Required(), mcp.Description("The name of a database"))
	s.AddTool(mcp.NewTool("list_databases", mcp.WithDescription("List the databases")),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return toolText(slices.Sorted(maps.Keys(databases)))
		})
	s.AddTool(mcp.NewTool("server_info", mcp.WithDescription("Get the version of the server")),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return toolText(map[string]string{"name": "backups", "version": "2.0.1"})
		})
	s.AddTool(mcp.NewTool("list_snapshots", mcp.WithDescription("List the snapshots of a database"), about),
		withSnapshots(func(_ string, all []snapshot) any { return all }))
	s.AddTool(mcp.NewTool("latest_snapshot", mcp.WithDescription("Get the newest snapshot of a database"), about),
		withSnapshots(func(_ string, all []snapshot) any { return all[len(all)-1] }))
	s.AddTool(mcp.NewTool("count_parts", mcp.WithDescription("Count the parts of all snapshots of a database"), about),
		withSnapshots(func(_ string, all []snapshot) any {
			parts := 0
			for _, one := range all {
				parts += one.Parts
			}
			return parts
		}))
	s.AddTool(mcp.NewTool("check_database", mcp.WithDescription("Check that a database has a snapshot"), about),
		withSnapshots(func(name string, all []snapshot) any { return map[string]any{"database": name, "snapshots": len(all)} }))
	s.AddTool(mcp.NewTool("restore_database", mcp.WithDescription("Restore the newest snapshot of a database. This takes minutes."), about,
		mcp.WithString("output", mcp.Required(), mcp.Description("The file to write")), mcp.WithTitleAnnotation("Restore a database")), restorer{step}.restore)
	return s
}

// run serves HTTP until ctx ends, and then lets the requests under way finish.
func run(ctx context.Context, address string, step time.Duration) error {
	handler := server.NewStreamableHTTPServer(newServer(step))
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
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
	step := flag.Duration("step", time.Second, "how long a part of a restore takes")
	restore := flag.String("restore", "", "restore into this `file`, as the child process of a server")
	parts := flag.Int("parts", 0, "how many parts the child process restores")
	flag.Parse()
	if *restore != "" {
		if err := restoreParts(*restore, *parts, *step); err != nil {
			log.Fatal(err)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *address, *step); err != nil {
		log.Print(err)
	}
}
