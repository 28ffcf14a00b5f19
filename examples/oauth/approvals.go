package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/mcptaskgen/mcptaskgen/examples/oauth/releases"
)

// approvals keeps requests for approval. They are apart from the tasks: a task belongs to its requestor, and nobody else
// can answer it.
type approvals struct {
	db *sql.DB
}

// approvalsPoll is how long await waits until it looks again.
const approvalsPoll = time.Second

const approvalsSchema = `
CREATE TABLE IF NOT EXISTS approvals (
	id           TEXT PRIMARY KEY,
	requested_by TEXT NOT NULL,
	service      TEXT NOT NULL,
	version      TEXT NOT NULL,
	until        INTEGER NOT NULL, -- milliseconds
	decided_by   TEXT NOT NULL DEFAULT '',
	approved     INTEGER NOT NULL DEFAULT 0,
	reason       TEXT NOT NULL DEFAULT ''
)`

// openApprovals opens the file of the approvals, and makes it if there is none.
func openApprovals(ctx context.Context, file string) (*approvals, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)")
	if err == nil {
		_, err = db.ExecContext(ctx, approvalsSchema)
	}
	if err != nil {
		return nil, fmt.Errorf("the approvals in %s: %w", file, err)
	}
	return &approvals{db}, nil
}

// Close closes the file.
func (a *approvals) Close() error { return a.db.Close() }

// request opens a request, unless an earlier run of its task has.
func (a *approvals) request(ctx context.Context, r releases.Approval) error {
	_, err := a.db.ExecContext(ctx, `INSERT INTO approvals (id, requested_by, service, version, until) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		r.ID, r.RequestedBy, r.Release.Service, r.Release.Version, r.Until.UnixMilli())
	return err
}

// withdraw deletes a request that is still open.
func (a *approvals) withdraw(ctx context.Context, id string) error {
	_, err := a.db.ExecContext(ctx, `DELETE FROM approvals WHERE id = ? AND decided_by = ''`, id)
	return err
}

// await waits for the decision about a request. Another process may make it, so await looks into the table.
func (a *approvals) await(ctx context.Context, id string) (releases.Decision, error) {
	tick := time.NewTicker(approvalsPoll)
	defer tick.Stop()
	for {
		d, err := a.decision(ctx, id)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return d, errors.New("the request for approval is gone")
		case err == nil && d.By != "":
			return d, nil
		}
		select { // another error may pass, and is no reason to end what has waited for days
		case <-tick.C:
		case <-ctx.Done():
			return d, context.Cause(ctx)
		}
	}
}

// decision returns the decision about a request. By is empty if nobody has decided.
func (a *approvals) decision(ctx context.Context, id string) (d releases.Decision, err error) {
	row := a.db.QueryRowContext(ctx, `SELECT decided_by, approved, reason FROM approvals WHERE id = ?`, id)
	err = row.Scan(&d.By, &d.Approved, &d.Reason)
	return d, err
}

// open returns the open requests of all people but one: the oldest of each person, then the next, and so on. So nobody's many
// requests hide those of others.
func (a *approvals) open(ctx context.Context, but string) ([]releases.Approval, error) {
	rows, err := a.db.QueryContext(ctx, `SELECT id, requested_by, service, version, until FROM approvals
		WHERE decided_by = '' AND requested_by <> ? AND until > ?
		ORDER BY row_number() OVER (PARTITION BY requested_by ORDER BY rowid), rowid LIMIT 100`, but, time.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err has its error
	found := []releases.Approval{}
	for rows.Next() {
		var r releases.Approval
		var until int64
		if err := rows.Scan(&r.ID, &r.RequestedBy, &r.Release.Service, &r.Release.Version, &until); err != nil {
			return nil, err
		}
		r.Until = time.UnixMilli(until)
		found = append(found, r)
	}
	return found, rows.Err()
}

// decide stores the decision about a request. It is one statement, so that only one person decides, and never the one who
// asks.
func (a *approvals) decide(ctx context.Context, id string, d releases.Decision) error {
	result, err := a.db.ExecContext(ctx, `UPDATE approvals SET decided_by = ?, approved = ?, reason = ?
		WHERE id = ? AND decided_by = '' AND requested_by <> ? AND until > ?`, d.By, d.Approved, d.Reason, id, d.By, time.Now().UnixMilli())
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); n > 0 || err != nil {
		return err
	}
	var requestedBy, decidedBy string
	err = a.db.QueryRowContext(ctx, `SELECT requested_by, decided_by FROM approvals WHERE id = ?`, id).Scan(&requestedBy, &decidedBy)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("there is no request %q: list_approvals has those that are open", id)
	case err != nil:
		return err
	case requestedBy == d.By:
		return errors.New("this is a request of your own: another person must decide")
	case decidedBy != "":
		return fmt.Errorf("%s has decided already", decidedBy)
	}
	return errors.New("the request has expired")
}
