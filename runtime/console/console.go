// Package console is a page for the operator of a server: the tasks of all principals, live, with the history of each,
// and if the program allows it, the means to step in.
//
//	page, err := console.New(tasks, console.Options{})
//	server := &http.Server{Handler: page}
//
// Without Options.Authorize it answers only requests from the machine itself. It changes nothing without
// Options.Actions, and shows no arguments, results, answers, values of steps and principals without
// Options.Reveal. docs/console.md has the rest.
package console

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Options configure a console. The zero value is for a person at the machine itself, who only looks.
type Options struct {
	// Name is the server's at the head of each page, such as "shop, staging", so that nobody takes one environment for
	// another. "" means the name of the program. The program's version and host stand beside it.
	Name string
	// Path is the path under which the page is served, with slashes at both ends. "" means "/console/".
	Path string
	// Authorize says who sends a request, or returns an error, which refuses it with 403. It may be called
	// concurrently, and again with the request of a page that stays open. The error goes to the log, and not to the
	// browser; a Challenge asks it for a name and a password. nil admits requests from and to loopback addresses, as
	// the viewer "local", who may use all that the other options allow. Requests that a proxy has forwarded are refused
	// if it says so. Set Authorize behind a proxy.
	Authorize func(*http.Request) (Viewer, error)
	// Actions lets viewers who may act cancel tasks, answer for their requestors, and run tasks again.
	Actions bool
	// Reveal lets viewers who may reveal see the arguments, results, answers, values of steps and principals of tasks.
	// Each look is in the audit trail.
	Reveal bool
	// AllowedHosts are names, without a port, by which browsers may call the page. If there are none, browsers may call
	// a page on a loopback address by localhost and its addresses, and a page on any other address by every name.
	AllowedHosts []string
}

// Challenge is an error of Options.Authorize that asks for credentials: the request is refused with 401 and this
// WWW-Authenticate header, such as `Basic realm="tasks"`.
type Challenge string

// Error implements error.
func (c Challenge) Error() string { return "no credentials that fit: asked for " + string(c) }

// Viewer is a person who looks at the page.
type Viewer struct {
	// Name is the person's, for the audit trail. A viewer without a name can only look.
	Name string
	// Act and Reveal let the viewer use Options.Actions and Options.Reveal.
	Act, Reveal bool
}

//go:embed assets
var assets embed.FS

// Console is the page. Its methods are safe for concurrent use.
type Console struct {
	server    *taskserver.Server
	inspector taskstore.Inspector
	options   Options
	mux       *http.ServeMux
	origins   *http.CrossOriginProtection
	templates *template.Template
	key       []byte        // of the marks of principals
	cipher    cipher.AEAD   // of principals in URLs
	reads     chan struct{} // has an element for each read of the store
	name      serverName
	began     time.Time
	workers   workerList
	looks     looks
	streams   limit.Gauge[string]
}

// New makes the page of a server. It returns an error if the store of the server is no [taskstore.Inspector], or if
// Options.Path is not a clean path with a slash at both ends.
func New(server *taskserver.Server, options Options) (*Console, error) {
	if options.Path == "" {
		options.Path = "/console/"
	}
	if !strings.HasPrefix(options.Path, "/") || !strings.HasSuffix(options.Path, "/") || strings.ContainsAny(options.Path, "{}?#%\\") ||
		strings.TrimSuffix(path.Clean(options.Path), "/")+"/" != options.Path {
		return nil, fmt.Errorf("console: Options.Path is %q: give a path with a slash at both ends, such as /console/", options.Path)
	}
	inspector, ok := server.Inspector()
	if !ok {
		return nil, errors.New("console: the server's store is no taskstore.Inspector, which shows the tasks of all principals: implement it, or use a store of this module")
	}
	c := &Console{server: server, inspector: inspector, options: options, mux: http.NewServeMux(), origins: http.NewCrossOriginProtection(),
		key: []byte(rand.Text()), reads: make(chan struct{}, maxReads), name: nameServer(options.Name), began: time.Now()}
	block, err := aes.NewCipher(c.hash("cipher", ""))
	if err == nil {
		c.cipher, err = cipher.NewGCM(block)
	}
	if err != nil {
		return nil, fmt.Errorf("console: %w", err) // cannot happen: the key has the length of one
	}
	if c.templates, err = template.New("").Funcs(c.functions()).ParseFS(assets, "assets/*.html"); err != nil {
		return nil, fmt.Errorf("console: %w", err) // cannot happen: tests parse them
	}
	if options.Path != "/" { // for a server that has only the page
		c.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { c.goTo(w, "") })
	}
	c.handle("GET", "", c.showOverview)
	c.handle("GET", "tasks", c.showTasks)
	c.handle("POST", "tasks/search", c.search)
	c.handle("POST", "bulk", c.actOnChosen)
	c.handle("GET", "bulk", func(w http.ResponseWriter, _ request) error { c.goTo(w, "tasks"); return nil }) // of a browser that goes back
	c.handle("GET", "tasks/{task}", c.showTask)
	c.handle("GET", "tasks/{task}/{action}", c.backToTask)
	c.handle("GET", "events", c.stream)
	c.handle("POST", "tasks/{task}/reveal", c.reveal)
	c.handle("POST", "tasks/{task}/cancel", c.cancel)
	c.handle("POST", "tasks/{task}/answer", c.answer)
	c.handle("POST", "tasks/{task}/again", c.again)
	c.handle("GET", "{path...}", func(http.ResponseWriter, request) error { return failure{http.StatusNotFound, "there is no such page"} })
	for name, kind := range map[string]string{"style.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		content, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return nil, fmt.Errorf("console: %w", err) // cannot happen: they are embedded
		}
		// For all, so that a refusal looks like a page.
		c.mux.HandleFunc("GET "+options.Path+name, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(content) // who has left needs no answer
		})
	}
	return c, nil
}

// request is a request of a viewer.
type request struct {
	*http.Request
	viewer Viewer
}

// failure is the answer to a request that fails.
type failure struct {
	status int
	text   string
}

// Error implements error.
func (f failure) Error() string { return f.text }

// handle serves a path below that of the page. The handler returns an error before it has written anything.
func (c *Console) handle(method, below string, do func(http.ResponseWriter, request) error) {
	pattern := method + " " + c.options.Path + below
	if below == "" {
		pattern += "{$}"
	}
	c.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		viewer, err := c.identify(r)
		if err == nil {
			err = do(w, request{r, viewer})
		}
		if err != nil {
			c.refuse(w, err)
		}
	})
}

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer guard.Then(c.server.Backend().Logger(), "console", func() { http.Error(w, "internal error", http.StatusInternalServerError) })
	h := w.Header()
	for name, value := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
			"form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		h.Set(name, value)
	}
	if err := c.checkHost(r); err != nil {
		c.refuse(w, err)
		return
	}
	if err := c.origins.Check(r); err != nil || isEmbedded(r) {
		c.refuse(w, failure{http.StatusForbidden, "the request comes from another site"})
		return
	}
	c.mux.ServeHTTP(w, r)
}

// isLoopback reports whether an address, with or without a port, is one of the machine itself.
func isLoopback(address string) bool {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	ip, err := netip.ParseAddr(strings.Trim(address, "[]"))
	return err == nil && ip.Unmap().IsLoopback()
}

// isLocal reports whether a request was sent to a loopback address.
func isLocal(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && isLoopback(local.String())
}

// isForwarded reports whether a proxy says that a request is another one's.
func isForwarded(r *http.Request) bool {
	for name := range r.Header { // even an empty one: a proxy may add its own behind that of a client
		if strings.HasPrefix(name, "X-Forwarded") || slices.Contains([]string{"Forwarded", "X-Real-Ip", "Via"}, name) {
			return true
		}
	}
	return false
}

// isEmbedded reports whether a page of another site loads something of the console, such as an image or a frame. The
// browser would hide the answer, but the server would still do the work. A link to the console is no such request.
func isEmbedded(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	isLink := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return (site == "cross-site" || site == "same-site") && !isLink
}

// checkHost refuses names that may have been bound to the address by another site (DNS rebinding).
func (c *Console) checkHost(r *http.Request) error {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	isOwn := host == "localhost" || isLoopback(host)
	switch {
	case slices.ContainsFunc(c.options.AllowedHosts, func(allowed string) bool { return strings.EqualFold(allowed, host) }), isLocal(r) && isOwn:
		return nil
	case !isLocal(r) && len(c.options.AllowedHosts) == 0:
		return nil
	}
	return failure{http.StatusForbidden, fmt.Sprintf("the host %q is not one of Options.AllowedHosts", host)}
}

// identify returns who sends a request.
func (c *Console) identify(r *http.Request) (Viewer, error) {
	viewer := Viewer{Name: "local", Act: true, Reveal: true}
	if c.options.Authorize == nil {
		if !isLocal(r) || !isLoopback(r.RemoteAddr) || isForwarded(r) {
			return viewer, failure{http.StatusForbidden, "the console answers only its own machine: set Options.Authorize for others"}
		}
	} else {
		var err error
		if viewer, err = c.options.Authorize(r); err != nil {
			var challenge Challenge
			isAsked := errors.As(err, &challenge)
			if !isAsked || r.Header.Get("Authorization") != "" { // without it, a browser opens the page, and is asked
				c.server.Backend().Notice(slog.LevelWarn, "console refused a request", "error", err, "remote", r.RemoteAddr, "path", r.URL.Path)
			}
			if isAsked {
				return viewer, challenge
			}
			return viewer, failure{http.StatusForbidden, "you may not see this page"}
		}
	}
	isNamed := strings.TrimSpace(viewer.Name) != ""
	viewer.Act, viewer.Reveal = viewer.Act && c.options.Actions && isNamed, viewer.Reveal && c.options.Reveal && isNamed
	return viewer, nil
}

// refuse answers with an error.
func (c *Console) refuse(w http.ResponseWriter, err error) {
	f := failure{http.StatusInternalServerError, "the page could not be made: the server's log says why"}
	var challenge Challenge
	switch {
	case errors.As(err, &f):
	case errors.As(err, &challenge):
		w.Header().Set("WWW-Authenticate", string(challenge))
		f = failure{http.StatusUnauthorized, "this page needs a name and a password"}
	case errors.Is(err, context.DeadlineExceeded):
		f = failure{http.StatusServiceUnavailable, fmt.Sprintf("the store gave no answer within %v", readsWithin)}
	case !errors.Is(err, context.Canceled): // the browser has left
		c.server.Backend().Notice(slog.LevelError, "console failed", "error", err)
	}
	if err := c.write(w, f.status, "refusal.html", page{Title: http.StatusText(f.status), Data: f.text}); err != nil {
		http.Error(w, f.text, f.status)
	}
}
