package taskserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/steady"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/tuning"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Backend is a [Server] as gateways, adapters of SDKs and operators' pages see it: it answers their requests. Programs
// that only run a server do not need it. All methods are safe for concurrent use.
type Backend struct {
	server   *Server
	options  Options
	store    taskstore.Store
	ownStore bool
	executor Executor
	engine   Engine // the executor, if it is one
	slots    Slots  // the executor, if it has slots
	line     *line  // the executor, if it is the local one
	logger   *slog.Logger
	catalog  catalog
	// memoryWarning is done once warnOfMemoryStore has warned.
	memoryWarning sync.Once
	endings       sessionEndings // the store, if it keeps them
	worker        string         // the name under which this server leases tasks
	lease         time.Duration  // of this worker; see leaseFor

	auditRates *limit.Rates[[2]string] // of audit records, by account and kind
	notices    limit.Notices

	ends endCounts

	attached sync.Map // see Attached
	progress sync.Map // chan ProgressFunc by task ID, see takeProgressTurn
	bound    sync.Map // the mcptask.BoundCall of a call with a Bind, by the ID of its task, until the task has ended

	mu        sync.Mutex
	running   map[string]*run // the handlers of this process, by task ID
	observers map[*int]func(taskstore.Record)
	sessions  map[string]map[*int]func() // followed sessions, by mark; see FollowSession
	followed  map[string]*followed       // by task ID
	// toFetch are the tasks whose records are needed, and fetchers counts the goroutines that read them.
	toFetch    map[string]bool
	fetchers   int
	unfetched  map[string]*unfetched // by task ID
	left       map[string]leftTask   // by task ID; see isForOthers
	renewed    time.Time             // when the last renewal of the lease that succeeded began
	clock      atomic.Int64          // the lead of the store's clock over this process's, in nanoseconds
	beaten     atomic.Pointer[moment]
	stale      atomic.Pointer[staleReasons]
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
	news      int           // counts the calls of tellEngine under way
	newsTold  chan struct{} // has an element if news may be 0

	adoptNow  chan struct{} // has an element if there may be orphans
	fetchNow  chan struct{} // has an element if there is something in toFetch
	adoptions int           // of the goroutine that adopts
	feedPause time.Duration // of the goroutine that reads the feed
	waitReads chan struct{} // has an element for each read of a request that waits

	room room // for tasks of anonymous callers

	resolving atomic.Int32 // counts the goroutines of resolve

	closeOnce sync.Once
	closeErr  error
}

// newBackend is New.
func newBackend(options Options, services ...mcptask.Tools) (*Backend, error) {
	named := options.Revisions
	if len(options.Revisions) == 0 {
		options.Revisions = []string{mcptask.Revision20251125, mcptask.Revision20260728}
	}
	options.setDefaults()
	b := &Backend{
		options:    options,
		auditRates: limit.NewRates[[2]string](1, 1),
		store:      options.Store,
		logger:     options.Logger,
		catalog:    catalog{tools: map[string]*registeredTool{}, reserved: map[string]string{}, revisions: named, runsElsewhere: options.Executor != nil},
		worker:     newWorkerName(),
		lease:      cmp.Or(tuning.Lease, leaseFor),
		adoptNow:   make(chan struct{}, 1),
		fetchNow:   make(chan struct{}, 1),
		created:    make(chan struct{}),
		newsTold:   make(chan struct{}, 1),
		waitReads:  make(chan struct{}, maxWaitReads),
		running:    map[string]*run{},
		observers:  map[*int]func(taskstore.Record){},
		followed:   map[string]*followed{},
		sessions:   map[string]map[*int]func(){},
		toFetch:    map[string]bool{},
		unfetched:  map[string]*unfetched{},
		left:       map[string]leftTask{},
	}
	if b.logger == nil {
		b.logger = slog.New(warningHandler{slog.Default().Handler()})
	}
	b.server = &Server{b}
	var faults []error
	for _, revision := range options.Revisions {
		if mcptask.Declared()[revision] == "" {
			faults = append(faults, fmt.Errorf("mcptask: Options.Revisions: %q is none of the revisions %v", revision, slices.Sorted(maps.Keys(mcptask.Declared()))))
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
	if options.Store != nil && isNil(options.Store) {
		faults = append(faults, fmt.Errorf("mcptask: Options.Store is a nil %T: leave Store nil itself to keep tasks in memory, as a variable of type taskstore.Store does", options.Store))
	}
	sessionStore, _ := options.Store.(taskstore.SessionStore)
	faults = append(faults, options.checkSessionKeys(sessionStore != nil)...)
	for i := range services {
		faults = append(faults, b.catalog.addService(&services[i])...)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if b.store == nil {
		b.store, b.ownStore = taskstore.NewMemory(), true
	}
	if err := b.useSessionStore(sessionStore); err != nil {
		return nil, err
	}
	b.warnOfMemoryStore(services...)
	b.drained, b.endUpkeep = context.WithCancel(context.Background())
	b.closing, b.stop = context.WithCancel(b.drained)
	if err := b.makeExecutor(); err != nil {
		b.endUpkeep()
		return nil, err
	}
	b.attached.Store(tuning.LoseRuns{}, b.loseRuns)
	b.beating.Store(time.Now().UnixNano())
	b.startUpkeep()
	b.tellHooksOfServer()
	return b, nil
}

// makeExecutor makes the executor. The user's function may call the RunFunc before it returns: such calls wait.
func (b *Backend) makeExecutor() error {
	if b.options.Executor == nil {
		b.line = newLine(b, b.options.Concurrency)
		b.executor, b.slots = b.line, b.line
		return nil
	}
	made, isMade := make(chan struct{}), false
	release := sync.OnceFunc(func() { close(made) })
	defer release()
	executor, err := b.options.Executor(func(ctx context.Context, taskID string) RunEnd {
		<-made
		if !isMade {
			return RunLeft
		}
		return b.runTaskApart(ctx, taskID)
	})
	switch {
	case err != nil:
		return fmt.Errorf("mcptask: Options.Executor: %w", err)
	case executor == nil:
		return errors.New("mcptask: Options.Executor has returned nil")
	}
	b.executor = executor
	b.engine, _ = executor.(Engine)
	b.slots, _ = executor.(Slots)
	if err := b.checkEngine(); err != nil {
		release()
		ctx, cancel := context.WithTimeout(b.closing, b.options.Drain)
		defer cancel()
		return errors.Join(err, b.executor.Close(ctx))
	}
	isMade = true
	return nil
}

// checkEngine returns an error if the engine cannot be the executor.
func (b *Backend) checkEngine() error {
	switch {
	case b.engine == nil:
		return nil
	case b.engine.Name() == "": // records without a worker are free for all servers
		return errors.New("mcptask: Options.Executor is an engine without a name: let Name return what its servers share")
	case b.ownStore:
		return errors.New("mcptask: Options.Executor is an engine, whose tasks outlive this server: set Options.Store to a store that does so too")
	}
	return nil
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
func (b *Backend) Options() Options { return b.options }

// Logger returns the logger for the gateway. It is never nil.
func (b *Backend) Logger() *slog.Logger { return b.logger }

// Attached returns the value that the server keeps under a key. The first call makes it with create. A gateway keeps
// there the state that it shares with the adapter of an SDK.
func (b *Backend) Attached(key any, create func() any) any {
	value, ok := b.attached.Load(key)
	if !ok {
		value, _ = b.attached.LoadOrStore(key, create())
	}
	return value
}

// releaseStore leaves the store, and the tasks in it, to other servers. It closes a
// store of the server's own.
func (b *Backend) releaseStore(ctx context.Context) error {
	t := &storeRetry{backend: b, end: ctx.Done(), timeout: CloseMargin / 5}
	_, err := callStore(ctx, t, "Release", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, b.store.Release(ctx, b.worker)
	})
	if b.ownStore {
		b.cancelUnfinished(ctx)
		err = errors.Join(err, b.store.Close())
	}
	return err
}

// Closing returns a context that ends when the server begins to close. Streams end
// with it.
func (b *Backend) Closing() context.Context { return b.closing }

// close is Close, once.
func (b *Backend) close() {
	b.refuseCreations()
	ctx, cancel := context.WithTimeout(context.Background(), b.options.Drain)
	defer cancel()
	b.awaitNews(ctx)
	if err := b.callDetached(ctx, "the executor", b.executor.Close); err != nil {
		b.closeErr = fmt.Errorf("mcptask: handlers still run after %v: %w", b.options.Drain, err)
	}
	if err := b.awaitCreations(ctx); err != nil {
		b.closeErr = errors.Join(b.closeErr, fmt.Errorf("mcptask: the store has not taken new tasks after %v: %w", b.options.Drain, err))
	}
	b.endUpkeep()
	ctx, cancel = context.WithTimeout(context.Background(), CloseMargin)
	defer cancel()
	// Wait for the upkeep first: it could take orphans after the release.
	ending, stop := context.WithTimeout(ctx, CloseMargin/2)
	defer stop()
	upkeep := b.callDetached(ending, "upkeep", func(context.Context) error { b.upkeep.Wait(); return nil })
	released := b.callDetached(ctx, "the release of tasks", b.releaseStore)
	if err := errors.Join(upkeep, released); err != nil {
		b.closeErr = errors.Join(b.closeErr, fmt.Errorf("mcptask: the store did not take what was left: %w", err))
	}
}
