package mcptask

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/steady"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/tuning"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
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
	Store Store
	// Executor makes the executor that runs the handlers; nil means the local one. An [Engine] needs
	// a Store that outlives the server.
	Executor func(RunFunc) (Executor, error)
	// Principal tells whose request a context belongs to. "" is anonymous, and an
	// error refuses the request. nil leaves it to the gateway. While a stream, a subscription or a
	// wait for a task is open, Principal is called again every 15 seconds, with the same context:
	// an error or another principal ends it. Over HTTP, the principal "local" becomes
	// "remote:local", since "local" is the client on a pipe.
	Principal func(context.Context) (string, error)
	// Context builds what a handler may rely on for a principal, such as its
	// credentials. It is called for every run, on whatever machine: nothing else of
	// the request survives. nil adds nothing.
	Context func(ctx context.Context, principal string) (context.Context, error)
	// Revisions are the revisions that the server speaks. None means 2025-11-25 and
	// 2026-07-28. The server refuses every request of another revision, and names those
	// that it speaks, so that the client can go on in one of them. If 2025-11-25 is named,
	// the server speaks earlier revisions too, which have no tasks. It speaks a revision that
	// was never released only if it is named and the services are generated for it.
	Revisions []string
	// ClientProfile tells what is known of a client's program, such as how long it waits for an
	// answer. It is called for plain calls and lists of tools, from many goroutines. nil means
	// KnownClient.
	ClientProfile func(ClientInfo) ClientProfile
	// Logger takes what an operator should know; nil means slog.Default for warnings
	// and errors, such as a handler's panic. Records of the audit trail have the
	// attribute audit; docs/reference/telemetry.md lists them, and says which of them need a Logger.
	Logger *slog.Logger
	// Hooks are told what the server does, for traces and metrics. The first is the outermost.
	Hooks []Hooks
	// Limits bound what each account takes, and all of them together.
	Limits Limits
	// Concurrency is how many task handlers the local executor runs at once. The rest
	// waits in line. 0 or less means DefaultConcurrency.
	//
	// Accounts take turns. If there are four slots or more, one account has at most three
	// quarters of them, so that another finds a free one. All anonymous callers are one account
	// here. Their network addresses share its slots in the same way, and so do the sessions of
	// an address. The client on a pipe may always have all slots.
	Concurrency int
	// MaxTTL bounds the retention that a requestor may ask for (C-97); 0 or less
	// means DefaultMaxTTL. A tool's own ttl may be longer. It is the least: a requestor
	// that asks for less gets the tool's ttl, and so does an anonymous one that asks for more.
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
	// SessionKey lets every server with the same key serve every session of 2025-11-25, so that a
	// proxy may send each request to another replica and a restart ends no session. It is a
	// secret of at least MinSessionKey random bytes. nil means the key that the Store makes and
	// keeps, if it is a [SessionStore], as those of packages sqlite and postgres are. With any other
	// Store, a session lives in the process that has opened it. docs/deploy.md says what the key
	// changes for clients.
	SessionKey []byte
	// OtherSessionKeys are further keys whose sessions the server takes. To change the key, first
	// give all replicas the new key here, then make it the SessionKey and put the old one here. The
	// old key can go SessionLife later.
	OtherSessionKeys [][]byte
	// Drain bounds how long Close waits for handlers, and CloseMargin what Close does
	// after that. 0 or less means DefaultDrain.
	Drain time.Duration
}

// Server runs the tools of one or more services and keeps their tasks. It speaks no
// protocol itself: a gateway does. All methods are safe for concurrent use.
type Server struct {
	options  Options
	store    Store
	ownStore bool
	executor Executor
	engine   Engine         // the executor, if it is one
	slots    Slots          // the executor, if it has slots
	line     *localExecutor // the executor, if it is the local one
	logger   *slog.Logger
	catalog  catalog
	schemas  validate.Cache // of questions
	endings  sessionEndings // the store, if it keeps them
	worker   string         // the name under which this server leases tasks
	lease    time.Duration  // of this worker; see leaseFor

	auditRates *limit.Rates[[2]string] // of audit records, by account and kind
	notices    limit.Notices

	ends endCounts

	attached sync.Map // see Attached
	progress sync.Map // chan ProgressFunc by task ID, see takeProgressTurn

	mu        sync.Mutex
	running   map[string]*run // the handlers of this process, by task ID
	observers map[*int]func(Record)
	sessions  map[string]map[*int]func() // followed sessions, by mark; see FollowSession
	followed  map[string]*followed       // by task ID
	// toFetch are the tasks whose records are needed, and fetchers counts the goroutines that read them.
	toFetch    map[string]bool
	fetchers   int
	unfetched  map[string]*unfetched // by task ID
	renewed    time.Time             // when the last renewal of the lease that succeeded began
	clock      atomic.Int64          // what the store's time is ahead of this process's, in nanoseconds
	beaten     atomic.Pointer[moment]
	past       *steady.Clock // over Now; see SureNow; set before clockKnown
	clockKnown atomic.Bool   // whether clock is set

	closing   context.Context // ends when Close begins
	stop      context.CancelFunc
	drained   context.Context // ends after the handlers: leases are kept until then
	endUpkeep context.CancelFunc
	upkeep    sync.WaitGroup
	renewing  atomic.Int32  // calls of Beat under way
	beating   atomic.Int64  // when keepLease began last, in nanoseconds since 1970
	creations int           // counts the tasks that are being created, see enterCreation
	created   chan struct{} // closed when Close has begun and there are no creations left
	news      int           // counts what the engine is being told, see tellEngine
	newsTold  chan struct{} // has an element if news may be 0

	adoptNow  chan struct{} // has an element if there may be orphans
	fetchNow  chan struct{} // has an element if there is something in toFetch
	adoptions int           // of the goroutine that adopts
	feedPause time.Duration // of the goroutine that reads the feed
	waitReads chan struct{} // has an element for each read of a request that waits

	room room // for tasks of anonymous callers

	settling atomic.Int32 // counts what settle does in the background

	closeOnce sync.Once
	closeErr  error
}

// NewServer makes a server of bound services. Duplicate tools, schemas that do
// not compile and a nil implementation are errors; NewServer reports all of them at
// once. Close the server to stop its tasks.
func NewServer(options Options, services ...Tools) (*Server, error) {
	named := options.Revisions
	if len(options.Revisions) == 0 {
		options.Revisions = []string{Revision20251125, Revision20260728}
	}
	options.setDefaults()
	s := &Server{
		options:    options,
		auditRates: limit.NewRates[[2]string](1, 1),
		store:      options.Store,
		logger:     options.Logger,
		catalog:    catalog{tools: map[string]*registeredTool{}, reserved: map[string]string{}, revisions: named},
		worker:     rand.Text(),
		lease:      cmp.Or(tuning.Lease, leaseFor),
		adoptNow:   make(chan struct{}, 1),
		fetchNow:   make(chan struct{}, 1),
		created:    make(chan struct{}),
		newsTold:   make(chan struct{}, 1),
		waitReads:  make(chan struct{}, maxWaitReads),
		running:    map[string]*run{},
		observers:  map[*int]func(Record){},
		followed:   map[string]*followed{},
		sessions:   map[string]map[*int]func(){},
		toFetch:    map[string]bool{},
		unfetched:  map[string]*unfetched{},
	}
	if s.logger == nil {
		s.logger = slog.New(warningHandler{slog.Default().Handler()})
	}
	var faults []error
	for _, revision := range options.Revisions {
		if Declared()[revision] == "" {
			faults = append(faults, fmt.Errorf("mcptask: Options.Revisions: %q is none of the revisions %v", revision, slices.Sorted(maps.Keys(Declared()))))
		}
	}
	for _, host := range options.AllowedHosts {
		if host == "" || strings.ContainsAny(host, "/:*@ ") {
			faults = append(faults, fmt.Errorf("mcptask: Options.AllowedHosts: %q is not the name of a host: give it alone, such as mcp.example.com, without scheme, port or wildcard", host))
		}
	}
	for _, origin := range options.AllowedOrigins {
		if !isOrigin(origin) {
			faults = append(faults, fmt.Errorf("mcptask: Options.AllowedOrigins: %q is not an origin as browsers write it: give scheme and host in small letters, such as https://app.example.com, without a path, a default port or a wildcard", origin))
		}
	}
	sessionStore, _ := options.Store.(SessionStore)
	faults = append(faults, options.checkSessionKeys(sessionStore != nil)...)
	for i := range services {
		faults = append(faults, s.catalog.addService(&services[i])...)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if s.store == nil {
		s.store, s.ownStore = NewMemoryStore(), true
	}
	if err := s.useSessionStore(sessionStore); err != nil {
		return nil, err
	}
	s.warnOfMemoryStore(services...)
	s.drained, s.endUpkeep = context.WithCancel(context.Background())
	s.closing, s.stop = context.WithCancel(s.drained)
	if err := s.makeExecutor(); err != nil {
		s.endUpkeep()
		return nil, err
	}
	s.beating.Store(time.Now().UnixNano())
	s.startUpkeep()
	s.tellHooksOfServer()
	return s, nil
}

// makeExecutor makes the executor. The user's function may call the RunFunc before it returns: such calls wait.
func (s *Server) makeExecutor() error {
	if s.options.Executor == nil {
		x := newLocalExecutor(s.runTask, s.options.Concurrency)
		s.executor, s.slots, s.line = x, x, &x
		return nil
	}
	made, isMade := make(chan struct{}), false
	release := sync.OnceFunc(func() { close(made) })
	defer release()
	executor, err := s.options.Executor(func(ctx context.Context, taskID string) RunEnd {
		<-made
		if !isMade {
			return RunLeft
		}
		return s.runTaskApart(ctx, taskID)
	})
	switch {
	case err != nil:
		return fmt.Errorf("mcptask: Options.Executor: %w", err)
	case executor == nil:
		return errors.New("mcptask: Options.Executor has returned nil")
	}
	s.executor = executor
	s.engine, _ = executor.(Engine)
	s.slots, _ = executor.(Slots)
	if err := s.checkEngine(); err != nil {
		release()
		ctx, cancel := context.WithTimeout(s.closing, s.options.Drain)
		defer cancel()
		return errors.Join(err, s.executor.Close(ctx))
	}
	isMade = true
	return nil
}

// checkEngine returns what keeps an engine from being the executor, or nil.
func (s *Server) checkEngine() error {
	switch {
	case s.engine == nil:
		return nil
	case s.engine.Name() == "": // records without a worker are free for all servers
		return errors.New("mcptask: Options.Executor is an engine without a name: let Name return what its servers share")
	case s.ownStore:
		return errors.New("mcptask: Options.Executor is an engine, whose tasks outlive this server: set Options.Store to a store that does so too")
	}
	return nil
}

// setDefaults fills in the numbers that are not set.
func (o *Options) setDefaults() {
	o.Limits.setDefaults()
	limit.Default(&o.Concurrency, DefaultConcurrency)
	limit.Default(&o.MaxTTL, DefaultMaxTTL)
	limit.Default(&o.MaxBody, DefaultMaxBody)
	limit.Default(&o.Drain, DefaultDrain)
}

// warningHandler is a slog.Handler that drops records below warnings.
type warningHandler struct{ slog.Handler }

// Enabled implements slog.Handler.
func (h warningHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h warningHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warningHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h warningHandler) WithGroup(name string) slog.Handler {
	return warningHandler{h.Handler.WithGroup(name)}
}

// Options returns the options, defaults filled in.
func (s *Server) Options() Options { return s.options }

// Logger returns the logger for the gateway. It is never nil.
func (s *Server) Logger() *slog.Logger { return s.logger }

// Attached returns the value that the server keeps under a key. The first call
// makes it with create. A gateway keeps there what it shares with the adapter of an
// SDK.
func (s *Server) Attached(key any, create func() any) any {
	value, ok := s.attached.Load(key)
	if !ok {
		value, _ = s.attached.LoadOrStore(key, create())
	}
	return value
}

// Closing returns a context that ends when the server begins to close. Streams end
// with it.
func (s *Server) Closing() context.Context { return s.closing }

// Close stops the server: it ends the contexts of handlers and gives them
// Options.Drain to return. In this time it also waits for the store to take or
// refuse tasks that are being created. A task that could not end stays in a store of the user's
// own, for another server to take. In the server's own store it ends as cancelled,
// since no other server has that store. Close may be called twice.
func (s *Server) Close() error {
	s.closeOnce.Do(func() {
		s.refuseCreations()
		ctx, cancel := context.WithTimeout(context.Background(), s.options.Drain)
		defer cancel()
		s.awaitNews(ctx)
		if err := s.callDetached(ctx, "the executor", s.executor.Close); err != nil {
			s.closeErr = fmt.Errorf("mcptask: handlers still run after %v: %w", s.options.Drain, err)
		}
		if err := s.awaitCreations(ctx); err != nil {
			s.closeErr = errors.Join(s.closeErr, fmt.Errorf("mcptask: the store has not taken new tasks after %v: %w", s.options.Drain, err))
		}
		s.endUpkeep()
		ctx, cancel = context.WithTimeout(context.Background(), CloseMargin)
		defer cancel()
		// Wait for the upkeep first: it could take orphans after the release.
		ending, stop := context.WithTimeout(ctx, CloseMargin/2)
		defer stop()
		upkeep := s.callDetached(ending, "upkeep", func(context.Context) error { s.upkeep.Wait(); return nil })
		released := s.callDetached(ctx, "the release of tasks", s.releaseStore)
		if err := errors.Join(upkeep, released); err != nil {
			s.closeErr = errors.Join(s.closeErr, fmt.Errorf("mcptask: the store did not take what was left: %w", err))
		}
	})
	return s.closeErr
}

// releaseStore leaves the store, and the tasks in it, to other servers. It closes a
// store of the server's own.
func (s *Server) releaseStore(ctx context.Context) error {
	t := &storeRetry{server: s, end: ctx.Done(), timeout: CloseMargin / 5}
	_, err := callStore(ctx, t, "Release", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.store.Release(ctx, s.worker)
	})
	if s.ownStore {
		s.cancelUnfinished(ctx)
		err = errors.Join(err, s.store.Close())
	}
	return err
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
