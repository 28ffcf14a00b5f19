package console_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/console"
)

// passwords are those of the people of the example, as hashes.
var passwords = map[string][sha256.Size]byte{"admin": sha256.Sum256([]byte("hunter2"))}

// addPage adds the page of a server to a mux.
func addPage(mux *http.ServeMux, tasks *mcptask.Server) error {
	page, err := console.New(tasks, console.Options{})
	if err != nil {
		return err
	}
	mux.Handle("/console/", page)
	return nil
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
	tasks, err := mcptask.NewServer(mcptask.Options{})
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
	mux := http.NewServeMux()
	mux.Handle("/console/", page)
	if err := addPage(http.NewServeMux(), tasks); err != nil {
		fmt.Println(err)
	}
	fmt.Println("serve it on 127.0.0.1:8081")
	// Output: serve it on 127.0.0.1:8081
}
