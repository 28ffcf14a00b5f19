package taskserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// trail keeps the audit records of a server.
type trail struct {
	mu      sync.Mutex
	text    bytes.Buffer
	records []map[string]any
}

// Write implements io.Writer: a record a line.
func (tr *trail) Write(line []byte) (int, error) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var record map[string]any
	if err := json.Unmarshal(line, &record); err != nil {
		return 0, err
	}
	if record["audit"] != nil {
		tr.records = append(tr.records, record)
	}
	return tr.text.Write(line)
}

func (tr *trail) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(tr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// of lists the records of a kind.
func (tr *trail) of(kind string) []map[string]any {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(tr.records), func(r map[string]any) bool { return r["audit"] != kind })
}

// TestAuditLife checks that the audit trail has one record for each creation and one for each end,
// with the owner (C-102, C-103).
func TestAuditLife(t *testing.T) {
	rules.Covers(t, "C-102", "C-103", "B-97", "B-98", "A-75")
	bubble.Test(t, func(t *testing.T) {
		tr := &trail{}
		graceful := mcptask.Policy{Task: mcptask.TaskOptional, TTL: time.Hour, Grace: time.Minute}
		s := newServer(t, Options{Logger: tr.logger()},
			numberTool("double", mcptask.Policy{Task: mcptask.TaskOptional}, double),
			numberTool("hang", mcptask.Policy{Task: mcptask.TaskOptional, TTL: time.Hour}, hang),
			numberTool("slow", graceful, hang),
			numberTool("confirm", mcptask.Policy{Task: mcptask.TaskOptional}, func(context.Context, *mcptask.Task, number) (number, error) { return number{}, mcptask.ErrDeclined }),
			numberTool("fails", mcptask.Policy{Task: mcptask.TaskOptional}, func(context.Context, *mcptask.Task, number) (number, error) {
				return number{}, mcptask.Errorf(4055, "no")
			}))
		want := map[string]string{}
		for tool, how := range map[string]string{"double": "result", "confirm": "tool_error", "fails": "error"} {
			id := begin(t, s, alice, tool).ID
			ended(t, s, alice, id)
			want[id] = how
		}
		id := begin(t, s, alice, "hang").ID
		if _, _, err := s.Cancel(t.Context(), alice, id); err != nil {
			t.Fatal(err)
		}
		want[id] = "cancelled"
		want[begin(t, s, alice, "hang").ID] = "expired"
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, err := s.Call(ctx, alice, "slow", json.RawMessage(`{"n":1}`), CallRequest{Mode: ModeGrace}); err == nil {
			t.Error("the caller who left has an answer")
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		created, over := tr.of("created"), tr.of("ended")
		if len(created) != len(want)+1 || len(over) != len(created) {
			t.Errorf("%d were created, %d ended", len(created), len(over))
		}
		for _, record := range append(created, over...) {
			if record["principal"] != "alice" || record["revision"] != mcptask.Revision20260728 || record["tool"] == "" || record["level"] != "INFO" {
				t.Errorf("%v", record)
			}
		}
		for _, record := range over {
			id, _ := record["task"].(string)
			if how, ok := want[id]; ok && record["outcome"] != how || !ok && record["outcome"] != "abandoned" {
				t.Errorf("%v, want %q", record, how)
			}
		}
	})
}

// TestAuditFlood checks that a flood of refused requests is written once a second for each account.
// So it shows and does not fill the log (C-101, C-104).
func TestAuditFlood(t *testing.T) {
	rules.Covers(t, "C-101", "C-104", "B-96", "B-99")
	bubble.Test(t, func(t *testing.T) {
		tr := &trail{}
		s := newServer(t, Options{Logger: tr.logger(), Limits: Limits{Tasks: 1}}, numberTool("hang", mcptask.Policy{Task: mcptask.TaskOptional}, hang))
		id := begin(t, s, alice, "hang").ID
		for second := range 3 {
			for range 1000 {
				if _, err := s.Get(t.Context(), bob, id); err == nil {
					t.Fatal("bob has it")
				}
				if _, err := call(s, alice, "hang", ModeTask); err == nil {
					t.Fatal("one too many")
				}
				_, _ = s.Get(t.Context(), bob, "made-up") // without a task, there is no stranger
			}
			if got := tr.of("stranger"); len(got) != second+1 {
				t.Errorf("%d records of a stranger in second %d", len(got), second)
			}
			if got := tr.of("limit"); len(got) != second+1 {
				t.Errorf("%d records of a limit in second %d", len(got), second)
			}
			time.Sleep(time.Second)
		}
		carol := Caller{Principal: "carol", Revision: mcptask.Revision20251125, Method: "tasks/get"}
		_, _ = s.Get(t.Context(), carol, id)
		last := tr.of("stranger")[3]
		if last["principal"] != "carol" || last["owner"] != "alice" || last["task"] != id || last["level"] != "WARN" || last["revision"] != mcptask.Revision20251125 || last["method"] != "tasks/get" {
			t.Errorf("%v", last)
		}
		limit := tr.of("limit")[0]
		if limit["limit"] != "tasks" || limit["max"] != 1.0 || limit["option"] != "Limits.Tasks" || limit["principal"] != "alice" || limit["tool"] != "hang" || limit["level"] != "WARN" {
			t.Errorf("%v", limit)
		}
	})
}

// TestAuditLimitOfTask checks that the record of a limit has the ID of its task, as far as a log
// may have it.
func TestAuditLimitOfTask(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		tr := &trail{}
		asks := func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			_, err := mcptask.Ask[approval](ctx, task, approvalInput, "one", "")
			return in, err
		}
		s := newServer(t, Options{Logger: tr.logger(), Limits: Limits{Result: 5, Questions: -1}}, numberTool("double", mcptask.Policy{Task: mcptask.TaskOptional}, double))
		curious := newServer(t, Options{Logger: tr.logger(), Limits: Limits{Questions: 1}}, numberTool("asks", mcptask.Policy{Task: mcptask.TaskOptional},
			func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
				go func() { _, _ = mcptask.Ask[approval](ctx, task, approvalInput, "two", "") }()
				return asks(ctx, task, in)
			}))
		nobody := Caller{Revision: mcptask.Revision20260728, CanAsk: alice.CanAsk}
		for _, caller := range []Caller{alice, nobody} {
			for tool, s := range map[string]*Backend{"double": s, "asks": curious} {
				id := begin(t, s, caller, tool).ID
				synctest.Wait()
				records := tr.of("limit")
				if last := records[len(records)-1]; last["task"] != taskstore.LogID(caller.Principal, id) || last["tool"] != tool || (last["task"] == id) != (caller.Principal != "") {
					t.Errorf("%s of %q: %v", id, caller.Principal, last)
				}
			}
		}
	})
}

// TestAuditSecrets checks that the content of a task stays out of the log, and so does the whole ID
// of an anonymous task, which is its only key.
func TestAuditSecrets(t *testing.T) {
	bubble.Test(t, auditSecrets)
}

func auditSecrets(t *testing.T) {
	tr := &trail{}
	s := newServer(t, Options{Logger: tr.logger()},
		mcptask.NewTool(mcptask.ToolSpec{Name: "echo", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
			func(_ context.Context, _ *mcptask.Task, in struct{ Secret string }) (string, error) {
				return in.Secret, nil
			}))
	for _, caller := range []Caller{alice, {Session: "session-secret", Revision: mcptask.Revision20251125}} {
		reply, err := s.Call(t.Context(), caller, "echo", json.RawMessage(`{"secret":"hush-hush"}`), CallRequest{Mode: ModeTask, IdempotencyKey: "a-key-of-sixteen-bytes"})
		if err != nil {
			t.Fatal(err)
		}
		id := reply.Task.ID
		ended(t, s, caller, id)
		synctest.Wait() // the record of the end follows it
		_, _ = s.Get(t.Context(), bob, id)
		_, _ = s.Get(t.Context(), Caller{Session: "other-secret"}, id)
		logged := tr.text.String()
		for _, secret := range []string{"hush-hush", "a-key-of-sixteen", "session-secret", "other-secret"} {
			if strings.Contains(logged, secret) {
				t.Errorf("%q is in the log", secret)
			}
		}
		if got, want := strings.Contains(logged, id), caller.Principal != ""; got != want || !strings.Contains(logged, id[:8]) {
			t.Errorf("the ID is in the log of %q: %v\n%s", caller.Principal, got, logged)
		}
	}
}

// TestAuditRefusedTool checks that the audit trail names the tool of a refused call, whatever the
// store returns beside the error.
func TestAuditRefusedTool(t *testing.T) {
	tr := &trail{}
	full := &tapStore{Store: taskstore.NewMemory(), tap: before(func(context.Context) error { return taskstore.ErrQuotaStored }, "Create")}
	s := newServer(t, Options{Logger: tr.logger(), Store: full}, numberTool("double", mcptask.Policy{Task: mcptask.TaskOptional}, double))
	_, err := s.Call(t.Context(), Caller{Principal: "alice"}, "double", json.RawMessage(`{"n":1}`), CallRequest{Mode: ModeTask})
	if limited := tr.of("limit"); err == nil || len(limited) != 1 || limited[0]["tool"] != "double" {
		t.Errorf("%v: %v", err, limited)
	}
}

// TestListLeft checks that a caller that leaves while its tasks are listed does not count as a
// fault of the store.
func TestListLeft(t *testing.T) {
	tr := &trail{}
	store := &tapStore{Store: taskstore.NewMemory(), tap: before(context.Context.Err, "List")}
	s := newServer(t, Options{Logger: tr.logger(), Store: store})
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, _, err := s.List(ctx, Caller{Principal: "alice"}, taskstore.Position{}); !errors.Is(err, context.Canceled) || tr.text.Len() > 0 {
		t.Errorf("%v: %s", err, tr.text.String())
	}
}

// TestDefaultLogger checks that the logger of a server without one has only warnings and errors, also with
// attributes.
func TestDefaultLogger(t *testing.T) {
	var text strings.Builder
	log := slog.New(warningHandler{slog.NewTextHandler(&text, nil)})
	for _, l := range []*slog.Logger{log, log.With("a", 1), log.WithGroup("g"), log.With("a", 1).WithGroup("g").With("b", 2)} {
		l.Info("quiet")
		l.Warn("loud")
	}
	if got := text.String(); strings.Contains(got, "quiet") || strings.Count(got, "loud") != 4 {
		t.Errorf("%s", got)
	}
}
