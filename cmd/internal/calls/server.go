package calls

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// Server says which server to connect to, and how. Either URL or Command is set.
type Server struct {
	URL     string
	Header  http.Header // of the requests to URL
	Command []string    // a program and its arguments
	// Revision is the revision of tasks to speak. "" takes the first in which the server has tasks.
	Revision string
}

// commandLine returns the line that runs a command of mcptaskgen on the server, with words after it. The line leaves out the
// header, which may have secrets.
func (s Server) commandLine(command string, words ...string) string {
	line := "mcptaskgen " + command
	server := []string{s.URL}
	if s.URL == "" {
		server = slices.Concat([]string{"--"}, s.Command, []string{"--"})
	}
	for _, word := range slices.Concat(server, words) {
		line += " " + quoteWord(word)
	}
	return line
}

// quoteWord quotes a word for a shell if it needs that.
func quoteWord(word string) string {
	isPlain := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("._-/:=@,+%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !isPlain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// connect connects to the server. What a program writes to its standard error goes to stderr.
func (s Server) connect(ctx context.Context, options gosdk.ClientOptions, stderr io.Writer) (mcptask.Conn, error) {
	options.Revision = s.Revision
	if s.URL == "" {
		command := exec.CommandContext(context.WithoutCancel(ctx), s.Command[0], s.Command[1:]...) //nolint:gosec // the person names the program
		command.Stderr = stderr
		detach(command)
		conn, err := gosdk.ConnectCommand(ctx, command, options)
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			err = usage(err)
		}
		return conn, err
	}
	if len(s.Header) > 0 {
		// Package gosdk refuses redirects to another origin, so no other server gets the header.
		options.HTTPClient = &http.Client{Transport: headerTransport{s.Header}}
	}
	return gosdk.Connect(ctx, s.URL, options)
}

// headerTransport adds header fields to requests.
type headerTransport struct{ header http.Header }

// RoundTrip implements http.RoundTripper.
func (t headerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	maps.Copy(r.Header, t.header)
	return http.DefaultTransport.RoundTrip(r)
}
