package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/cmd/internal/calls"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// serverFlags are the flags of commands that connect to a server.
type serverFlags struct {
	header   *[]string
	token    *string
	bearer   *string
	revision *string
}

// bindServer declares them. revision is the help of --revision.
func bindServer(flags *pflag.FlagSet, revision string) serverFlags {
	return serverFlags{
		header:   flags.StringArrayP("header", "H", nil, "send this `header` to the URL, as \"Name: value\"; may be repeated"),
		token:    flags.String("token-env", "", "send the value of this environment `variable` to the URL as a bearer token"),
		bearer:   flags.String("bearer", "", "send this `token` to the URL; others can see it in the list of processes"),
		revision: flags.String("revision", "", revision),
	}
}

// lookUpServer returns the flags that bindServer has declared in a set. ok is false if it has not.
func lookUpServer(flags *pflag.FlagSet) (f serverFlags, ok bool) {
	header, err := flags.GetStringArray("header")
	if err != nil {
		return f, false
	}
	text := func(name string) *string {
		value, _ := flags.GetString(name) // bindServer declares all of them
		return &value
	}
	return serverFlags{&header, text("token-env"), text("bearer"), text("revision")}, true
}

// read reads the server and the words after it. dash is the number of arguments before --, or -1. Behind a URL, -- is for
// words that begin with a dash.
func (f serverFlags) read(args []string, dash int) (server calls.Server, rest []string, err error) {
	server.Revision = *f.revision
	for _, flag := range [][]string{{"--token-env", *f.token}, {"--revision", *f.revision}} {
		if flag[1] != "" {
			server.Flags = append(server.Flags, flag...)
		}
	}
	if dash == 0 && len(args) > 0 {
		server.Command = args
		if i := lastDash(args); i > 0 {
			server.Command, rest = args[:i], args[i+1:]
		}
		if len(*f.header) > 0 || *f.token != "" || *f.bearer != "" {
			return server, nil, errors.New("--header, --bearer and --token-env are for a URL; give a program what it needs in its environment")
		}
		return server, rest, nil
	}
	if len(args) == 0 || dash > 1 {
		return server, nil, errors.New("give either a URL, or -- and a command")
	}
	u, err := url.Parse(args[0])
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return server, nil, fmt.Errorf("%q is not a URL; to start a program, write -- before it", args[0])
	case u.User != nil:
		return server, nil, errors.New("the URL has a name or a password before @; send it with --header \"Authorization: ...\" instead")
	}
	server.URL = args[0]
	server.Header, err = f.readHeader()
	return server, args[1:], err
}

// checkRevision returns an error for a revision that is not known.
func checkRevision(revision string) error {
	if revision != "" && !slices.Contains(schema.Revisions(), revision) {
		return fmt.Errorf("--revision %q is not known: name %s", revision, strings.Join(schema.ReleasedRevisions(), " or "))
	}
	return nil
}

// lastDash returns the place of the last --, which ends a command, or -1.
func lastDash(args []string) int {
	for i, arg := range slices.Backward(args) {
		if arg == "--" {
			return i
		}
	}
	return -1
}

// readHeader reads the flags for the header of requests.
func (f serverFlags) readHeader() (http.Header, error) {
	header := http.Header{}
	for _, line := range *f.header {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			return nil, errors.New("a --header is not of the form \"Name: value\"") // the value may be a secret
		}
		header.Add(name, strings.TrimSpace(value))
	}
	token := *f.bearer
	if *f.token != "" {
		if token = strings.TrimSpace(os.Getenv(*f.token)); token == "" {
			return nil, fmt.Errorf("--token-env: the environment variable %s is empty or not set", *f.token)
		}
	}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return header, nil
}
