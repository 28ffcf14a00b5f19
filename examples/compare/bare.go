package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"sync/atomic"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx; runtime/sqlite links the driver sqlite
)

// bareTable is the smallest table of a program that remembers its calls, with one statement a commit. Commits are as
// durable as those of the store beside it.
type bareTable struct {
	db      *sql.DB
	reports atomic.Int64
}

const (
	createBare = "CREATE TABLE IF NOT EXISTS bare (id TEXT PRIMARY KEY, phase INTEGER NOT NULL, message TEXT, arguments TEXT NOT NULL, result TEXT)"
	insertBare = "INSERT INTO bare (id, phase, arguments) VALUES ($1, 1, $2)"
	endBare    = "UPDATE bare SET phase = 9, result = $1 WHERE id = $2"
	reportBare = "UPDATE bare SET message = $1 WHERE id = $2"
	// bareResult is about as long as the result of a task.
	bareResult = `{"content":[{"type":"text","text":"it ran"}]}`
)

// openBare opens a database and fills the table with running calls that report.
func (t *target) openBare(ctx context.Context, driver, source string, conns int) (*bareTable, error) {
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, err
	}
	t.atEnd(db.Close)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	if _, err := db.ExecContext(ctx, createBare); err != nil {
		return nil, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	for i := range int64(reporters) {
		if _, err := tx.ExecContext(ctx, insertBare+" ON CONFLICT DO NOTHING", reporterID(i), "{}"); err != nil {
			return nil, err
		}
	}
	return &bareTable{db: db}, tx.Commit()
}

func reporterID(n int64) string { return fmt.Sprint("reporter ", n%reporters) }

// live stores a call, and then its end.
func (b *bareTable) live(ctx context.Context) error {
	id := rand.Text()
	if _, err := b.db.ExecContext(ctx, insertBare, id, runArguments); err != nil {
		return err
	}
	_, err := b.db.ExecContext(ctx, endBare, bareResult, id)
	return err
}

// report stores the progress of a call.
func (b *bareTable) report(ctx context.Context) error {
	n := b.reports.Add(1)
	_, err := b.db.ExecContext(ctx, reportBare, fmt.Sprintf("working (%d)", n), reporterID(n))
	return err
}
