package mcptask

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Defaults of Options.
const (
	DefaultConcurrency = 64
	DefaultMaxTTL      = 30 * 24 * time.Hour
	DefaultMaxBody     = 4 << 20
	DefaultDrain       = 10 * time.Second
)

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
	// Logger takes what an operator should know; nil is slog.Default for
	// warnings and errors, such as a handler's panic.
	Logger *slog.Logger
	// Concurrency is how many task handlers the local executor runs at once;
	// the rest waits in line. 0 is DefaultConcurrency.
	Concurrency int
	// MaxTTL bounds the retention that a requestor may ask for (C-97); 0 is
	// DefaultMaxTTL. A tool's own ttl may be longer.
	MaxTTL time.Duration
	// MaxBody bounds a request's body in bytes; 0 is DefaultMaxBody.
	MaxBody int64
	// Drain bounds how long Close waits for handlers; 0 is DefaultDrain.
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

	flows flows
	onces sync.Map

	mu        sync.Mutex
	running   map[string]*context.CancelCauseFunc // handlers of this process, by task ID
	progress  map[string]ProgressFunc
	observers map[*int]func(Record)

	closing   context.Context
	stop      context.CancelFunc
	drained   context.Context // ends after closing: leases are kept until then
	endUpkeep context.CancelFunc
	upkeep    sync.WaitGroup
	closeOnce sync.Once
	closeErr  error
}

// NewServer makes a server of bound services. Duplicate tools, schemas that do
// not compile and a nil implementation are errors, all of them reported at
// once. Close the server to stop its tasks.
func NewServer(options Options, services ...Tools) (*Server, error) {
	s := &Server{
		options:   options,
		store:     options.Store,
		logger:    options.Logger,
		catalog:   catalog{tools: map[string]*registered{}, caps: Capabilities{}},
		worker:    rand.Text(),
		flows:     flows{open: map[string]*Flow{}},
		running:   map[string]*context.CancelCauseFunc{},
		progress:  map[string]ProgressFunc{},
		observers: map[*int]func(Record){},
	}
	if s.options.Concurrency <= 0 {
		s.options.Concurrency = DefaultConcurrency
	}
	if s.options.MaxTTL <= 0 {
		s.options.MaxTTL = DefaultMaxTTL
	}
	if s.options.MaxBody <= 0 {
		s.options.MaxBody = DefaultMaxBody
	}
	if s.options.Drain <= 0 {
		s.options.Drain = DefaultDrain
	}
	if s.logger == nil {
		s.logger = slog.New(warnings{slog.Default().Handler()})
	}
	var faults []error
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
		newExecutor = func(run RunFunc) Executor { return newLocalExecutor(run, s.options.Concurrency) }
	}
	s.executor = newExecutor(s.run)
	s.drained, s.endUpkeep = context.WithCancel(context.Background())
	s.closing, s.stop = context.WithCancel(s.drained)
	s.upkeep.Go(s.maintain)
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
// user's own, for another server to take. Close may be called twice.
func (s *Server) Close() error {
	s.closeOnce.Do(func() {
		s.stop()
		ctx, cancel := context.WithTimeout(context.Background(), s.options.Drain)
		defer cancel()
		if err := s.executor.Close(ctx); err != nil {
			s.closeErr = fmt.Errorf("mcptask: handlers still run after %v: %w", s.options.Drain, err)
		}
		s.endUpkeep()
		s.upkeep.Wait()
		if err := s.store.Release(context.Background(), s.worker); err != nil {
			s.closeErr = errors.Join(s.closeErr, err)
		}
		if s.ownStore {
			s.closeErr = errors.Join(s.closeErr, s.store.Close())
		}
	})
	return s.closeErr
}
