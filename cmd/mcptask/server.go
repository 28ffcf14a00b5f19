package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/cmd/internal/target"
	"github.com/mcptaskgen/mcptaskgen/internal/terminal"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// server is the server that a command is for.
type server struct{ target.Server }

// commandLine returns the line that runs a command of mcptask on the server, with words after it. The words may be the
// server's, so the line lets none of them become a flag. It leaves out the header, which may have secrets.
func (s server) commandLine(command string, words ...string) string {
	line := slices.Concat([]string{command}, s.Flags)
	switch {
	case s.URL == "":
		line = slices.Concat(line, []string{"--"}, s.Command, []string{"--"})
	case slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, "-") }):
		line = append(line, s.URL, "--")
	default:
		line = append(line, s.URL)
	}
	line = append(line, words...)
	for i, word := range line {
		line[i] = quoteWord(word)
	}
	return programName() + " " + strings.Join(line, " ")
}

// sayGoesOn returns the text that a task goes on, with the command that waits for it.
func (s server) sayGoesOn(task string) string {
	goesOn := "The task goes on."
	if s.URL == "" {
		goesOn = "The program ends now. If it stores its tasks, the task goes on."
	}
	return goesOn + " This waits for it:\n  " + s.commandLine("watch", task)
}

// programName returns the command that a person types to run this program.
var programName = sync.OnceValue(func() string {
	path, _ := os.Executable() // without it, this is not of the build cache
	return nameProgram(path)
})

// nameProgram returns the command that runs the program of a path. The go command runs programs in its build cache,
// which is not on PATH.
func nameProgram(path string) string {
	if inBuildCache.MatchString(filepath.ToSlash(path)) {
		return "go tool mcptask"
	}
	return "mcptask"
}

// inBuildCache matches the paths of executables that the go command keeps or has just built.
var inBuildCache = regexp.MustCompile(`/[0-9a-f]{2}/[0-9a-f]{64}-d/mcptask(\.exe)?$|/go-build[0-9]+/b[0-9]+/exe/mcptask(\.exe)?$`)

// quoteWord quotes a word for a shell if it needs that. The result is printable. If a terminal removed characters from
// it, a quote could go with them.
func quoteWord(word string) string {
	if terminal.Printable(word, false) != word {
		quoted := strconv.QuoteToASCII(word) // whose escapes bash and zsh know
		return "$'" + strings.NewReplacer(`\"`, `"`, `'`, `\'`).Replace(quoted[1:len(quoted)-1]) + "'"
	}
	isPlain := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("._-/:=@,+%", r)
	}
	if word != "" && word[0] != '=' && strings.IndexFunc(word, func(r rune) bool { return !isPlain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// connect connects to the server. The standard error of a program goes to stderr.
func (s server) connect(ctx context.Context, options gosdk.ClientOptions, stderr io.Writer) (mcptask.Conn, error) {
	options.Revision = s.Revision
	if s.URL == "" {
		command := exec.CommandContext(context.WithoutCancel(ctx), s.Command[0], s.Command[1:]...) //nolint:gosec // the person names the program
		command.Stderr = stderr
		command.WaitDelay = time.Second // for processes that it has left behind, which may have its standard error
		detach(command)
		conn, err := gosdk.ConnectCommand(ctx, command, options)
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			err = usageFailure(withoutSteps(err))
		}
		return conn, err
	}
	if len(s.Header) > 0 {
		// Package gosdk refuses redirects to another origin, so no other server gets the header.
		options.HTTPClient = &http.Client{Transport: headerTransport{s.Header}}
	}
	return gosdk.Connect(ctx, s.URL, options)
}

// atUsualPath returns the server with the path /mcp. ok is false unless its URL has no path.
func (s server) atUsualPath() (other server, ok bool) {
	u, err := url.Parse(s.URL)
	if s.URL == "" || err != nil || u.Path != "" && u.Path != "/" {
		return s, false
	}
	u.Path = "/mcp"
	s.URL = u.String()
	return s, true
}

// isNotMCP reports whether the error of a connection means that something other than an MCP server is at the URL.
func isNotMCP(err error) bool {
	if err == nil {
		return false
	}
	status := statusOf(err)
	return status == http.StatusNotFound || status == http.StatusMethodNotAllowed || describeFailure(err, "").kind == "malformed"
}

// explainDenial returns the error for a request that the server has refused with the HTTP status 401 or 403. It says whether
// credentials were sent.
func (s server) explainDenial(err error) error {
	status := statusOf(err)
	reason, scopes := fmt.Sprintf("HTTP status %d (%s)", status, http.StatusText(status)), []string(nil)
	var d interface {
		Reason() string
		MissingScopes() []string
	}
	if errors.As(err, &d) {
		reason, scopes = cmp.Or(d.Reason(), reason), d.MissingScopes()
	}
	words := "the server refuses the request: " + reason + "; send credentials with --token-env or --header"
	hasToken := s.Header.Get("Authorization") != ""
	switch {
	case len(s.Header) == 0:
		words = "no token was sent: --token-env NAME sends one, and --header other credentials; the server says: " + reason
	case hasToken && len(scopes) > 0:
		words = "the server refuses the token, which needs the scopes " + strings.Join(scopes, " ") + ": send one that has them"
	case hasToken && status == http.StatusUnauthorized:
		words = "the server refuses the token: " + reason
	case hasToken:
		words = "the server refuses the request: " + reason
	}
	return reworded{err, words}
}

// headerTransport adds header fields to requests.
type headerTransport struct{ header http.Header }

// RoundTrip implements http.RoundTripper.
func (t headerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	maps.Copy(r.Header, t.header)
	return http.DefaultTransport.RoundTrip(r)
}
