package mcptask

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pool"
)

// Defaults of Options.
const (
	DefaultConcurrency = 64
	DefaultMaxTTL      = 30 * 24 * time.Hour
	DefaultMaxBody     = 4 << 20
	DefaultDrain       = 10 * time.Second
)

// CloseMargin is how long Close may take beyond Options.Drain, to hand over to others
// what is left, if the store or the executor does not answer.
const CloseMargin = 5 * time.Second

// Options configure a Server. The zero value is ready to use: tasks in memory,
// the principal from the transport's authentication, 64 handlers at once.
type Options struct {
	// Store keeps the tasks; nil is a memory store of the server's own.
	// A store given here is not closed by the server.
	Store Store
	// Executor makes the executor that runs the handlers; nil is the local one.
	Executor func(RunFunc) Executor
	// Principal tells whose request a context belongs to; "" is anonymous, an
	// error refuses the request. nil leaves it to the gateway.
	Principal func(context.Context) (string, error)
	// Context builds what a handler may rely on for a principal, such as its
	// credentials. It is called for every run, on whatever machine: nothing
	// else of the request survives. nil adds nothing.
	Context func(ctx context.Context, principal string) (context.Context, error)
	// Revisions are those that the server speaks; none is 2025-11-25 and 2026-07-28.
	// Any other is spoken only where it stands here and services are generated for it.
	Revisions []string
	// Unknown shows a task that lost its worker as unknown in sep-1686, not as failed.
	Unknown bool
	// Logger takes what an operator should know; nil is slog.Default for warnings
	// and errors, such as a handler's panic. Records of the audit trail have the
	// attribute audit; docs/observe.md lists them, and which of them need a Logger.
	Logger *slog.Logger
	// Limits bound what each account takes, and all of them together.
	Limits Limits
	// Concurrency is how many task handlers the local executor runs at once;
	// the rest waits in line. 0 or less is DefaultConcurrency. Accounts take turns, and
	// one has at most three quarters of the slots, so that another finds a free one; all
	// anonymous callers are one account here, whose sessions share in the same way. Only
	// the principal "local", that of a client on a pipe, may have all.
	Concurrency int
	// MaxTTL bounds the retention that a requestor may ask for (C-97); 0 or
	// less is DefaultMaxTTL. A tool's own ttl may be longer.
	MaxTTL time.Duration
	// MaxBody bounds a request's body in bytes; 0 or less is DefaultMaxBody.
	MaxBody int64
	// Drain bounds how long Close waits for handlers, and CloseMargin what it does
	// beyond that; 0 or less is DefaultDrain.
	Drain time.Duration
}

// Server runs the tools of one or more services and keeps their tasks. It
// speaks no protocol itself: a gateway does. All methods are safe for
// concurrent use.
type Server struct {
	options  Options
	store    Store
	ownStore bool
	executor Executor
	logger   *slog.Logger
	catalog  catalog
	worker   string
	noted    *limit.Rates[[2]string] // what the audit trail was told, by account and kind
	notices  limit.Notices

	attached sync.Map // see Attached
	progress sync.Map // of chan ProgressFunc by task ID, see takeTurn
	naming   sync.Map // the IDs of records with an ExternalID that are being stored

	mu        sync.Mutex
	running   map[string]*context.CancelCauseFunc // handlers of this process, by task ID
	observers map[*int]func(Record)

	closing   context.Context
	stop      context.CancelFunc
	drained   context.Context // ends after closing: leases are kept until then
	endUpkeep context.CancelFunc
	upkeep    sync.WaitGroup
	renewing  atomic.Int32 // calls under way

	adoptions  int           // of the goroutine that adopts
	adoptEvery time.Duration // of the goroutine that adopts

	unwantedMu sync.Mutex
	unwanted   []unwanted // see forget

	closeOnce sync.Once
	closeErr  error
}

// NewServer makes a server of bound services. Duplicate tools, schemas that do
// not compile and a nil implementation are errors, all of them reported at
// once. Close the server to stop its tasks.
func NewServer(options Options, services ...Tools) (*Server, error) {
	named := options.Revisions
	options.Limits.fill()
	if len(options.Revisions) == 0 {
		options.Revisions = []string{Revision20251125, Revision20260728}
	}
	s := &Server{
		options: options,
		noted:   limit.NewRates[[2]string](1, 1),
		store:   options.Store,
		logger:  options.Logger,
		catalog: catalog{tools: map[string]*registered{}, reserved: map[string]string{}, revisions: named},
		worker:  rand.Text(),

		adoptEvery: renewEvery,

		running:   map[string]*context.CancelCauseFunc{},
		observers: map[*int]func(Record){},
	}
	limit.Default(&s.options.Concurrency, DefaultConcurrency)
	limit.Default(&s.options.MaxTTL, DefaultMaxTTL)
	limit.Default(&s.options.MaxBody, DefaultMaxBody)
	limit.Default(&s.options.Drain, DefaultDrain)
	if s.logger == nil {
		s.logger = slog.New(warnings{slog.Default().Handler()})
	}
	var faults []error
	for _, revision := range options.Revisions {
		if Declared()[revision] == "" {
			faults = append(faults, fmt.Errorf("mcptask: Options.Revisions: %q is none of the revisions %v", revision, slices.Sorted(maps.Keys(Declared()))))
		}
	}
	for i := range services {
		faults = append(faults, s.catalog.add(&services[i])...)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if s.store == nil {
		s.store, s.ownStore = NewMemoryStore(), true
	}
	newExecutor := options.Executor
	if newExecutor == nil {
		newExecutor = func(run RunFunc) Executor { return localExecutor{pool.New(run, s.options.Concurrency)} }
	}
	s.executor = newExecutor(s.run)
	s.drained, s.endUpkeep = context.WithCancel(context.Background())
	s.closing, s.stop = context.WithCancel(s.drained)
	s.maintain()
	return s, nil
}

// warnings is a slog.Handler that leaves out what is less.
type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

// Options returns the options, defaults filled in.
func (s *Server) Options() Options { return s.options }

// Logger is where the gateway logs, never nil.
func (s *Server) Logger() *slog.Logger { return s.logger }

// Closing ends when the server begins to close: streams end with it.
func (s *Server) Closing() context.Context { return s.closing }

// Close stops the server: handlers get the end of their contexts and
// Options.Drain to return. A task that could not end stays in a store of the
// user's own, for another server to take; in the server's own it ends as
// cancelled, since nobody will. Close may be called twice.
func (s *Server) Close() error {
	s.closeOnce.Do(func() {
		s.stop()
		ctx, cancel := context.WithTimeout(context.Background(), s.options.Drain)
		defer cancel()
		if err := s.leave(ctx, "the executor", s.executor.Close); err != nil {
			s.closeErr = fmt.Errorf("mcptask: handlers still run after %v: %w", s.options.Drain, err)
		}
		s.endUpkeep()
		ctx, cancel = context.WithTimeout(context.Background(), CloseMargin)
		defer cancel()
		// What still takes orphans would take them after the release.
		ending, stop := context.WithTimeout(ctx, CloseMargin/2)
		defer stop()
		upkeep := s.leave(ending, "upkeep", func(context.Context) error { s.upkeep.Wait(); return nil })
		released := s.leave(ctx, "the release of tasks", s.release)
		if err := errors.Join(upkeep, released); err != nil {
			s.closeErr = errors.Join(s.closeErr, fmt.Errorf("mcptask: the store did not take what was left: %w", err))
		}
	})
	return s.closeErr
}

// release leaves the store, and the tasks in it to others.
func (s *Server) release(ctx context.Context) error {
	if s.ownStore {
		s.abandonAll(ctx)
	}
	t := &tries{server: s, end: ctx.Done(), timeout: CloseMargin / 5}
	_, err := callStore(ctx, t, "Release", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.store.Release(ctx, s.worker)
	})
	if s.ownStore {
		err = errors.Join(err, s.store.Close())
	}
	return err
}
