package sqlite

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable/durabletest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// bareTable is the hot table with its indexes and all bodies in it, for a program that only remembers a call and its
// end.
const bareTable = `CREATE TABLE bare (
	seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, version INTEGER NOT NULL, principal BLOB NOT NULL, tool BLOB NOT NULL,
	phase INTEGER NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL, expires INTEGER NOT NULL, worker BLOB NOT NULL,
	arguments BLOB, result BLOB
) STRICT;
CREATE INDEX bare_list ON bare (principal, created, id);
CREATE INDEX bare_created ON bare (created, id);
CREATE INDEX bare_expires ON bare (expires);
CREATE INDEX bare_worker ON bare (worker, tool) WHERE phase < 9;`

// bareStepTable is a table of the form of that of the steps.
const bareStepTable = `CREATE TABLE bare_step (task INTEGER NOT NULL, name BLOB NOT NULL, body BLOB NOT NULL, PRIMARY KEY (task, name)) STRICT, WITHOUT ROWID;`

// bare writes with one statement a commit.
type bare struct {
	db                         *sql.DB
	insert, update, insertStep *sql.Stmt
}

func openBare(b *testing.B) *bare {
	b.Helper()
	db, err := openDatabase(filepath.Join(b.TempDir(), "bare.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	for _, statement := range []string{"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA cache_size=-16000", bareTable, bareStepTable} {
		if _, err := db.Exec(statement); err != nil {
			b.Fatal(err)
		}
	}
	p := &bare{db: db}
	if p.insert, err = db.Prepare("INSERT INTO bare VALUES (NULL, ?, 1, ?, ?, 1, ?, ?, ?, ?, ?, NULL)"); err != nil {
		b.Fatal(err)
	}
	if p.update, err = db.Prepare("UPDATE bare SET version = version + 1, phase = 9, updated = ?, worker = x'', result = ? WHERE id = ? AND version = 1"); err != nil {
		b.Fatal(err)
	}
	if p.insertStep, err = db.Prepare("INSERT INTO bare_step VALUES (?, ?, ?)"); err != nil {
		b.Fatal(err)
	}
	return p
}

func (p *bare) liveOnce() error {
	r := durabletest.NewTask(300)
	now := time.Now().UnixMicro()
	if _, err := p.insert.Exec([]byte(r.ID), []byte(r.Principal), []byte(r.Tool), now, now, now+86400e6, []byte(r.Claim.Worker), []byte(r.Arguments)); err != nil {
		return err
	}
	_, err := p.update.Exec(time.Now().UnixMicro(), make([]byte, 300), []byte(r.ID))
	return err
}

func openBench(b *testing.B) *Store {
	b.Helper()
	s, err := Open(filepath.Join(b.TempDir(), "tasks.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

func BenchmarkTaskLife(b *testing.B) {
	durabletest.BenchmarkLives(b, func(b *testing.B) (taskstore.Store, func() error) {
		return openBench(b), openBare(b).liveOnce
	})
}

func BenchmarkPoll(b *testing.B) { durabletest.BenchmarkPolls(b, openBench(b)) }

func BenchmarkReport(b *testing.B) { durabletest.BenchmarkReports(b, openBench(b)) }

func BenchmarkStep(b *testing.B) {
	durabletest.BenchmarkSteps(b, func(b *testing.B) (taskstore.Store, func(task int64, name, body []byte) error) {
		bare := openBare(b)
		return openBench(b), func(task int64, name, body []byte) error {
			_, err := bare.insertStep.Exec(task, name, body)
			return err
		}
	})
}

// fillWaiting adds ?1 tasks of ?2 accounts that worker ?3 has.
const fillWaiting = `WITH RECURSIVE number (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM number WHERE i < ?1)
	INSERT INTO task (id, version, principal, account, tool, phase, outcome, is_error, cancel, message, done, total, created, updated, terminal, expires,
		attempt, tries, worker, bytes, asked, terms)
	SELECT CAST(printf('%08x', i * 2654435761 % 4294967296) AS BLOB), 1, x'70', CAST('user' || (i % ?2) AS BLOB), CAST('tool' AS BLOB), 0, 0, 0, 0, x'',
		0, 0, i, i, 0, 1000000000000000000, 0, 0, ?3, 0, 0, x'' FROM number`

func BenchmarkWaiting(b *testing.B) {
	durabletest.BenchmarkWaiting(b, func(b *testing.B, tasks, accounts int, worker string) taskstore.Store {
		s := openBench(b)
		if _, err := s.writer.exec(fillWaiting, tasks, accounts, []byte(worker)); err != nil {
			b.Fatal(err)
		}
		return s
	})
}
