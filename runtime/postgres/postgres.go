// Package postgres has a [taskstore.Store] in a PostgreSQL database, which any number of processes
// share. It works from PostgreSQL 13 on. Choose it in one line:
//
//	store, err := postgres.Open(ctx, "postgres://user@host/database", postgres.Options{})
//
// Writes that come at the same time share a transaction, and no transaction waits for more to come.
// The transactions of all processes go one after the other. So nothing can deadlock, and the order of
// changes is that of the commits. While no other process writes, most transactions take one round trip.
// Otherwise they take two. Questions, long arguments and long outcomes have tables of their own, so that a report does
// not write them again.
//
// A task that has ended takes no memory. Of the others, an open store keeps up to 8 MiB of arguments and questions, and
// about 7 MB of counts for 20,000 tasks and accounts.
//
// If a process dies, others end the leases of its workers after about a second. They know of its death by an advisory
// lock with a random key, which its connection that listens holds. A store has this connection while it has a worker or
// its feed is read. Behind a pooler, a proxy or NAT there is no lock, and the leases end by themselves.
//
// A process learns from a notification (LISTEN) that others have written. It also looks every
// second without one. Only the database's clock counts.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/feed"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// DefaultSchema is the schema of a store whose Options name none.
const DefaultSchema = "mcptask"

// Options are the options of a [Store]. The zero value is right for most programs.
type Options struct {
	// Schema is the schema that has the store's tables, and nothing else. "" means DefaultSchema.
	// Stores with different schemas in one database are apart.
	Schema string
	// MaxConns bounds the connections of the store, but for one that listens. 0 means
	// pool_max_conns of the DSN, or 8.
	MaxConns int
	// NoListen makes the store look for changes of other processes twice a second, instead of a
	// connection that listens. Then the death of a process is noticed only when its lease ends. Open sets it if it sees
	// a pooler such as PgBouncer.
	NoListen bool
	// NoMigrate makes Open refuse a schema that is missing or old, instead of migrating it. See
	// [MigrationSQL].
	NoMigrate bool
	// Logger gets the failures in the background. nil means slog.Default().
	Logger *slog.Logger
}

// Store is a [taskstore.Store] and a [taskstore.Inspector] in a PostgreSQL database.
type Store struct {
	pool      *pgxpool.Pool
	schema    schema
	logger    *slog.Logger
	committer *durable.Committer
	cache     *durable.Cache
	sieve     *durable.Sieve
	seqs      seqRange     // of the committer alone
	connects  atomic.Int64 // how many connections the pool has made

	feed     *feed.Source[taskstore.Change]
	follower *follower
	workers  workers
	notifier *notifier

	closing context.Context
	close   context.CancelFunc
	closed  sync.Once
	running sync.WaitGroup // the store's goroutines

	// The time of the last upkeep, for Expire.
	keptUp atomic.Int64
	// shift is added to the database's clock, in microseconds. Only tests set it.
	shift *atomic.Int64
	// lookOften, mostSilence and trustAfter are the constants, except in tests.
	lookOften, mostSilence, trustAfter time.Duration
}

var (
	_ taskstore.Store     = (*Store)(nil)
	_ taskstore.Inspector = (*Store)(nil)
)

const (
	// defaultMaxConns is enough: writes share one connection.
	defaultMaxConns = 8
	// connectTimeout bounds one attempt to connect if the DSN has no connect_timeout.
	connectTimeout = 5 * time.Second
	// checkClient lets PostgreSQL end a session that waits for the lock of the writes and whose process has died. Servers
	// before PostgreSQL 14 lack the setting. A time that the user has set stays.
	checkClient = `SELECT set_config('client_connection_check_interval', '250ms', false)
		WHERE current_setting('client_connection_check_interval', true) = '0'`
)

// Open opens the store in the database that a DSN names, a URL or key=value pairs, as
// [pgxpool.ParseConfig] describes. It creates the schema and brings it up to date, unless the
// Options forbid it. If the database refuses or cuts the connection, as it does while it starts, Open
// tries again for as long as one attempt to connect may take: the connect_timeout of the DSN, or 5
// seconds. The context is for Open alone.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	config, schema, err := parseOptions(dsn, o)
	if err != nil {
		return nil, err
	}
	pooled, err := schema.connectAndMigrate(ctx, config.ConnConfig, !o.NoMigrate)
	if err != nil {
		return nil, err
	}
	if pooled && !strings.Contains(dsn, "default_query_exec_mode") {
		// The connection to the server that has a prepared statement may be that of others by now.
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	// A pooler may give the pool a connection to the server on which another client has listened. For the
	// same reason the store does not listen through one: it would not hear, and notifications that come to
	// a connection that PgBouncer 1.18 is cancelling end PgBouncer.
	config.ConnConfig.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {}
	if o.Logger == nil {
		o.Logger = slog.Default() //nolint:forbidigo // what goes wrong in the background is never silent
	}
	s := &Store{schema: schema, logger: o.Logger, cache: durable.NewCache(durable.CacheBytes), sieve: durable.NewSieve(o.Logger), shift: new(atomic.Int64), lookOften: lookOften, mostSilence: mostSilence, trustAfter: trustAfter}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		s.connects.Add(1)
		if !pooled {
			_, err := conn.Exec(ctx, checkClient, pgx.QueryExecModeExec)
			if refused := new(pgconn.PgError); !errors.As(err, &refused) { // a server may be unable to check
				return err
			}
		}
		return nil
	}
	if s.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	s.closing, s.close = context.WithCancel(context.Background())
	s.committer = durable.NewCommitter(s, o.Logger)
	s.follower = &follower{store: s, listens: !o.NoListen && !pooled}
	s.feed = feed.NewSource[taskstore.Change](s.follower.start)
	s.notifier = newNotifier(s)
	return s, nil
}

// parseOptions reads a DSN and Options.
func parseOptions(dsn string, o Options) (*pgxpool.Config, schema, error) {
	s, err := newSchema(o.Schema)
	if err != nil {
		return nil, s, err
	}
	if dsn == "" {
		return nil, s, errors.New("postgres: the DSN is empty: give one such as postgres://user@host/database")
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, s, fmt.Errorf("postgres: the DSN is not valid: %w", withoutDSN(err))
	}
	switch {
	case o.MaxConns < 0 || o.MaxConns > math.MaxInt32:
		return nil, s, fmt.Errorf("postgres: Options.MaxConns is %d: it must be positive, or 0 for the default", o.MaxConns)
	case o.MaxConns > 0:
		config.MaxConns = int32(o.MaxConns)
	case !strings.Contains(dsn, "pool_max_conns"):
		config.MaxConns = defaultMaxConns
	}
	if !strings.Contains(dsn, "connect_timeout") {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "mcptask"
	}
	return config, s, nil
}

// withoutDSN returns the cause of an error of the parser, without the DSN, which may have a password.
func withoutDSN(err error) error {
	var location *url.Error
	if errors.As(err, &location) { // its cause may be a part of a password
		return errors.New("it is not a URL; special characters of a password are written as %XX there")
	}
	_, cause, ok := strings.Cut(err.Error(), "`: ")
	if !ok {
		return err
	}
	return errors.New(cause)
}

const (
	// databaseClock is the database's time in SQL, in microseconds.
	databaseClock = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint"
	// clock is the store's time. $1 is the shift.
	clock = "(" + databaseClock + " + $1::bigint)"
)

// Create implements [taskstore.Store].
func (s *Store) Create(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
	return s.committer.Create(ctx, r, quota)
}

// Update implements [taskstore.Store].
func (s *Store) Update(ctx context.Context, from, to taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
	return s.committer.Update(ctx, from, to, quota, steps...)
}

// Delete implements [taskstore.Store].
func (s *Store) Delete(ctx context.Context, r taskstore.Record) error {
	return s.committer.Delete(ctx, r)
}

// Close implements [taskstore.Store]. It lets the writes that wait end.
func (s *Store) Close() error {
	s.closed.Do(func() {
		s.committer.Close()
		s.workers.end(s.close)
		s.feed.Close()
		s.running.Wait()
		s.pool.Close()
	})
	return nil
}
