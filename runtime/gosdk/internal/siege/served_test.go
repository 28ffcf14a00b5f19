//go:build long

package siege_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk/internal/siege"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// config is what a test chooses about the server under attack.
type config struct {
	// Limits are those of taskserver.Options, as JSON, or "" for the defaults.
	Limits string
	// Bearer asks for a token, whose text becomes the principal. Otherwise, every caller is anonymous.
	Bearer bool
	// PerRequest makes an SDK server for each request.
	PerRequest bool
	// TTL is how long tasks are kept. 0 means an hour.
	TTL time.Duration
	// HeaderTimeout is http.Server's ReadHeaderTimeout. 0 means 10 s.
	HeaderTimeout time.Duration
}

// nobody is a token without a user: the gateway refuses its caller.
const nobody = "nobody"

// state is what a process reports about itself.
type state struct {
	// Heap is the memory in use after a collection. Allocated is all that was ever allocated. Both are in bytes.
	Heap, Allocated int64
	Goroutines      int
	Counts          gateway.Counts
	// Logged counts the bytes of the log. Panics has the panics that were logged, or printed by net/http.
	Logged int64
	Panics []string
}

// journal counts the bytes of the log, and keeps the records of panics.
type journal struct {
	mu     sync.Mutex
	logged int64
	panics []string
}

// Write implements io.Writer. Each record is one call.
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.logged += int64(len(p))
	if bytes.Contains(p, []byte("panic")) && len(j.panics) < 10 {
		j.panics = append(j.panics, fmt.Sprintf("%.4000s", p))
	}
	return len(p), nil
}

// tell adds what the journal and the runtime know.
func (j *journal) tell(s *state) {
	runtime.GC()
	runtime.GC() // twice, because pools keep memory over one collection
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(samples)
	s.Heap, s.Allocated = int64(samples[0].Value.Uint64()), int64(samples[1].Value.Uint64())
	s.Goroutines = runtime.NumGoroutine()
	j.mu.Lock()
	defer j.mu.Unlock()
	s.Logged, s.Panics = j.logged, j.panics
}

// obey answers each line of the standard input with the state until the input ends. So the process ends with its
// parent.
func obey(look func() state) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		data, err := json.Marshal(look())
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(os.Stdout, "%s\n", data); err != nil {
			return err
		}
	}
	return lines.Err()
}

// serve runs as the server under attack. It writes its address, then obeys.
func serve(text string) error {
	var c config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	if c.TTL == 0 {
		c.TTL = time.Hour
	}
	var limits taskserver.Limits
	if c.Limits != "" {
		if err := json.Unmarshal([]byte(c.Limits), &limits); err != nil {
			return err
		}
	}
	j := &journal{}
	logger := slog.New(slog.NewTextHandler(j, nil))
	tasks, err := taskserver.New(taskserver.Options{Logger: logger, Limits: limits, Drain: time.Second}, siege.Tools(c.TTL))
	if err != nil {
		return err
	}
	defer tasks.Close()
	// The SDK logs each session and request at level info.
	loud := slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelWarn}))
	create := func() *mcp.Server {
		sdk := mcp.NewServer(&mcp.Implementation{Name: "siege", Version: "1"}, &mcp.ServerOptions{Logger: loud})
		gosdk.AddTools(sdk, tasks)
		return sdk
	}
	one := create()
	served := gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server {
		if c.PerRequest {
			return create()
		}
		return one
	}, nil)
	handler := served
	if c.Bearer {
		handler = auth.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
			info := &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}
			if token == nobody {
				info.UserID = ""
			}
			return info, nil
		}, nil)(served)
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if c.HeaderTimeout == 0 {
		c.HeaderTimeout = 10 * time.Second
	}
	// The settings that SECURITY.md asks an operator for.
	server := &http.Server{Handler: handler, ReadHeaderTimeout: c.HeaderTimeout, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 1 << 16, ErrorLog: log.New(j, "", 0)}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Fatal(err)
		}
	}()
	if _, err := io.WriteString(os.Stdout, "http://"+listener.Addr().String()+"\n"); err != nil {
		return err
	}
	return obey(func() state {
		s := state{Counts: served.(*gateway.Gateway).Counts()}
		j.tell(&s)
		return s
	})
}
