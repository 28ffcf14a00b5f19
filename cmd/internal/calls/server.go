package calls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/terminal"
)

// Server says which server to connect to, and how. Either URL or Command is set.
type Server struct {
	URL     string
	Header  http.Header // of the requests to URL
	Command []string    // a program and its arguments
	// Revision is the revision of tasks to speak. "" takes the first in which the server has tasks.
	Revision string
	// Flags are those that the person gave for it, as far as they are no secrets. A command line that is printed has them too.
	Flags []string
}

// String returns the server as a person gives it on a command line. It leaves out the header, which may have secrets.
func (s Server) String() string {
	words := slices.Clone(s.Flags)
	if s.URL != "" {
		words = append(words, s.URL)
	} else {
		words = append(append(words, "--"), s.Command...)
	}
	return quoteWords(words)
}

// with returns the server with more words of a command line behind it. They may be the server's, so none of them may become
// a flag.
func (s Server) with(words ...string) string {
	separator := " "
	if s.URL == "" || slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, "-") }) {
		separator = " -- "
	}
	return s.String() + separator + quoteWords(words)
}

// quoteWords quotes words for a shell.
func quoteWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quoteWord(word)
	}
	return strings.Join(quoted, " ")
}

// quoteWord quotes a word for a shell if it needs that. The result is printable: what has been taken out of it at a
// terminal could take a quote along.
func quoteWord(word string) string {
	if terminal.Printable(word, false) != word {
		return quoteBytes(word)
	}
	isPlain := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("._-/:=@,+%", r)
	}
	if word != "" && word[0] != '=' && strings.IndexFunc(word, func(r rune) bool { return !isPlain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// quoteBytes quotes a word with bytes that no terminal shows, for bash and zsh.
func quoteBytes(word string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(word) {
		switch c := word[i]; {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c >= ' ' && c <= '~':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// connect connects to the server. What a program writes to its standard error goes to stderr.
func (s Server) connect(ctx context.Context, options gosdk.ClientOptions, stderr io.Writer) (mcptask.Conn, error) {
	options.Revision = s.Revision
	if s.URL == "" {
		command := exec.CommandContext(context.WithoutCancel(ctx), s.Command[0], s.Command[1:]...) //nolint:gosec // the person names the program
		command.Stderr = stderr
		command.WaitDelay = time.Second // for what it has started and left, which may have its standard error
		detach(command)
		conn, err := gosdk.ConnectCommand(ctx, command, options)
		return conn, describeConnect(err)
	}
	if len(s.Header) > 0 {
		// Package gosdk refuses redirects to another origin, so no other server gets the header.
		options.HTTPClient = &http.Client{Transport: headerTransport{s.Header}}
	}
	conn, err := gosdk.Connect(ctx, s.URL, options)
	return conn, describeConnect(err)
}

// headerTransport adds header fields to requests.
type headerTransport struct{ header http.Header }

// RoundTrip implements http.RoundTripper.
func (t headerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	maps.Copy(r.Header, t.header)
	return http.DefaultTransport.RoundTrip(r)
}

// describeConnect makes a failure of an error of a connection.
func describeConnect(err error) error {
	switch {
	case err == nil:
		return nil
	case isDenied(err):
		return &Failure{Code: ExitDenied, Kind: "denied", Err: fmt.Errorf("%w; --token-env and --header send what the server asks for", err)}
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		return &Failure{Code: ExitUsage, Kind: "usage", Err: err}
	}
	return &Failure{Code: ExitUnreachable, Kind: "unreachable", Err: err}
}

// isDenied reports whether a server wants to know who calls. The SDK tells it only in words.
func isDenied(err error) bool {
	text := err.Error()
	return strings.Contains(text, http.StatusText(http.StatusUnauthorized)) || strings.Contains(text, http.StatusText(http.StatusForbidden))
}
