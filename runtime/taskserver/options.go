package taskserver

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Defaults of Options.
const (
	DefaultConcurrency = 64
	DefaultMaxTTL      = 30 * 24 * time.Hour
	DefaultMaxBody     = 4 << 20
	DefaultDrain       = 10 * time.Second
)

// CloseMargin is how long Close may take beyond Options.Drain if the store or the
// executor does not answer. In that time Close leaves the remaining tasks to other
// servers.
const CloseMargin = 5 * time.Second

// Options configure a Server. The zero value is ready to use: tasks in memory,
// the principal from the transport's authentication, 64 handlers at once.
type Options struct {
	// Store keeps the tasks; nil means a memory store of the server's own.
	// The server does not close a store that is given here.
	Store taskstore.Store
	// Executor makes the executor that runs the handlers; nil means the local one. An [Engine] needs
	// a Store that outlives the server.
	Executor func(RunFunc) (Executor, error)
	// Principal tells whose request a context belongs to. "" is anonymous, and an
	// error refuses the request. nil leaves it to the gateway. While a stream, a subscription or a
	// wait for a task is open, Principal is called again every 15 seconds, with the same context:
	// an error or another principal ends it. Over HTTP, the principal "local" becomes
	// "remote:local", since "local" is the client on a pipe.
	Principal func(context.Context) (string, error)
	// Context adds the values to a handler's context that belong to a principal, such as its credentials. It is called
	// for every run, on whatever machine: nothing else of the request survives. nil adds nothing.
	Context func(ctx context.Context, principal string) (context.Context, error)
	// Revisions are the revisions that the server speaks. If it is empty, they are 2025-11-25 and 2026-07-28. The
	// server refuses every request of another revision. The refusal names the revisions that it speaks, so that the
	// client can go on in one of them. If 2025-11-25 is named, the server speaks earlier revisions too, which have no
	// tasks. It speaks a revision that was never released only if it is named and the services are generated for it.
	Revisions []string
	// ClientProfile returns the profile of a client's program, such as how long it waits for an answer. It is called
	// for plain calls and lists of tools, from many goroutines. nil means KnownClient.
	ClientProfile func(ClientInfo) ClientProfile
	// Logger takes the log for the operator; nil means slog.Default for warnings and errors, such as a handler's panic.
	// Records of the audit trail have the attribute audit; docs/reference/telemetry.md lists them, and says which of
	// them need a Logger.
	Logger *slog.Logger
	// Hooks observe the work of the server, for traces and metrics. The first is the outermost.
	Hooks []Hooks
	// Limits bound the use of the server by each account, and by all of them together.
	Limits Limits
	// Concurrency is how many task handlers the local executor runs at once. The rest waits in line. 0 or less means
	// DefaultConcurrency. A tool may have a lower bound of its own, its Policy.Concurrency.
	//
	// Accounts take turns. An account gets no further slot once it has seven times the slots that stay free, so that
	// another finds one. All anonymous callers are one account here. Their network addresses share its slots in the same
	// way, and so do the sessions of an address. The client on a pipe may always have all slots.
	Concurrency int
	// MaxTTL bounds the retention that a requestor may ask for; 0 or less means DefaultMaxTTL. A tool's own ttl may be
	// longer, and is the minimum: a requestor that asks for less gets the tool's ttl. An anonymous requestor always
	// gets the tool's ttl.
	MaxTTL time.Duration
	// MaxBody bounds a request's body in bytes; 0 or less means DefaultMaxBody.
	MaxBody int64
	// AllowedHosts are the names, without a port, by which clients may call a server on a
	// loopback address, beside localhost and its addresses. Name the public host here if a
	// proxy on the same machine forwards it. Other names are refused, since a page in a
	// browser may have bound its own name to the loopback address (DNS rebinding). On any
	// other address every name is allowed.
	AllowedHosts []string
	// AllowedOrigins are the origins of web pages that may call the server from a browser, such as
	// https://app.example.com. The handler answers the browser's preflights, and lets these pages
	// read its responses; cookies are left out. Other pages are refused. A handler in front that may
	// answer alone, such as one that checks tokens, must be wrapped in AllowOrigins of package gosdk
	// or mcpgo.
	AllowedOrigins []string
	// SessionKey lets every server with the same key serve every session of 2025-11-25, so that a proxy may send each
	// request to another replica and a restart ends no session. It is a secret of at least MinSessionKey random bytes.
	// Empty means the key that the Store makes and keeps, if it is a [taskstore.SessionStore], as those of packages
	// sqlite and postgres are. With any other Store, a session lives in the process that has opened it, and the server
	// warns if the key is empty but not nil. docs/deploy.md describes the effect of the key on clients.
	SessionKey []byte
	// OtherSessionKeys are further keys whose sessions the server takes. To change the key, first
	// give all replicas the new key here, then make it the SessionKey and put the old one here. The
	// old key can go SessionLife later.
	OtherSessionKeys [][]byte
	// Drain bounds how long Close waits for handlers. 0 or less means DefaultDrain. CloseMargin bounds the rest of
	// Close.
	Drain time.Duration
}

// setDefaults fills in the numbers that are not set.
func (o *Options) setDefaults() {
	o.Limits.setDefaults()
	limit.Default(&o.Concurrency, DefaultConcurrency)
	limit.Default(&o.MaxTTL, DefaultMaxTTL)
	limit.Default(&o.MaxBody, DefaultMaxBody)
	limit.Default(&o.Drain, DefaultDrain)
}

// isOrigin reports whether a text is an origin as browsers write it.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme+"://"+u.Host != text || strings.Contains(text, "*") {
		return false
	}
	if port := u.Port(); port == "" && strings.HasSuffix(u.Host, ":") || u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf || unicode.IsUpper(r) })
}
