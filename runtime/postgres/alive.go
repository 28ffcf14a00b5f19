package postgres

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// A process that dies loses its connections within milliseconds. So the connection that listens holds an advisory lock,
// whose key is in table alive for each worker of the process. Every process that listens looks for workers whose locks
// are free. A living process that has lost its connection takes its rows out of the table, or has a new lock, before
// that counts. Whatever else fails, the leases decide.

const (
	// watchEvery is how often a process looks for dead workers.
	watchEvery = 250 * time.Millisecond
	// confirmLooks is how many looks in a row must find the same lock free. The living have the time between to
	// connect again.
	confirmLooks = 3
	// longestGap is the longest time from the end of a look to the next one. After a longer one, the process may have been
	// stopped, and others too.
	longestGap = time.Second
	// trustAfter is how long a process does not look after it has lost a connection itself: others may have lost theirs
	// too, and connect slowly to a server that all come back to at once.
	trustAfter = 10 * time.Second
	// keepEvery is how often the connection that listens is tried, and the rows of its workers with it.
	keepEvery = time.Second
	// showWithin bounds how long a worker waits for its row before it begins. If it dies before it has one, its tasks wait
	// for its lease.
	showWithin = 2 * time.Second
	// hideTimeout bounds the statement that takes the rows of a lost connection out of the table.
	hideTimeout = 250 * time.Millisecond
	// longestReconnect is the longest pause between attempts to connect again.
	longestReconnect = time.Second
)

const (
	// boot is the server's start in SQL, in microseconds.
	boot = "(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint"
	// keepSession lets a session be idle, and ends it half a minute after its peer was lost. A server may lack some of
	// the settings. Setting them all at the start would fail then.
	keepSession = `SELECT set_config(name, value, false) FROM pg_settings JOIN (VALUES ('idle_session_timeout', '0'),
		('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '4')) wanted(name, value) USING (name)`
	clientAddress = "SELECT coalesce(host(inet_client_addr()), ''), coalesce(inet_client_port(), 0)"
	lockAlive     = "SELECT pg_advisory_lock($1::bigint)"
	deleteOld     = "DELETE FROM @schema@.alive WHERE boot <> " + boot
	// showAlive makes the rows of the key $1 those of the workers $2. It writes nothing if they are that already.
	showAlive = `WITH gone AS (DELETE FROM @schema@.alive WHERE key = $1::bigint AND worker <> ALL($2::bytea[]))
		INSERT INTO @schema@.alive (worker, key, boot) SELECT w.id, $1::bigint, ` + boot + ` FROM unnest($2::bytea[]) w(id)
			WHERE NOT EXISTS (SELECT FROM @schema@.alive a WHERE a.worker = w.id AND a.key = $1::bigint)
		ON CONFLICT (worker) DO UPDATE SET key = excluded.key, boot = excluded.boot`
	hideAlive = "DELETE FROM @schema@.alive WHERE key = $1::bigint"
	// isFree is true for a row of this server's start whose lock nobody holds.
	isFree   = "boot = " + boot + " AND pg_try_advisory_xact_lock_shared(key)"
	findFree = "SELECT worker, key FROM @schema@.alive WHERE " + isFree
	// oneOf is true for a row of the workers $1 and their keys $2.
	oneOf = "(worker, key) IN (SELECT * FROM unnest($1::bytea[], $2::bigint[]))"
	// ofGone has the names of workers that are gone, and those under which their processes found orphans, as ranges.
	ofGone = `, names AS (SELECT worker AS low, worker || '\x00'::bytea AS high FROM gone UNION ALL SELECT worker || '/'::bytea, worker || '0'::bytea FROM gone)
		`
	// readFree tells whether rows are free, and whether their workers have unfinished tasks.
	readFree = "WITH gone AS (SELECT worker FROM @schema@.alive WHERE " + oneOf + " AND " + isFree + ")" + ofGone +
		"SELECT EXISTS (SELECT FROM gone), EXISTS (SELECT FROM names JOIN @schema@.task ON worker >= low AND worker < high WHERE phase < 9)"
	// endFree ends the leases of workers, unless their processes have other locks by now.
	endFree = "WITH gone AS (DELETE FROM @schema@.alive WHERE " + oneOf + " AND " + isFree + " RETURNING worker)" + ofGone +
		"DELETE FROM @schema@.worker USING names WHERE id >= low AND id < high"
)

// workers are those that have called Beat of a store, and not Release. The zero value is ready to use.
type workers struct {
	mu sync.Mutex
	// ids has the workers, each with a channel that is closed once the worker was shown in table alive.
	ids   map[string]chan struct{}
	isNew bool // whether one has come since takeNew
	// stop ends the reading of the feed that keeps the connection that listens. It is nil if there is none.
	stop context.CancelFunc
}

// add adds a worker, and returns its channel. It returns nil if the lease of the worker is to outlast the process.
func (w *workers) add(id string, lease time.Duration) (shown <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if lease >= taskstore.LastingLease {
		return nil
	}
	if w.ids == nil {
		w.ids = map[string]chan struct{}{}
	}
	if w.ids[id] == nil {
		w.isNew = true
		w.ids[id] = make(chan struct{})
	}
	return w.ids[id]
}

// noteShown notes that workers were shown, or will not be.
func (w *workers) noteShown(ids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		select {
		case <-w.ids[id]:
		default:
			if w.ids[id] != nil {
				close(w.ids[id])
			}
		}
	}
}

// takeNew reports whether a worker has come since the last call.
func (w *workers) takeNew() (isNew bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	isNew, w.isNew = w.isNew, false
	return isNew
}

// remove removes a worker. With the last one ends what start has started.
func (w *workers) remove(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.ids, id); len(w.ids) == 0 && w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// start starts a function for as long as there are workers, unless it runs or the store closes.
func (w *workers) start(s *Store, run func(context.Context)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != nil || len(w.ids) == 0 || s.closing.Err() != nil {
		return
	}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(s.closing)
	s.running.Go(func() {
		defer guard.Recover(s.logger, "the proof of life")
		run(ctx)
	})
}

// end ends a store, so that nothing starts any more.
func (w *workers) end(closeStore context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	closeStore()
}

// list returns the workers in the order in which every process writes them.
func (w *workers) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.ids))
}

// show waits until a new worker is in table alive, for a while. The store listens for as long as it has workers.
func (s *Store) show(ctx context.Context, shown <-chan struct{}) {
	if shown == nil || !s.follower.listens {
		return
	}
	select {
	case <-shown:
		return
	default:
	}
	s.workers.start(s, s.keepListening)
	s.notifier.poke() // the connection that listens
	select {
	case <-shown:
	case <-time.After(showWithin):
	case <-s.closing.Done():
	case <-ctx.Done():
	}
}

// keepListening reads the feed until ctx ends, so that the store listens.
func (s *Store) keepListening(ctx context.Context) {
	for ctx.Err() == nil {
		for _, err := range s.feed.Read(ctx, taskstore.Change{}) {
			if err != nil {
				break // others log it
			}
		}
		select {
		case <-time.After(keepEvery):
		case <-ctx.Done():
		}
	}
}

// proof is the lock of a connection that listens. Without one, its key is 0.
type proof struct {
	store *Store
	conn  *pgx.Conn
	key   int64
}

// prove takes a lock with a random key of 64 bits, so that it meets no lock of another program. If somebody else may end
// the connection while the process lives, or if the database refuses, there is no lock, and the leases decide.
func (s *Store) prove(ctx context.Context, conn *pgx.Conn) (*proof, error) {
	p := &proof{store: s, conn: conn}
	ctx, cancel := context.WithTimeout(ctx, backgroundTimeout)
	defer cancel()
	var host string
	var port uint16
	_, err := conn.Exec(ctx, keepSession)
	if err == nil {
		err = conn.QueryRow(ctx, clientAddress).Scan(&host, &port)
	}
	if err != nil || !isDirect(conn.PgConn().Conn().LocalAddr(), host, port) {
		return p, p.allow(err)
	}
	var random [8]byte
	rand.Read(random[:]) // it never fails
	p.key = int64(binary.NativeEndian.Uint64(random[:]) | 1)
	if _, err = conn.Exec(ctx, lockAlive, p.key); err == nil {
		_, err = conn.Exec(ctx, s.schema.sql(deleteOld))
	}
	return p, p.allow(err)
}

// isDirect reports whether the server sees a connection come from its local address. Otherwise there is a proxy between
// them, which may end while the process lives, or something that hides one.
func isDirect(local net.Addr, host string, port uint16) bool {
	switch a := local.(type) {
	case *net.UnixAddr:
		return host == ""
	case *net.TCPAddr:
		seen, err := netip.ParseAddr(host)
		return err == nil && netip.AddrPortFrom(seen.Unmap(), port) == netip.AddrPortFrom(a.AddrPort().Addr().Unmap().WithZone(""), a.AddrPort().Port())
	}
	return false
}

// keep shows the store's workers in table alive. It fails if the connection is lost.
func (p *proof) keep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, backgroundTimeout)
	defer cancel()
	workers := p.store.workers.list()
	if p.key == 0 {
		p.store.workers.noteShown(workers) // there is nothing to wait for
		return p.conn.Ping(ctx)
	}
	_, err := p.conn.Exec(ctx, p.store.schema.sql(showAlive), p.key, byteStrings(workers))
	if err = p.allow(err); err == nil {
		p.store.workers.noteShown(workers)
	}
	return err
}

// allow gives the proof up if the database has refused a statement, such as for a role without rights to table alive.
// Any other error is that of a connection.
func (p *proof) allow(err error) error {
	if err == nil || isPassing(err) || p.conn.IsClosed() {
		return err
	}
	p.store.logger.Warn("the database refuses the worker's proof of life, so its death is noticed only when its lease ends; the role needs its rights on all tables of the schema",
		"error", err)
	p.hide()
	p.key = 0
	return nil
}

// hide takes the rows of the lock out of the table. If the connection is lost, the pool may have others.
func (p *proof) hide() {
	if p.key == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), hideTimeout)
	defer cancel()
	sql := p.store.schema.sql(hideAlive)
	if !p.conn.IsClosed() {
		if _, err := p.conn.Exec(ctx, sql, p.key); err == nil {
			return
		}
	}
	for range attempts { // connections of the pool may be lost too
		if _, err := p.store.pool.Exec(ctx, sql, p.key); err == nil || ctx.Err() != nil {
			return
		}
	}
}

// free is a row of table alive whose lock nobody holds.
type free struct {
	worker string
	key    int64
}

// watch ends the leases of dead workers until ctx ends.
func (g *following) watch(ctx context.Context) {
	var found map[free]int // how many looks in a row have found each
	var last time.Time
	for isFailing := false; ; {
		if gap := time.Now().Round(0).Sub(last); gap < 0 || gap > longestGap {
			found = nil
		}
		if g.isTrusted() {
			var err error
			found, err = g.store.endDead(ctx, found)
			if err != nil && ctx.Err() == nil {
				if !errors.Is(err, context.DeadlineExceeded) { // which a writer that was killed may cause
					g.noteLoss()
				}
				if !isFailing {
					g.store.logger.Warn("search for dead workers failed, and is tried again", "error", err)
				}
			}
			isFailing = err != nil
		} else {
			found = nil
		}
		last = time.Now().Round(0) // by a clock that goes on while the machine sleeps
		select {
		case <-time.After(watchEvery):
		case <-ctx.Done():
			return
		}
	}
}

// isTrusted reports whether the process hears of the server, and has lost no connection lately.
func (g *following) isTrusted() bool {
	lost := g.lost.Load()
	return g.listening.Load() && (lost == nil || time.Since(*lost) > g.store.trustAfter)
}

// noteLoss takes note of a connection that is lost.
func (g *following) noteLoss() {
	now := time.Now()
	g.lost.Store(&now)
}

// endDead looks once for workers whose locks are free, and ends the leases of those for which that is confirmed.
func (s *Store) endDead(ctx context.Context, before map[free]int) (found map[free]int, err error) {
	ctx, cancel := context.WithTimeout(ctx, backgroundTimeout)
	defer cancel()
	rows, err := s.pool.Query(ctx, s.schema.sql(findFree))
	if err != nil {
		return nil, err
	}
	var worker []byte
	var key int64
	if _, err := pgx.ForEachRow(rows, []any{&worker, &key}, func() error {
		if found == nil {
			found = map[free]int{}
		}
		row := free{string(worker), key}
		found[row] = before[row] + 1
		return nil
	}); err != nil {
		return nil, err
	}
	var confirmed []free
	for row, looks := range found {
		if looks >= confirmLooks {
			confirmed = append(confirmed, row)
		}
	}
	if len(confirmed) == 0 {
		return found, nil
	}
	return found, s.endLeases(ctx, confirmed)
}

// endLeases ends the leases of workers, as Release does, if their locks are still free.
func (s *Store) endLeases(ctx context.Context, rows []free) error {
	workers, keys := make([][]byte, len(rows)), make([]int64, len(rows))
	for i, row := range rows {
		workers[i], keys[i] = []byte(row.worker), row.key
	}
	var isDead, hasTasks bool
	err := s.transact(ctx,
		func(b *pgx.Batch) {
			b.Queue(s.schema.sql(readFree), workers, keys).
				QueryRow(func(r pgx.Row) error { return r.Scan(&isDead, &hasTasks) })
		},
		func(b *pgx.Batch) bool {
			if !isDead {
				return false
			}
			b.Queue(s.schema.sql(endFree), workers, keys)
			if hasTasks {
				s.queueChanges(b, []taskstore.Change{{Free: true}})
			}
			return true
		})
	if err != nil {
		return fmt.Errorf("postgres: end the leases of dead workers: %w", err)
	}
	if isDead {
		s.announce()
	}
	return nil
}
