package sqlite

import (
	"errors"
	"iter"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable/durabletest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestDamagedTask checks that a task with damaged bytes is an error at each try, not only at the
// first one, and that the log has it once.
func TestDamagedTask(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	r := durabletest.NewTask(10)
	r.Inputs = []taskstore.Input{{Request: mcptask.Request{Key: "q"}, State: taskstore.InputOutstanding}}
	if _, err := openStore(t, path).Create(t.Context(), r, taskstore.Quota{}); err != nil {
		t.Fatal(err)
	}
	execute(t, openFile(t, path), "UPDATE inputs SET body = x'00'")
	var log strings.Builder
	s, err := Open(path, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}) // with an empty cache
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for range 3 {
		if got, err := s.Get(t.Context(), r.ID); !errors.Is(err, taskstore.ErrUnreadable) {
			t.Errorf("got a damaged task: %+v, %v", got, err)
		}
		if got, err := s.Lease(t.Context(), "w", time.Minute, []string{r.Tool}, 1); err != nil || len(got) > 0 {
			t.Errorf("leased a damaged task: %+v, %v", got, err)
		}
	}
	if n := strings.Count(log.String(), "stored task cannot be read"); n != 1 || !strings.Contains(log.String(), "its questions") {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}

// TestUnreadableStep checks that a damaged step is an error of Steps, which has its name, and of nothing else.
func TestUnreadableStep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s := openStore(t, path)
	r, err := s.Create(t.Context(), durabletest.NewTask(10), taskstore.Quota{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err = s.Update(t.Context(), r, r, taskstore.Quota{}, taskstore.Step{Name: "a"}, taskstore.Step{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	execute(t, openFile(t, path), "UPDATE step SET body = CAST(x'02' || substr(body, 2) AS BLOB) WHERE name = x'62'")
	if steps, err := s.Steps(t.Context(), r.ID); !errors.Is(err, taskstore.ErrUnreadable) || !strings.Contains(err.Error(), `step "b"`) {
		t.Errorf("%+v, %v", steps, err)
	}
	if r, err = s.Update(t.Context(), r, r, taskstore.Quota{}, taskstore.Step{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	if steps, err := s.Steps(t.Context(), r.ID); err != nil || len(steps) != 2 {
		t.Errorf("after it was replaced: %+v, %v", steps, err)
	}
}

// TestNewerNews checks that a feed goes on after news that a newer version has written, and that other
// processes can write.
func TestNewerNews(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s := openStore(t, path)
	next, stop := iter.Pull2(s.Changes(t.Context()))
	defer stop()
	want := func(what string, admits func(c taskstore.Change) bool) {
		t.Helper()
		for {
			c, err, ok := next()
			if err != nil || !ok {
				t.Fatalf("%s: the feed has ended: %v", what, err)
			}
			if admits(c) {
				return
			}
		}
	}
	missed := func(c taskstore.Change) bool { return c.Missed }
	want("the beginning", missed)
	execute(t, openFile(t, path), "INSERT INTO change (news) VALUES (x'02ff')")
	r := durabletest.NewTask(10)
	if _, err := s.Create(t.Context(), r, taskstore.Quota{}); err != nil {
		t.Fatal(err)
	}
	want("the newer news", missed)
	want("what comes after it", func(c taskstore.Change) bool { return c.ID == r.ID })
}

// TestListReadsNoBodies checks that a page of a list has neither arguments nor results: 50 tasks may have
// hundreds of megabytes of them.
func TestListReadsNoBodies(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"))
	r := durabletest.NewTask(10)
	r.Phase, r.Inputs = taskstore.PhaseDone, []taskstore.Input{{Request: mcptask.Request{Key: "q"}, State: taskstore.InputAnswered}}
	r.Outcome = &taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: []byte(`{}`)}
	if _, err := s.Create(t.Context(), r, taskstore.Quota{}); err != nil {
		t.Fatal(err)
	}
	page, err := s.List(t.Context(), r.Principal, taskstore.Position{}, 1)
	if err != nil || len(page) != 1 || page[0].Arguments != nil || page[0].Inputs != nil || page[0].Outcome.Result != nil {
		t.Errorf("listed %+v, %v", page, err)
	}
}

// TestEndedTasksTakeNoMemory checks that the store keeps nothing of a task that has ended, not even after it was read.
func TestEndedTasksTakeNoMemory(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"))
	for range 100 {
		r, err := s.Create(t.Context(), durabletest.NewTask(300), taskstore.Quota{})
		if err != nil {
			t.Fatal(err)
		}
		if tasks, _ := s.cache.Usage(); tasks != 1 {
			t.Fatalf("%d tasks", tasks)
		}
		if _, err := s.Update(t.Context(), r, durabletest.Finish(r), taskstore.Quota{}); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(t.Context(), r.ID); err != nil || !got.Done() {
			t.Fatalf("%+v, %v", got, err)
		}
		if tasks, bytes := s.cache.Usage(); tasks != 0 || bytes != 0 {
			t.Fatalf("%d tasks, %d bytes", tasks, bytes)
		}
	}
}
