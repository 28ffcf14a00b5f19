package console_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/console"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// passwords are those of the people of the example, as hashes.
var passwords = map[string][sha256.Size]byte{"admin": sha256.Sum256([]byte("hunter2"))}

// serveConsole serves the operator's page at addr. It sends the error that ends the server to served.
func serveConsole(ctx context.Context, tasks *taskserver.Server, addr string, served chan<- error) (*http.Server, error) {
	page, err := console.New(tasks, console.Options{})
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Addr: listener.Addr().String(), Handler: page, MaxHeaderBytes: 64 << 10,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
	}
	go func() { served <- server.Serve(listener) }()
	return server, nil
}

// The page has a server of its own, which stops after the tasks and before the store.
func ExampleNew_serve() {
	ctx := context.Background()
	store := taskstore.NewMemory()
	tasks, err := taskserver.New(taskserver.Options{Store: store})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second} // of the tools, at /mcp
	served := make(chan error, 2)
	operators, err := serveConsole(ctx, tasks, "127.0.0.1:0", served)
	if err != nil {
		fmt.Println(err)
		return
	}
	stopping, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	err = gosdk.Shutdown(stopping, server, tasks, operators, store)
	fmt.Println(err, <-served)
	// Output: <nil> http: Server closed
}

// A page for people who have a password, and who may step in.
func ExampleNew() {
	options := console.Options{
		Actions: true, Reveal: true,
		Authorize: func(r *http.Request) (console.Viewer, error) {
			name, password, _ := r.BasicAuth() // behind TLS
			if want, ok := passwords[name]; !ok || sha256.Sum256([]byte(password)) != want {
				return console.Viewer{}, console.Challenge(`Basic realm="tasks"`)
			}
			return console.Viewer{Name: name, Act: true, Reveal: name == "admin"}, nil
		},
	}
	tasks, err := taskserver.New(taskserver.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tasks.Close()
	page, err := console.New(tasks, options)
	if err != nil {
		fmt.Println(err)
		return
	}
	stranger := httptest.NewRecorder()
	page.ServeHTTP(stranger, httptest.NewRequest(http.MethodGet, "/console/", http.NoBody))
	fmt.Println(stranger.Code, stranger.Header().Get("WWW-Authenticate"))
	// Output: 401 Basic realm="tasks"
}
