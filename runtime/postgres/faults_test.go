package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// terminate ends the backends of a database that run or ran a statement like the pattern, and returns
// how many there were.
func terminate(t testing.TB, dsn, pattern string) int {
	t.Helper()
	return len(query(t, dsn, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE $1`, pattern))
}

// listening is the pattern of the statements of a connection that listens: LISTEN is not its last.
const listening = "WITH gone AS (DELETE FROM%alive WHERE key%"

// TestListenIsCut ends the connection that listens. The feed goes on without a gap.
func TestListenIsCut(t *testing.T) {
	dsn := pgtest.Database(t)
	s, other := openStore(t, dsn, Options{}), openStore(t, dsn, Options{})
	wait := newsOf(t, s)
	for i := range 5 {
		wiretest.Eventually(t, "it listens", func() bool { return terminate(t, dsn, listening) > 0 })
		id := fmt.Sprint("t", i)
		create(t, other, newTask(id, "a"))
		wait("a change after the cut", is(id, 1))
	}
}

// TestOwnChangesAndOthers checks that the feed has all versions in order, whoever writes them.
func TestOwnChangesAndOthers(t *testing.T) {
	dsn := pgtest.Database(t)
	handles := []*Store{openStore(t, dsn, Options{}), openStore(t, dsn, Options{NoListen: true})}
	waits := []func(string, func(taskstore.Change) bool) taskstore.Change{newsOf(t, handles[0]), newsOf(t, handles[1])}
	r := create(t, handles[0], newTask("t", "a"))
	const versions = 100
	for i := range versions - 1 {
		next := r
		next.Progress.Done++
		var err error
		if r, err = handles[i%2].Update(t.Context(), r, next, taskstore.Quota{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := handles[0].Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for i, wait := range waits {
		for v := int64(1); v <= versions; v++ {
			if c := wait("a version", func(taskstore.Change) bool { return true }); c.Version != v {
				t.Fatalf("handle %d: %+v instead of version %d", i, c, v)
			}
		}
		wait("the deletion", is("t", 0))
	}
}

// TestChangesAfterLongPause checks that a process that slept for longer than changes are kept says so.
func TestChangesAfterLongPause(t *testing.T) {
	s := openStore(t, pgtest.Database(t), Options{})
	wait := newsOf(t, s)
	create(t, s, newTask("t", "a"))
	wait("the first change", is("t", 1))
	s.shift.Add(changesFor.Microseconds())
	create(t, s, newTask("u", "a"))
	wait("the missed change", func(c taskstore.Change) bool { return c.Missed })
}

// TestOpenIsCut ends the connection of Open while it reads the version of the schema. Open connects again.
func TestOpenIsCut(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	openStore(t, dsn, Options{})
	holder, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // its lock is free
	for _, sql := range []string{"BEGIN", "LOCK TABLE mcptask.schema_version"} {
		if _, err := holder.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	opened := make(chan error)
	go func() {
		s, err := Open(t.Context(), dsn+" connect_timeout=60", Options{})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	wiretest.Eventually(t, "Open reads the version", func() bool {
		select {
		case err := <-opened:
			t.Fatalf("opened without reading the version: %v", err)
		default:
		}
		return terminate(t, dsn, "SELECT coalesce%schema_version") > 0
	})
	if _, err := holder.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// TestBackendsAreKilled ends backends at any moment while tasks are created and finished. Acknowledged writes are
// there. Failed ones may be there.
func TestBackendsAreKilled(t *testing.T) {
	dsn := pgtest.Start(t, pgtest.Options{Durable: true}).Database(t)
	s := openStore(t, dsn, Options{})
	const clients, kills = 8, 30
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	var made, failed atomic.Int64
	for c := range clients {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				r, err := s.Create(t.Context(), newTask(fmt.Sprint(c, "-", i), fmt.Sprint(c)), taskstore.Quota{})
				if err == nil {
					r, err = s.Update(t.Context(), r, finish(r), taskstore.Quota{})
				}
				if err != nil {
					failed.Add(1)
					continue
				}
				made.Add(1)
				patient, cancel := context.WithTimeout(t.Context(), wiretest.Patience)
				got, err := s.Get(patient, r.ID)
				for ; err != nil && !errors.Is(err, taskstore.ErrNoRecord) && patient.Err() == nil; got, err = s.Get(patient, r.ID) { // its connection may be killed too
				}
				cancel()
				if err != nil || got.Version != r.Version || !got.Done() {
					t.Errorf("%s of version %d is %+v, %v", r.ID, r.Version, got, err)
				}
			}
		})
	}
	last := int64(0)
	for range kills {
		wiretest.Eventually(t, "it works again", func() bool { return made.Load() > last })
		last = made.Load()
		terminate(t, dsn, "%")
	}
	stop()
	all.Wait()
	checkAccounts(t, dsn)
	t.Logf("%d lives, %d failed calls", made.Load(), failed.Load())
}

// TestServerLosesCommits lets a server forget the last commits, as one does that takes over, or that ends
// with synchronous_commit=off. Then the sequence gives numbers again that a process has used.
func TestServerLosesCommits(t *testing.T) {
	dsn := pgtest.Database(t)
	s := openStore(t, dsn, Options{})
	create(t, s, newTask("lost", "a"))
	query(t, dsn, "TRUNCATE mcptask.task, mcptask.account, mcptask.change")
	query(t, dsn, "SELECT setval('mcptask.task_seq', 1, false)")
	terminate(t, dsn, "%")
	other := openStore(t, dsn, Options{})
	for i := range 3 {
		r := newTask(fmt.Sprint("other", i), "b")
		r.Arguments = []byte(`{"other":` + strings.Repeat(" ", i*1000) + `1}`)
		create(t, other, r)
		if i > 0 {
			continue
		}
		if got := getAtLast(t, s, r.ID); string(got.Arguments) != string(r.Arguments) {
			t.Errorf("the arguments are %s", got.Arguments)
		}
	}
	for i := 0; ; i++ {
		_, err := s.Create(context.WithoutCancel(t.Context()), newTask(fmt.Sprint("new", i), "a"), taskstore.Quota{})
		if err == nil {
			break
		}
		if i == 100 {
			t.Fatal(err)
		}
	}
	if twice := query(t, dsn, "SELECT seq FROM mcptask.task GROUP BY seq HAVING count(*) > 1"); len(twice) > 0 {
		t.Errorf("several tasks have the numbers %v", twice)
	}
	checkAccounts(t, dsn)
}

// getAtLast returns a task as soon as the store, whose connections were lost, can read it.
func getAtLast(t *testing.T, s *Store, id string) (r taskstore.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wiretest.Patience)
	defer cancel()
	wiretest.Await(t, func() (missing string) {
		var err error
		if r, err = s.Get(ctx, id); err != nil {
			return fmt.Sprintf("%s cannot be read: %v", id, err)
		}
		return ""
	})
	return r
}

// checkAccounts compares the usages with the tasks that are stored.
func checkAccounts(t *testing.T, dsn string) {
	t.Helper()
	const wrong = `SELECT 'account ' || encode(a.account, 'escape') FROM mcptask.account a FULL JOIN (
			SELECT 'a'::bytea || account AS account, count(*) AS stored, count(*) FILTER (WHERE phase < 9) AS unfinished, sum(bytes) AS bytes FROM mcptask.task GROUP BY 1
			UNION ALL SELECT 's'::bytea, count(*), count(*) FILTER (WHERE phase < 9), sum(bytes) FROM mcptask.task
		) t ON t.account = a.account
		WHERE a.stored IS DISTINCT FROM t.stored OR a.unfinished IS DISTINCT FROM t.unfinished OR a.bytes IS DISTINCT FROM t.bytes
		UNION ALL SELECT 'arguments without a task' FROM mcptask.arguments a WHERE NOT EXISTS (SELECT FROM mcptask.task t WHERE t.seq = a.seq)
		UNION ALL SELECT 'outcome without a task' FROM mcptask.outcome o WHERE NOT EXISTS (SELECT FROM mcptask.task t WHERE t.seq = o.seq)`
	if faults := query(t, dsn, wrong); len(faults) > 0 {
		t.Errorf("%d faults: %v", len(faults), faults)
	}
}

// TestHandlesTogether lets three handles write tasks of many accounts, expire them and take leases at
// once. Nothing deadlocks, and all counts are right.
func TestHandlesTogether(t *testing.T) {
	dsn := pgtest.Database(t)
	var all sync.WaitGroup
	shift := new(atomic.Int64)
	for h := range 3 {
		s := openStore(t, dsn, Options{})
		s.shift = shift
		for c := range 8 {
			all.Go(func() {
				for i := range 30 {
					r := newTask(fmt.Sprint(h, c, i), fmt.Sprint("account", (h+c*i)%17))
					if i%5 == 0 {
						r.Claim.Worker, r.ExpiresAt = "", r.CreatedAt
					}
					if _, err := s.Create(t.Context(), r, taskstore.Quota{}); err != nil {
						t.Error(err)
						return
					}
					r, err := s.Get(t.Context(), r.ID)
					if err == nil {
						_, err = s.Update(t.Context(), r, finish(r), taskstore.Quota{})
					}
					if err != nil && !errors.Is(err, taskstore.ErrConflict) && !errors.Is(err, taskstore.ErrNoRecord) {
						t.Error(err)
					}
					switch i % 10 {
					case 3:
						_, err = s.Expire(t.Context(), 7)
					case 6:
						_, err = s.Lease(t.Context(), fmt.Sprint(h), time.Minute, []string{"tool"}, 7)
					case 9:
						_, err = s.Beat(t.Context(), fmt.Sprint(h), time.Minute, []string{r.ID})
					default:
						err = nil
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	checkAccounts(t, dsn)
	if n := query(t, dsn, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"); n[0] != "0" {
		t.Errorf("%s deadlocks", n[0])
	}
}

// TestStoppedWriterLetsOthersGoOn checks that a process that stops in a transaction does not hold up
// the others for long.
func TestStoppedWriterLetsOthersGoOn(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	s := openStore(t, dsn, Options{})
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // the server has ended it
	for _, sql := range []string{beginWriting, lockWriting} {
		var args []any
		if sql == lockWriting {
			args = []any{s.schema.lock}
		}
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	created := make(chan error)
	go func() { _, err := s.Create(ctx, newTask("called off", "a"), taskstore.Quota{}); created <- err }()
	cancel()
	if err := <-created; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	create(t, s, newTask("t", "a"))
}

// TestStoppedWithinBatch stops a process that has sent a part of its batch and has the lock. Others go on.
func TestStoppedWithinBatch(t *testing.T) {
	dsn := pgtest.Database(t)
	s := openStore(t, dsn, Options{})
	s.mostSilence = time.Millisecond
	conn, err := pgconn.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	stopped, err := conn.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	defer stopped.Conn.Close() //nolint:errcheck // the server has ended it
	lock := fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", s.schema.lock)
	for _, sql := range []string{beginWriting, lock} { // and no Sync
		stopped.Frontend.SendParse(&pgproto3.Parse{Query: sql})
		stopped.Frontend.SendBind(&pgproto3.Bind{})
		stopped.Frontend.SendExecute(&pgproto3.Execute{})
	}
	if err := stopped.Frontend.Flush(); err != nil {
		t.Fatal(err)
	}
	wiretest.Eventually(t, "it has the lock", func() bool {
		return len(query(t, dsn, "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = $1", stopped.PID)) > 0
	})
	create(t, s, newTask("t", "a"))
}

// TestNetworkIsCut lets connections hang, as a network does that loses packets. Calls end with their
// contexts, and the store works again when the network does.
func TestNetworkIsCut(t *testing.T) {
	t.Parallel()
	p, dsn := newProxy(t)
	s := openStore(t, dsn+"&connect_timeout=60", Options{})
	create(t, s, newTask("before", "a"))
	p.cut(true)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Create(ctx, newTask("t", "a"), taskstore.Quota{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := s.Get(ctx, "before"); err == nil {
		t.Error("a dead network has answered")
	}
	p.cut(false)
	getAtLast(t, s, "before")
	create(t, s, newTask("after", "a"))
}

// TestCloseWhileFeedStarts closes a store whose feed waits for a dead network. The feed ends.
func TestCloseWhileFeedStarts(t *testing.T) {
	t.Parallel()
	p, dsn := newProxy(t)
	s, err := Open(t.Context(), dsn, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "none"); !errors.Is(err, taskstore.ErrNoRecord) { // its connection stays
		t.Error(err)
	}
	p.cut(true)
	ended := make(chan error, 1)
	go func() {
		var failed error
		for _, err := range s.Changes(t.Context()) {
			failed = err
		}
		ended <- failed
	}()
	wiretest.Eventually(t, "the feed asks", func() bool { return s.pool.Stat().AcquiredConns() > 0 })
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	p.cut(false) // pgx waits for a while until it leaves a connection
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// proxy passes connections on to a server. While it is cut, connections hang.
type proxy struct {
	net.Listener
	target string

	mu    sync.Mutex
	isCut bool
	conns []net.Conn
	going sync.Cond
}

// newProxy starts a server with a database, and a proxy before it. It returns the database's DSN, as a URL with
// parameters, by way of the proxy.
func newProxy(t testing.TB) (p *proxy, dsn string) {
	t.Helper()
	server := pgtest.Start(t, pgtest.Options{TCP: true})
	config, err := pgconn.ParseConfig(server.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p = &proxy{Listener: l, target: server.Address}
	p.going.L = &p.mu
	go p.serve()
	t.Cleanup(func() {
		p.cut(false)
		l.Close() //nolint:errcheck // it ends serve
	})
	return p, fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", config.User, l.Addr(), config.Database)
}

// cut cuts the network, or ends the cut. Connections from before are then lost.
func (p *proxy) cut(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = is
	if !is {
		for _, c := range p.conns {
			c.Close() //nolint:errcheck // it was of no use
		}
		p.conns = nil
	}
	p.going.Broadcast()
}

func (p *proxy) serve() {
	for {
		in, err := p.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil {
			in.Close() //nolint:errcheck // the client sees the end
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, in, out)
		p.mu.Unlock()
		go p.pass(in, out)
		go p.pass(out, in)
	}
}

// pass copies bytes unless the network is cut.
func (p *proxy) pass(from, to net.Conn) {
	defer to.Close() //nolint:errcheck // the other side sees the end
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		for p.isCut {
			p.going.Wait()
		}
		p.mu.Unlock()
		if err != nil {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
