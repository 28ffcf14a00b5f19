//go:build unix

package gosdk_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// The environment of BenchmarkHeld.
const (
	envHeldCalls    = "MCPTASK_HELD_CALLS"    // how many calls are held, 10,000 unless it is set
	envHeldTime     = "MCPTASK_HELD_TIME"     // how long they are measured, 30s unless it is set
	envHeldProfiles = "MCPTASK_HELD_PROFILES" // a directory for profiles of both processes
	envHeldServer   = "MCPTASK_HELD_SERVER"   // makes the benchmark the server of another process
)

// heldPoll is the interval at which the server asks to be polled.
const heldPoll = 5 * time.Second

// BenchmarkHeld holds many calls whose tasks do not end. It measures the costs of the client and of the server, which
// is this binary again: the processor time as a share of one core, the memory that is in use after a collection, and the
// goroutines. The server's goroutines include one of each handler.
func BenchmarkHeld(b *testing.B) {
	if testing.Short() {
		b.Skip("it takes a minute")
	}
	debug.SetGCPercent(100) // as in a program, and not as in the tests
	if os.Getenv(envHeldServer) != "" {
		serveHeld(b)
		return
	}
	calls, err := strconv.Atoi(cmp.Or(os.Getenv(envHeldCalls), "10000"))
	if err != nil {
		b.Fatal(err)
	}
	window, err := time.ParseDuration(cmp.Or(os.Getenv(envHeldTime), "30s"))
	if err != nil {
		b.Fatal(err)
	}
	for _, revision := range []string{mcptask.Revision20260728, mcptask.Revision20251125} {
		b.Run(revision, func(b *testing.B) {
			url := startHeldServer(b)
			conn, err := gosdk.Connect(b.Context(), url, gosdk.ClientOptions{Revision: revision})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			held := make([]*mcptask.Call[struct{}], calls)
			if err := wiretest.Together(calls, func(number int64) (err error) {
				held[number], err = mcptask.Start[struct{}](b.Context(), conn, "hold", struct{}{})
				return err
			}); err != nil {
				b.Fatal(err)
			}
			ctx, stop := context.WithCancel(b.Context())
			settled := make(chan struct{})
			go func() {
				defer close(settled)
				for call, err := range mcptask.Settled(ctx, held...) {
					if call != nil {
						b.Errorf("a call has ended: %v", err)
					}
				}
			}()
			defer func() { stop(); <-settled }()
			time.Sleep(min(2*heldPoll, window)) // the subscriptions are open, and the first polls over
			b.ResetTimer()
			for range b.N {
				measureHeld(b, url, window)
			}
		})
	}
}

// usage has the resources that a process uses. Each field is exported for JSON.
type usage struct {
	Processor  time.Duration
	Memory     uint64
	Goroutines int
}

// readUsage reads the usage of this process. The collection that it makes does not count.
func readUsage() (usage, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return usage{}, err
	}
	u := usage{Processor: time.Duration(r.Utime.Nano() + r.Stime.Nano()), Goroutines: runtime.NumGoroutine()}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.Memory = m.HeapAlloc + m.StackInuse
	return u, nil
}

// measureHeld waits for a while and reports the resources that both processes have used meanwhile.
func measureHeld(b *testing.B, url string, window time.Duration) {
	b.Helper()
	profile := func(process string) (path string) {
		if directory := os.Getenv(envHeldProfiles); directory != "" {
			path = filepath.Join(directory, filepath.Base(b.Name())+"."+process+".pprof")
		}
		return path
	}
	ask := func(path string) (u usage) {
		response, err := http.Post(url+"/usage", "text/plain", strings.NewReader(path))
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		if err := json.NewDecoder(response.Body).Decode(&u); err != nil {
			b.Fatal(err)
		}
		return u
	}
	report := func(process string, before, after usage) {
		b.ReportMetric(100*float64(after.Processor-before.Processor)/float64(window), process+"-%")
		b.ReportMetric(float64(after.Memory)/(1<<20), process+"-MB")
		b.ReportMetric(float64(after.Goroutines), process+"-goroutines")
	}
	own := &meter{}
	server := ask(profile("server"))
	client, err := own.read(profile("client"))
	if err != nil {
		b.Fatal(err)
	}
	time.Sleep(window)
	clientAfter, err := own.read("")
	if err != nil {
		b.Fatal(err)
	}
	report("client", client, clientAfter)
	report("server", server, ask(""))
}

// meter reads the usage of a process, and profiles the process between two readings.
type meter struct{ profile *os.File }

// read ends a profile that was begun, and begins one if path is not empty.
func (m *meter) read(path string) (usage, error) {
	if m.profile != nil {
		pprof.StopCPUProfile()
		if err := m.profile.Close(); err != nil {
			return usage{}, err
		}
		m.profile = nil
	}
	if path == "" {
		return readUsage()
	}
	u, err := readUsage()
	if err != nil {
		return u, err
	}
	if m.profile, err = os.Create(path); err != nil {
		return u, err
	}
	return u, pprof.StartCPUProfile(m.profile)
}

// startHeldServer starts this binary as a server and returns its URL.
func startHeldServer(b *testing.B) (url string) {
	b.Helper()
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	server := exec.CommandContext(b.Context(), program, "-test.run", "^$", "-test.bench", "^BenchmarkHeld$", "-test.benchtime", "1x")
	server.Env, server.Stderr = append(os.Environ(), envHeldServer+"=1"), os.Stderr
	input, err := server.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	output, err := server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	b.Cleanup(func() {
		_ = input.Close() // ends it
		for lines.Scan() {
			continue
		}
		_ = server.Wait()
	})
	for lines.Scan() {
		if _, url, ok := strings.Cut(lines.Text(), "serving at "); ok {
			return url
		}
	}
	b.Fatal("the server has not started")
	return ""
}

// serveHeld serves a tool whose tasks do not end, until the standard input does.
func serveHeld(b *testing.B) {
	options := wiretest.Unlimited()
	options.Concurrency, options.Logger = 1<<20, slog.New(slog.DiscardHandler)
	hold := mcptask.NewTool(mcptask.ToolSpec{
		Name: "hold", InputSchema: mcptask.NoArguments, Policy: mcptask.Policy{Task: mcptask.TaskRequired, Poll: heldPoll},
	}, func(ctx context.Context, _ *mcptask.Task, _ struct{}) (struct{}, error) {
		<-ctx.Done()
		return struct{}{}, ctx.Err()
	})
	tasks, err := taskserver.New(options, mcptask.Tools{
		Service: "Held", Impl: struct{}{}, Tools: []mcptask.Tool{hold}, Capabilities: wiretest.AllRevisionsCITools().Capabilities,
	})
	if err != nil {
		b.Fatal(err)
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "held", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	mux, own := http.NewServeMux(), &meter{}
	mux.Handle("/", gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil))
	mux.HandleFunc("POST /usage", func(w http.ResponseWriter, r *http.Request) {
		path, err := io.ReadAll(r.Body)
		var u usage
		if err == nil {
			u, err = own.read(string(path))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(u)
	})
	server := httptest.NewServer(mux)
	fmt.Println("serving at", server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
	server.CloseClientConnections()
	_ = tasks.Close()
}
