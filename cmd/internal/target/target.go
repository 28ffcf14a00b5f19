// Package target reads from a command line which MCP server a command is for, and with which credentials.
package target

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Server is an MCP server: either URL or Command is set.
type Server struct {
	URL      string
	Header   http.Header // of the requests to URL
	Command  []string    // a program and its arguments
	Revision string      // as --revision has it, or ""
	// Flags are the flags for the server that the person gave, without secrets.
	Flags []string
}

// Flags are the flags of commands that connect to a server.
type Flags struct {
	header          []string
	token, revision string
}

// Bind declares the flags. revision is the help of --revision.
func (f *Flags) Bind(flags *pflag.FlagSet, revision string) {
	flags.StringArrayVarP(&f.header, "header", "H", nil, "send this `header` to the URL, as \"Name: value\"; may be repeated")
	flags.StringVar(&f.token, "token-env", "", "send the value of this environment `variable` to the URL as a bearer token")
	flags.StringVar(&f.revision, "revision", "", revision)
}

// Read reads the server and the words after it. dash is the number of arguments before --, or -1. Behind a URL, -- is for
// words that begin with a dash.
func (f *Flags) Read(args []string, dash int) (server Server, rest []string, err error) {
	server.Revision = f.revision
	for _, flag := range [][]string{{"--token-env", f.token}, {"--revision", f.revision}} {
		if flag[1] != "" {
			server.Flags = append(server.Flags, flag...)
		}
	}
	if dash == 0 && len(args) > 0 {
		server.Command = args
		if i := lastDash(args); i > 0 {
			server.Command, rest = args[:i], args[i+1:]
		}
		if len(f.header) > 0 || f.token != "" {
			return server, nil, errors.New("--header and --token-env are for a URL; give a program what it needs in its environment")
		}
		return server, rest, nil
	}
	if len(args) == 0 || dash > 1 {
		return server, nil, errors.New("give either a URL, or -- and a command")
	}
	server.URL = args[0]
	u, err := url.Parse(server.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		if server.URL, err = addScheme(args[0]); err != nil {
			return server, nil, err
		}
	} else if u.User != nil {
		return server, nil, errors.New("the URL has a name or a password before @; send it with --header \"Authorization: ...\" instead")
	}
	server.Header, err = f.readHeader()
	return server, args[1:], err
}

// addScheme adds http:// to a URL without a scheme, if its host is this machine. For any other host, the person has to say
// whether the connection is encrypted.
func addScheme(word string) (string, error) {
	u, err := url.Parse("http://" + word)
	if err == nil && u.User == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()) {
		return u.String(), nil
	}
	return "", fmt.Errorf("%q is not a URL, which begins with https:// or http://; to start a program, write -- before it", word)
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
func (f *Flags) readHeader() (http.Header, error) {
	header := http.Header{}
	for _, line := range f.header {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			return nil, errors.New("a --header is not of the form \"Name: value\"") // the value may be a secret
		}
		header.Add(name, strings.TrimSpace(value))
	}
	if f.token != "" {
		token := strings.TrimSpace(os.Getenv(f.token))
		if token == "" {
			return nil, fmt.Errorf("--token-env: the environment variable %s is empty or not set", f.token)
		}
		header.Set("Authorization", "Bearer "+token)
	}
	return header, nil
}
