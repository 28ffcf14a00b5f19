package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
)

// TestStrayNotifications checks that the connections of a store do not keep notifications that come to
// them, because a pooler gave them a connection to the server that listens for another client.
func TestStrayNotifications(t *testing.T) {
	t.Parallel()
	pooled := pgtest.StartPooler(t, pgtest.Database(t), pgtest.TransactionMode)
	s := openStore(t, pooled, Options{})
	query(t, pooled, "LISTEN "+s.schema.channel) // on the only connection to the server
	s.notifier.send(backgroundTimeout)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, conn := range s.pool.AcquireAllIdle(t.Context()) {
		if n, err := conn.Conn().WaitForNotification(ended); err == nil {
			t.Errorf("a connection keeps %+v", n)
		}
		conn.Release()
	}
}

// TestOpenSeesPooler checks the mode that Open chooses behind a pooler.
func TestOpenSeesPooler(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	pooled := pgtest.StartPooler(t, dsn, pgtest.TransactionMode)
	for _, c := range []struct {
		dsn     string
		want    pgx.QueryExecMode
		listens bool
	}{
		{dsn, pgx.QueryExecModeCacheStatement, true},
		{pooled, pgx.QueryExecModeCacheDescribe, false},
		{pooled + " default_query_exec_mode=exec", pgx.QueryExecModeExec, false},
	} {
		s := openStore(t, c.dsn, Options{})
		if mode := s.pool.Config().ConnConfig.DefaultQueryExecMode; mode != c.want {
			t.Errorf("%s: %v instead of %v", c.dsn, mode, c.want)
		}
		if s.follower.listens != c.listens {
			t.Errorf("%s: it listens: %v", c.dsn, s.follower.listens)
		}
		create(t, s, newTask(c.want.String(), "a"))
	}
	_, err := Open(t.Context(), pooled+" lock_timeout=1000", Options{})
	if err == nil || !strings.Contains(err.Error(), "lock_timeout") || !strings.Contains(err.Error(), "ALTER ROLE") {
		t.Error(err)
	}
}
