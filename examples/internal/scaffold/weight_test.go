//go:build long

package scaffold

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// starts is how often BenchmarkWeight starts each server.
const starts = 21

// weight is the cost of a server before it has work.
type weight struct {
	size, stripped int64         // bytes of the binary, and of that without symbols and debug information
	packages       int           // that it links, with those of the standard library
	build, cpu     time.Duration // the time of a build with an empty cache, and its processor time
	answer         time.Duration // from the start of the process to its first answer
}

// BenchmarkWeight builds and starts the server that init writes, the same tools with tasks in memory, and servers of one
// tool on mcp-go and on the official SDK alone. The last is the floor of the ratios.
func BenchmarkWeight(b *testing.B) {
	p := initProgram(b, "http")
	if err := os.CopyFS(p.dir, os.DirFS("testdata/weight")); err != nil {
		b.Fatal(err)
	}
	service, err := os.ReadFile(filepath.Join(p.dir, "service.go"))
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "memory", "service.go"), service, 0o600); err != nil {
		b.Fatal(err)
	}
	p.run("go", "mod", "tidy")
	var floor weight
	floorBinary := filepath.Join(p.dir, "bin", "sdk.exe")
	for _, name := range []string{"sdk", "mcpgo", "memory", "init"} {
		b.Run(name, func(b *testing.B) {
			p := &program{t: b, dir: p.dir, binary: filepath.Join(p.dir, "bin", name+".exe"), environment: p.environment}
			source := "./" + name
			if name == "init" {
				source = "."
			}
			var w weight
			for b.Loop() {
				w = p.weigh(source)
				w.answer, floor.answer = p.compareStarts(floorBinary)
			}
			if name == "sdk" {
				floor = w
			}
			b.ReportMetric(0, "ns/op") // of no interest
			report := func(value, floor float64, unit string) {
				b.ReportMetric(value, unit)
				b.ReportMetric(value/floor, unit+"/sdk")
			}
			report(float64(w.size)/1e6, float64(floor.size)/1e6, "MB")
			report(float64(w.stripped)/1e6, float64(floor.stripped)/1e6, "MB-stripped")
			report(float64(w.packages), float64(floor.packages), "packages")
			report(w.build.Seconds(), floor.build.Seconds(), "s-build")
			report(w.cpu.Seconds(), floor.cpu.Seconds(), "s-build-cpu")
			report(w.answer.Seconds()*1e3, floor.answer.Seconds()*1e3, "ms-first-answer")
		})
	}
}

// weigh builds a server of the module with an empty cache, and measures all but its start.
func (p *program) weigh(source string) (w weight) {
	p.t.Helper()
	cold := p.command("go", "build", "-o", p.binary, source)
	cold.Env = append(cold.Env, "GOCACHE="+p.t.TempDir())
	begin := time.Now()
	if said, err := cold.CombinedOutput(); err != nil {
		p.t.Fatalf("%v\n%s", err, said)
	}
	w.build = time.Since(begin)
	w.cpu = cold.ProcessState.UserTime() + cold.ProcessState.SystemTime()
	w.size = p.fileSize(p.binary)
	stripped := filepath.Join(p.dir, "bin", "stripped.exe")
	p.run("go", "build", "-ldflags=-s -w", "-o", stripped, source)
	w.stripped = p.fileSize(stripped)
	w.packages = len(strings.Fields(p.run("go", "list", "-deps", source)))
	return w
}

func (p *program) fileSize(name string) int64 {
	p.t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		p.t.Fatal(err)
	}
	return info.Size()
}

// compareStarts starts p and the floor in turn. It returns the median time of each until its first answer.
func (p *program) compareStarts(floorBinary string) (median, floorMedian time.Duration) {
	p.t.Helper()
	floor := *p
	floor.binary = floorBinary
	p.awaitFirstAnswer() // makes the database, and brings the files into memory
	floor.awaitFirstAnswer()
	var took, floorTook []time.Duration
	for range starts {
		floorTook = append(floorTook, floor.awaitFirstAnswer())
		took = append(took, p.awaitFirstAnswer())
	}
	slices.Sort(took)
	slices.Sort(floorTook)
	return took[starts/2], floorTook[starts/2]
}

// awaitFirstAnswer returns how long a new process of the server takes to answer initialize.
func (p *program) awaitFirstAnswer() time.Duration {
	p.t.Helper()
	begin := time.Now()
	s := p.serve("127.0.0.1:0")
	defer s.kill()
	const initialize = `{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "weight", "version": "1"}}}`
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, s.url, strings.NewReader(initialize))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it has been read
	body, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(body), `"serverInfo"`) {
		p.t.Fatalf("%v, HTTP %d: %s", err, response.StatusCode, body)
	}
	return time.Since(begin)
}
