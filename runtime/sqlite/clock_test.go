package sqlite

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable/durabletest"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/steady"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// machine is a machine with a clock that jumps, and with one that does not.
type machine struct {
	wall    time.Time
	elapsed time.Duration
}

// pass lets time pass, in steps in which a process looks for expired tasks.
func (m *machine) pass(t *testing.T, s *Store, d time.Duration) (gone []taskstore.Record) {
	t.Helper()
	for ; d > 0; d -= time.Second {
		m.wall, m.elapsed = m.wall.Add(time.Second), m.elapsed+time.Second
		expired, err := s.Expire(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		gone = append(gone, expired...)
	}
	return gone
}

// open opens a store whose process begins now.
func (m *machine) open(t *testing.T, path string) *Store {
	t.Helper()
	s := openStore(t, path)
	s.now = func() time.Time { return m.wall }
	began := m.elapsed
	if err := s.startClock(t.Context(), steady.NewReader(func() (time.Time, time.Duration) { return m.wall, m.elapsed - began })); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestClockJump checks that a clock of the machine that is 25 hours ahead for two seconds deletes no task and
// takes none from its worker, in a process that runs, nor in one that starts meanwhile. A clock that stays
// ahead does.
func TestClockJump(t *testing.T) {
	const jump = 25 * time.Hour
	path := filepath.Join(t.TempDir(), "tasks.db")
	m := &machine{wall: time.Now().Round(0)}
	s := m.open(t, path)
	task := durabletest.NewTask(10)
	task.CreatedAt, task.ExpiresAt, task.Claim.Worker = m.wall, m.wall.Add(24*time.Hour), "w1"
	ended := task
	ended.ID, ended.ExpiresAt = "ended", m.wall
	for _, r := range []taskstore.Record{task, ended} {
		if _, err := s.Create(t.Context(), r, taskstore.Quota{}); err != nil {
			t.Fatal(err)
		}
	}
	if gone := m.pass(t, s, time.Second); len(gone) != 1 || gone[0].ID != "ended" {
		t.Fatalf("%d tasks expired in time", len(gone))
	}
	beat := func() {
		t.Helper()
		if _, err := s.Beat(t.Context(), "w1", 30*time.Second, nil); err != nil {
			t.Fatal(err)
		}
	}
	beat()
	wantKept := func(s *Store, what string) {
		t.Helper()
		if gone := m.pass(t, s, 2*time.Second); len(gone) > 0 {
			t.Errorf("%s: %d tasks have expired", what, len(gone))
		}
		if _, err := s.Get(t.Context(), "ended"); !errors.Is(err, taskstore.ErrRecordExpired) {
			t.Errorf("%s: the tombstone has gone: %v", what, err)
		}
		if _, err := s.Get(t.Context(), task.ID); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := s.EndSession(t.Context(), "p", "a", m.wall.Add(time.Hour), 10); err != nil {
		t.Fatal(err)
	}
	m.wall = m.wall.Add(jump)
	wantKept(s, "in the jump")
	if _, err := s.EndSession(t.Context(), "p", "b", m.wall.Add(time.Hour), 10); err != nil { // which forgets old ones
		t.Fatal(err)
	}
	if ended, err := s.HasEnded(t.Context(), "p", "a"); !ended || err != nil {
		t.Errorf("an ended session was forgotten in the jump: %v", err)
	}
	if taken, err := s.Lease(t.Context(), "w2", time.Minute, []string{task.Tool}, 1); err != nil || len(taken) > 0 {
		t.Errorf("%d tasks were taken from a live worker: %v", len(taken), err)
	}
	wantKept(m.open(t, path), "in a process that has started in the jump")
	m.wall = m.wall.Add(-jump)
	wantKept(s, "after the jump")
	beat()

	m.wall = m.wall.Add(jump)
	if gone := m.pass(t, s, steady.Hold); len(gone) > 0 {
		t.Errorf("%d tasks have expired too soon", len(gone))
	}
	if gone := m.pass(t, s, 2*time.Second); len(gone) != 1 {
		t.Errorf("%d tasks have expired by a clock that has stayed ahead", len(gone))
	}
}

// TestClockAfterPause checks that a process that starts after a long pause deletes expired records, and that it need
// not wait if the file knows the time.
func TestClockAfterPause(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	m := &machine{wall: time.Now().Round(0)}
	task := durabletest.NewTask(10)
	task.CreatedAt, task.ExpiresAt = m.wall, m.wall.Add(time.Hour)
	if _, err := m.open(t, path).Create(t.Context(), task, taskstore.Quota{}); err != nil {
		t.Fatal(err)
	}
	m.wall = m.wall.Add(2 * time.Hour)
	s := m.open(t, path)
	if _, err := s.Beat(t.Context(), "w", time.Minute, nil); err != nil {
		t.Fatal(err)
	}
	if gone := m.pass(t, m.open(t, path), time.Second); len(gone) != 1 {
		t.Errorf("%d tasks have expired by a clock that another process confirms", len(gone))
	}
	task.ID = "another"
	if _, err := s.Create(t.Context(), task, taskstore.Quota{}); err != nil {
		t.Fatal(err)
	}
	if gone := m.pass(t, s, steady.Hold+2*time.Second); len(gone) != 1 {
		t.Errorf("%d tasks have expired after a while", len(gone))
	}
}
