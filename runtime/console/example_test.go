package console_test

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/console"
)

// secret is the password of the example.
const secret = "hunter2"

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
			if subtle.ConstantTimeCompare([]byte(password), []byte(secret)) != 1 {
				return console.Viewer{}, errors.New("wrong password")
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
