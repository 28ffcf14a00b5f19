package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable/durabletest"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// bareTable has the table of a program that only remembers a call and its end, and one of the form of that of the steps.
const bareTable = `CREATE TABLE bare (
	id bytea PRIMARY KEY, version bigint NOT NULL, principal bytea NOT NULL, tool bytea NOT NULL, phase smallint NOT NULL,
	created bigint NOT NULL, updated bigint NOT NULL, expires bigint NOT NULL, worker bytea NOT NULL, arguments bytea, result bytea
);
CREATE INDEX ON bare (principal, created, id);
CREATE INDEX ON bare (created, id);
CREATE INDEX ON bare (expires);
CREATE INDEX ON bare (worker, tool) WHERE phase < 9;
CREATE TABLE bare_step (task bigint NOT NULL, name bytea NOT NULL, body bytea NOT NULL, PRIMARY KEY (task, name));`

// bare writes with one statement a commit.
type bare struct{ pool *pgxpool.Pool }

func openBare(b *testing.B, dsn string) bare {
	b.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = 64 // one for each client
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	if _, err := pool.Exec(b.Context(), bareTable); err != nil {
		b.Fatal(err)
	}
	return bare{pool}
}

// liveOnce stores a task and its end.
func (p bare) liveOnce(ctx context.Context) error {
	r := durabletest.NewTask(300)
	now := time.Now().UnixMicro()
	if _, err := p.pool.Exec(ctx, "INSERT INTO bare VALUES ($1, 1, $2, $3, 1, $4, $4, $5, $6, $7, NULL)", []byte(r.ID), []byte(r.Principal),
		[]byte(r.Tool), now, now+86400e6, []byte(r.Claim.Worker), []byte(r.Arguments)); err != nil {
		return err
	}
	_, err := p.pool.Exec(ctx, "UPDATE bare SET version = version + 1, phase = 9, updated = $1, worker = '', result = $2 WHERE id = $3 AND version = 1",
		time.Now().UnixMicro(), make([]byte, 300), []byte(r.ID))
	return err
}

func BenchmarkTaskLife(b *testing.B) {
	server := pgtest.Start(b, pgtest.Options{Durable: true})
	durabletest.BenchmarkLives(b, func(b *testing.B) (taskstore.Store, func() error) {
		dsn := server.Database(b)
		bare := openBare(b, dsn)
		return openStore(b, dsn, Options{}), func() error { return bare.liveOnce(b.Context()) }
	})
}

func BenchmarkPoll(b *testing.B) {
	durabletest.BenchmarkPolls(b, openStore(b, pgtest.Database(b), Options{}))
}

func BenchmarkReport(b *testing.B) {
	durabletest.BenchmarkReports(b, openStore(b, pgtest.Start(b, pgtest.Options{Durable: true}).Database(b), Options{}))
}

func BenchmarkStep(b *testing.B) {
	server := pgtest.Start(b, pgtest.Options{Durable: true})
	durabletest.BenchmarkSteps(b, func(b *testing.B) (taskstore.Store, func(task int64, name, body []byte) error) {
		dsn := server.Database(b)
		bare := openBare(b, dsn)
		return openStore(b, dsn, Options{}), func(task int64, name, body []byte) error {
			_, err := bare.pool.Exec(b.Context(), "INSERT INTO bare_step VALUES ($1, $2, $3)", task, name, body)
			return err
		}
	})
}

// fillWaiting adds $1 tasks of $2 accounts that worker $3 has.
const fillWaiting = `INSERT INTO @schema@.task (seq, id, version, principal, account, tool, idem, terms, phase, outcome, is_error, cancel, message,
		done, total, created, updated, terminal, expires, attempt, tries, worker, bytes, asked)
	SELECT i, sha256(convert_to(i::text, 'UTF8')), 1, 'p', convert_to('user' || i % $2::bigint, 'UTF8'), 'tool', '', '', 0, 0, false, false, '',
		0, 0, i, i, 0, 1e18, 0, 0, $3::bytea, 0, 0 FROM generate_series(1, $1::bigint) i`

func BenchmarkWaiting(b *testing.B) {
	durabletest.BenchmarkWaiting(b, func(b *testing.B, tasks, accounts int, worker string) taskstore.Store {
		s := openStore(b, pgtest.Database(b), Options{})
		if _, err := s.pool.Exec(b.Context(), s.schema.sql(fillWaiting), tasks, accounts, []byte(worker)); err != nil {
			b.Fatal(err)
		}
		return s
	})
}
