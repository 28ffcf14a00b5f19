// Command generated serves the tools of nine published servers, and calls those that run on this
// machine. The test of package published builds it with the packages that it generates.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/examples/published/generated/context7"
	"github.com/mcptaskgen/mcptaskgen/examples/published/generated/everything"
	"github.com/mcptaskgen/mcptaskgen/examples/published/generated/filesystem"
	"github.com/mcptaskgen/mcptaskgen/examples/published/generated/firecrawl"
	"github.com/mcptaskgen/mcptaskgen/examples/published/generated/github"
	"github.com/mcptaskgen/mcptaskgen/examples/published/generated/memory"
	"github.com/mcptaskgen/mcptaskgen/examples/published/generated/notion"
	"github.com/mcptaskgen/mcptaskgen/examples/published/generated/playwright"
	"github.com/mcptaskgen/mcptaskgen/examples/published/generated/sequentialthinking"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

func main() {
	err := serve()
	if len(os.Args) > 1 {
		err = call(context.Background(), os.Args[1], os.Args[2:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve serves the tools of each list at a path of its own until the standard input ends. Only memory
// has an implementation.
func serve() error {
	if len(os.Args) > 1 {
		return nil
	}
	paths := http.NewServeMux()
	for name, tools := range map[string]mcptask.Tools{
		"context7":   context7.Context7Tools(struct{ context7.Context7Server }{}),
		"everything": everything.EverythingTools(struct{ everything.EverythingServer }{}),
		"filesystem": filesystem.FilesystemTools(struct{ filesystem.FilesystemServer }{}),
		"firecrawl":  firecrawl.FirecrawlTools(struct{ firecrawl.FirecrawlServer }{}),
		"github":     github.GitHubTools(struct{ github.GitHubServer }{}),
		"memory":     memory.MemoryTools(&graph{}),
		"notion":     notion.NotionTools(struct{ notion.NotionServer }{}),
		"playwright": playwright.PlaywrightTools(struct{ playwright.PlaywrightServer }{}),
		"sequentialthinking": sequentialthinking.SequentialThinkingTools(struct {
			sequentialthinking.SequentialThinkingServer
		}{}),
	} {
		tasks, err := taskserver.New(taskserver.Options{}, tools)
		if err != nil {
			return err
		}
		defer tasks.Close()
		sdk := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1.0.0"}, nil)
		gosdk.AddTools(sdk, tasks)
		paths.Handle("/"+name, gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	server := &http.Server{Handler: paths}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// call makes calls of a server and prints the results. The server is at a URL, or a command.
func call(ctx context.Context, name string, at []string) error {
	connect := func() (mcptask.Conn, error) { return gosdk.Connect(ctx, at[0], gosdk.ClientOptions{}) }
	if len(at) > 1 {
		cmd := exec.CommandContext(ctx, at[0], at[1:]...)
		connect = func() (mcptask.Conn, error) { return gosdk.ConnectCommand(ctx, cmd, gosdk.ClientOptions{}) }
	}
	conn, err := connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	switch name {
	case "everything":
		sum, err := everything.NewEverythingClient(conn).GetSum(ctx, everything.GetSumInput{A: 40, B: 2})
		if err != nil {
			return err
		}
		fmt.Println(sum.Text())
		return nil
	case "filesystem":
		return callFilesystem(ctx, filesystem.NewFilesystemClient(conn), at[len(at)-1])
	case "memory":
		return callMemory(ctx, memory.NewMemoryClient(conn))
	case "sequentialthinking":
		return show(sequentialthinking.NewSequentialThinkingClient(conn).Sequentialthinking(ctx, sequentialthinking.SequentialthinkingInput{
			Thought: "Types help.", NextThoughtNeeded: true, ThoughtNumber: 1, TotalThoughts: 2,
		}))
	}
	return fmt.Errorf("%s does not run on this machine alone", name)
}

// show prints a result.
func show[T any](result T, err error) error {
	if err != nil {
		return err
	}
	text, err := json.Marshal(result)
	fmt.Printf("%s\n", text)
	return err
}

func callFilesystem(ctx context.Context, files filesystem.Filesystem, dir string) error {
	path := filepath.Join(dir, "note.txt")
	_, err := files.WriteFile(ctx, filesystem.WriteFileInput{Path: path, Content: "typed"})
	if err != nil {
		return err
	}
	return show(files.ReadTextFile(ctx, filesystem.ReadTextFileInput{Path: path}))
}

func callMemory(ctx context.Context, notes memory.Memory) error {
	ada := memory.Entity{Name: "Ada", EntityType: "person", Observations: []string{"writes programs"}}
	engine := memory.Entity{Name: "Engine", EntityType: "machine"}
	built := memory.Relation{From: "Ada", To: "Engine", RelationType: "programs"}
	return errors.Join(
		show(notes.CreateEntities(ctx, memory.CreateEntitiesInput{Entities: []memory.Entity{ada, engine}})),
		show(notes.CreateEntities(ctx, memory.CreateEntitiesInput{Entities: []memory.Entity{ada}})),
		show(notes.CreateRelations(ctx, memory.CreateRelationsInput{Relations: []memory.Relation{built}})),
		show(notes.AddObservations(ctx, memory.AddObservationsInput{
			Observations: []memory.Observation{{EntityName: "Ada", Contents: []string{"writes programs", "counts"}}},
		})),
		show(notes.SearchNodes(ctx, memory.SearchNodesInput{Query: "count"})),
		show(notes.OpenNodes(ctx, memory.OpenNodesInput{Names: []string{"Engine"}})),
		show(notes.DeleteObservations(ctx, memory.DeleteObservationsInput{
			Deletions: []memory.Deletion{{EntityName: "Ada", Observations: []string{"counts"}}},
		})),
		show(notes.DeleteRelations(ctx, memory.DeleteRelationsInput{Relations: []memory.Relation{built}})),
		show(notes.DeleteEntities(ctx, memory.DeleteEntitiesInput{EntityNames: []string{"Engine"}})),
		show(notes.ReadGraph(ctx)),
	)
}

// graph is a fake of the server memory: the same tools, without a file. It is for one client.
type graph struct {
	entities  []memory.Entity
	relations []memory.Relation
}

func (g *graph) entity(name string) *memory.Entity {
	if i := slices.IndexFunc(g.entities, func(e memory.Entity) bool { return e.Name == name }); i >= 0 {
		return &g.entities[i]
	}
	return nil
}

// CreateEntities implements memory.MemoryServer.
func (g *graph) CreateEntities(_ context.Context, in memory.CreateEntitiesInput) (out memory.CreateEntitiesOutput, err error) {
	for _, e := range in.Entities {
		if g.entity(e.Name) == nil {
			g.entities, out.Entities = append(g.entities, e), append(out.Entities, e)
		}
	}
	return out, nil
}

// CreateRelations implements memory.MemoryServer.
func (g *graph) CreateRelations(_ context.Context, in memory.CreateRelationsInput) (out memory.CreateRelationsOutput, err error) {
	for _, r := range in.Relations {
		if !slices.Contains(g.relations, r) {
			g.relations, out.Relations = append(g.relations, r), append(out.Relations, r)
		}
	}
	return out, nil
}

// AddObservations implements memory.MemoryServer.
func (g *graph) AddObservations(_ context.Context, in memory.AddObservationsInput) (out memory.AddObservationsOutput, err error) {
	for _, o := range in.Observations {
		e := g.entity(o.EntityName)
		if e == nil {
			return out, fmt.Errorf("Entity with name %s not found", o.EntityName)
		}
		result := memory.Result{EntityName: o.EntityName}
		for _, text := range o.Contents {
			if !slices.Contains(e.Observations, text) {
				e.Observations, result.AddedObservations = append(e.Observations, text), append(result.AddedObservations, text)
			}
		}
		out.Results = append(out.Results, result)
	}
	return out, nil
}

// DeleteEntities implements memory.MemoryServer.
func (g *graph) DeleteEntities(_ context.Context, in memory.DeleteEntitiesInput) (memory.DeleteEntitiesOutput, error) {
	gone := func(name string) bool { return slices.Contains(in.EntityNames, name) }
	g.entities = slices.DeleteFunc(g.entities, func(e memory.Entity) bool { return gone(e.Name) })
	g.relations = slices.DeleteFunc(g.relations, func(r memory.Relation) bool { return gone(r.From) || gone(r.To) })
	return memory.DeleteEntitiesOutput{Success: true, Message: "Entities deleted successfully"}, nil
}

// DeleteObservations implements memory.MemoryServer.
func (g *graph) DeleteObservations(_ context.Context, in memory.DeleteObservationsInput) (memory.DeleteObservationsOutput, error) {
	for _, d := range in.Deletions {
		if e := g.entity(d.EntityName); e != nil {
			e.Observations = slices.DeleteFunc(e.Observations, func(text string) bool { return slices.Contains(d.Observations, text) })
		}
	}
	return memory.DeleteObservationsOutput{Success: true, Message: "Observations deleted successfully"}, nil
}

// DeleteRelations implements memory.MemoryServer.
func (g *graph) DeleteRelations(_ context.Context, in memory.DeleteRelationsInput) (memory.DeleteRelationsOutput, error) {
	g.relations = slices.DeleteFunc(g.relations, func(r memory.Relation) bool { return slices.Contains(in.Relations, r) })
	return memory.DeleteRelationsOutput{Success: true, Message: "Relations deleted successfully"}, nil
}

// ReadGraph implements memory.MemoryServer.
func (g *graph) ReadGraph(context.Context) (memory.ReadGraphOutput, error) {
	return memory.ReadGraphOutput{Entities: g.entities, Relations: g.relations}, nil
}

// around returns the entities that are wanted, and the relations at one of them.
func (g *graph) around(wanted func(memory.Entity) bool) (entities []memory.Entity, relations []memory.Relation) {
	var names []string
	for _, e := range g.entities {
		if wanted(e) {
			entities, names = append(entities, e), append(names, e.Name)
		}
	}
	for _, r := range g.relations {
		if slices.Contains(names, r.From) || slices.Contains(names, r.To) {
			relations = append(relations, r)
		}
	}
	return entities, relations
}

// SearchNodes implements memory.MemoryServer.
func (g *graph) SearchNodes(_ context.Context, in memory.SearchNodesInput) (out memory.SearchNodesOutput, err error) {
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(in.Query)) }
	out.Entities, out.Relations = g.around(func(e memory.Entity) bool {
		return has(e.Name) || has(e.EntityType) || slices.ContainsFunc(e.Observations, has)
	})
	return out, nil
}

// OpenNodes implements memory.MemoryServer.
func (g *graph) OpenNodes(_ context.Context, in memory.OpenNodesInput) (out memory.OpenNodesOutput, err error) {
	out.Entities, out.Relations = g.around(func(e memory.Entity) bool { return slices.Contains(in.Names, e.Name) })
	return out, nil
}
