package sqlite

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable/durabletest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// childVariable makes the test binary a process that shares a file: its value is the role of the process and the file.
const childVariable = "MCPTASK_SQLITE_CHILD"

func TestMain(m *testing.M) {
	if role, path, ok := strings.Cut(os.Getenv(childVariable), " "); ok {
		if err := runChild(role, path); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Random programs are few, because a database is slow. -rapid.checks asks for more.
	if os.Getenv("RAPID_CHECKS") == "" {
		if err := flag.Set("rapid.checks", "20"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// sharedQuota is the quota of TestProcessesShareQuota.
var sharedQuota = taskstore.Quota{Server: taskstore.Usage{Stored: 60}}

// runChild plays the role of another process in a test. It writes the acknowledged writes of the store to its standard
// output.
func runChild(role, path string) (err error) {
	s, err := Open(path, Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ctx := context.Background()
	switch role {
	case "fill": // creates until the quota
		n := 0
		for ; ; n++ {
			if _, err := s.Create(ctx, durabletest.NewTask(10), sharedQuota); err != nil {
				fmt.Println(n)
				if errors.Is(err, taskstore.ErrQuotaStored) {
					return nil
				}
				return err
			}
		}
	case "answer": // raises each new version to the next, until a task is gone
		for c, err := range s.Changes(ctx) {
			switch {
			case err != nil:
				return err
			case c.Missed:
				fmt.Println("ready")
			case c.Version == 0:
				return nil
			case c.Version%2 == 1:
				r, err := s.Get(ctx, c.ID)
				if err == nil {
					_, err = s.Update(ctx, r, r, taskstore.Quota{})
				}
				if err != nil {
					return err
				}
			}
		}
		return errors.New("the feed has ended")
	case "work": // writes until it is killed
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for {
					r, err := s.Create(ctx, durabletest.NewTask(300), taskstore.Quota{})
					if err != nil {
						return
					}
					fmt.Println("created", r.ID)
					if _, err := s.Update(ctx, r, durabletest.Finish(r), taskstore.Quota{}); err != nil {
						return
					}
					fmt.Println("finished", r.ID)
				}
			})
		}
		group.Wait()
	case "hold": // has a task and a lease of an hour for each worker, until it is killed
		for _, worker := range heldWorkers {
			if err := holdTask(ctx, s, worker); err != nil {
				return err
			}
		}
		if err := findTask(ctx, s); err != nil {
			return err
		}
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	return nil
}

// child is another process.
type child struct {
	t     testing.TB
	cmd   *exec.Cmd
	lines *bufio.Scanner
	input io.Closer
}

func startChild(t testing.TB, role, path string) *child {
	t.Helper()
	c := &child{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0])}
	c.cmd.Env = append(os.Environ(), childVariable+"="+role+" "+path)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewScanner(io.Reader(out))
	if c.input, err = c.cmd.StdinPipe(); err != nil { // ends with the test
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// readLine returns the next line that the child has written, or "".
func (c *child) readLine() string {
	c.lines.Scan()
	return c.lines.Text()
}

// TestProcessesShareQuota checks that processes that create at once do not exceed a quota together.
func TestProcessesShareQuota(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	var children []*child
	for range 3 {
		children = append(children, startChild(t, "fill", path))
	}
	sum := 0
	for _, c := range children {
		var n int
		if _, err := fmt.Sscan(c.readLine(), &n); err != nil {
			t.Error(err)
		}
		if err := c.cmd.Wait(); err != nil {
			t.Error(err)
		}
		sum += n
	}
	if sum != sharedQuota.Server.Stored {
		t.Errorf("%d tasks were created", sum)
	}
	s := openStore(t, path)
	checkTally(t, s)
	if counts, err := s.CountUnfinished(t.Context()); err != nil || len(counts) != 1 || counts[0].Count != sum {
		t.Errorf("%+v, %v", counts, err)
	}
}

// TestProcessesHearEachOther checks that two processes have one feed: each version, in order, whoever wrote
// it.
func TestProcessesHearEachOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s := openStore(t, path)
	other := startChild(t, "answer", path)
	if line := other.readLine(); line != "ready" {
		t.Fatalf("the child says %q", line)
	}
	const rounds = 5
	var heard []int64
	for c, err := range s.Changes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Missed {
			if _, err := s.Create(t.Context(), durabletest.NewTask(10), taskstore.Quota{}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if heard = append(heard, c.Version); c.Version == 0 {
			break
		}
		if c.Version%2 == 1 {
			continue // the other's turn
		}
		r, err := s.Get(t.Context(), c.ID)
		switch {
		case err != nil || r.Version != c.Version:
			t.Fatalf("%+v: version %d, %v", c, r.Version, err)
		case c.Version < 2*rounds:
			_, err = s.Update(t.Context(), r, r, taskstore.Quota{})
		default:
			err = s.Delete(t.Context(), r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var want []int64
	for v := range int64(2 * rounds) {
		want = append(want, v+1)
	}
	if fmt.Sprint(heard) != fmt.Sprint(append(want, 0)) {
		t.Errorf("versions %v", heard)
	}
	if err := other.cmd.Wait(); err != nil {
		t.Errorf("%v: %q", err, other.readLine())
	}
}

// TestKill kills a process in the middle of its writes. The acknowledged writes are there.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	worker := startChild(t, "work", path)
	acknowledged := map[string]string{}
	for n := 0; worker.lines.Scan(); n++ {
		if n == 300 {
			if err := worker.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		if what, id, ok := strings.Cut(worker.lines.Text(), " "); ok && len(id) == len(durabletest.NewTask(0).ID) { // else the line was cut
			acknowledged[id] = what
		}
	}
	if err := worker.cmd.Wait(); err == nil {
		t.Error("the child ended by itself")
	}
	if len(acknowledged) < 100 {
		t.Errorf("only %d tasks", len(acknowledged))
	}
	s := openStore(t, path)
	for id, what := range acknowledged {
		r, err := s.Get(t.Context(), id)
		if err != nil || what == "finished" && (!r.Done() || len(r.Outcome.Result) != 300) {
			t.Errorf("%s was %s: %s, %v", id, what, r.Phase, err)
		}
	}
	checkTally(t, s)
	if _, err := s.Beat(t.Context(), "next", time.Minute, nil); err != nil {
		t.Error(err)
	}
}
