package gosdk_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// untilCollected collects garbage until nothing is left, or fails when the test's time is over.
func untilCollected[T any](t *testing.T, made []weak.Pointer[T]) {
	t.Helper()
	end, bounded := t.Deadline()
	if !bounded {
		end = time.Now().Add(10 * time.Minute)
	}
	for end = end.Add(-wiretest.Patience); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		left := 0
		for _, pointer := range made {
			if pointer.Value() != nil {
				left++
			}
		}
		switch {
		case left == 0:
			return
		case time.Now().After(end):
			t.Fatalf("%d of %d are never collected", left, len(made))
		}
	}
}

// Nothing keeps the SDK servers that getServer makes for a request, once the request
// and its session are over.
func TestServersOfRequestsAreCollected(t *testing.T) {
	const requests = 48
	tasks, _ := newServer(t, taskserver.Options{Limits: wiretest.NoPollLimits}, pipeline.CITools(wiretest.CI{}), wiretest.ExtraTools())
	var mu sync.Mutex
	var made []weak.Pointer[mcp.Server]
	handler := gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server {
		sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
		gosdk.AddTools(sdk, tasks)
		gosdk.AddTools(sdk, tasks) // which adds no second middleware
		mu.Lock()
		defer mu.Unlock()
		made = append(made, weak.Make(sdk))
		return sdk
	}, nil)
	server := memnet.NewServer(wirecheck.Handler(t, handler), nil)
	t.Cleanup(server.Close)
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		var calling sync.WaitGroup
		for range 4 {
			calling.Go(func() {
				for range requests / 2 / 4 {
					conn, err := gosdk.Connect(t.Context(), server.URL, gosdk.ClientOptions{Revision: revision})
					if err != nil {
						t.Error(err)
						return
					}
					call, err := mcptask.Start[string](t.Context(), conn, "ponder", wiretest.PonderInput{})
					if err == nil {
						_, err = call.Wait(t.Context())
					}
					if err != nil {
						t.Error(err)
					}
					_ = conn.Close()
				}
			})
		}
		calling.Wait()
	}
	mu.Lock() // a late notification may make one more
	all := slices.Clone(made)
	mu.Unlock()
	if len(all) < requests {
		t.Errorf("only %d servers were made", len(all))
	}
	untilCollected(t, all)
}

// Nor does anything keep the handlers that a process makes and drops, or the server side of a pipe that has ended.
func TestHandlersAndPipesAreCollected(t *testing.T) {
	tasks, _ := newServer(t, taskserver.Options{}, wiretest.ExtraTools())
	type witness struct{ _ [64]byte }
	type key struct{}
	var made []weak.Pointer[witness]
	for range 50 {
		// The witness can be collected only together with the handler.
		seen := new(witness)
		made = append(made, weak.Make(seen))
		handler := gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server {
			runtime.KeepAlive(seen)
			return nil
		}, nil)
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))

		sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
		gosdk.AddTools(sdk, tasks)
		piped := new(witness)
		made = append(made, weak.Make(piped))
		ctx := context.WithValue(t.Context(), key{}, piped)
		_ = sdk.Run(ctx, gosdk.PipeTransport(tasks, strings.NewReader(""), io.Discard)) // which ends at once
	}
	untilCollected(t, made)
}
