package taskserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

func TestOperator(t *testing.T) {
	var log bytes.Buffer
	seen := make(chan json.RawMessage, 10)
	ask := mcptask.NewTool(mcptask.ToolSpec{Name: "ask", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired}},
		func(ctx context.Context, task *mcptask.Task, in struct{ N int }) (string, error) {
			answer, err := mcptask.Ask[struct{ Yes bool }](ctx, task, mcptask.InputSpec{Name: "Yes", Schema: `{"type":"object","properties":{"Yes":{"type":"boolean"}}}`}, "sure", "Sure?")
			if err != nil {
				return "", err
			}
			data, err := json.Marshal([]any{in.N, answer.Yes})
			seen <- data
			return string(data), err
		})
	s, err := New(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, mcptask.Tools{Service: "S", Impl: t, Tools: []mcptask.Tool{ask}})
	if err != nil {
		t.Fatal(err)
	}
	owner := Caller{Principal: "alice", Revision: mcptask.Revision20260728, CanAsk: []string{"elicitation/create"}}
	reply, err := s.Backend().Call(t.Context(), owner, "ask", json.RawMessage(`{"N":7}`), CallRequest{Mode: ModeTask})
	if err != nil {
		t.Fatal(err)
	}
	id := reply.Task.ID
	asks := func(id string) {
		t.Helper()
		record, err := s.Backend().Get(t.Context(), owner, id)
		for err == nil && record.Phase != taskstore.PhaseInputRequired {
			record, err = s.Backend().Changed(t.Context(), owner, id, record.Version)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	asks(id)
	operator := s.Operator("olga")
	if err := operator.Answer(t.Context(), id, "sure", json.RawMessage(`{"action":"accept","content":{"Yes":1}}`)); err == nil {
		t.Error("an answer that does not fit was taken")
	}
	if err := operator.Answer(t.Context(), id, "other", json.RawMessage(`{"action":"decline"}`)); !errors.Is(err, ErrNotAsked) {
		t.Error(err)
	}
	if err := operator.Answer(t.Context(), id, "sure", json.RawMessage(`{"action":"accept","content":{"Yes":true}}`)); err != nil {
		t.Fatal(err)
	}
	if got := string(<-seen); got != "[7,true]" {
		t.Errorf("the handler has got %s", got)
	}
	if _, err := s.Backend().Await(t.Context(), owner, id); err != nil {
		t.Fatal(err)
	}
	if err := operator.Cancel(t.Context(), id); !errors.Is(err, ErrTaskEnded) {
		t.Error(err)
	}
	again, err := operator.RunAgain(t.Context(), id)
	if err != nil || again.ID == id || again.Principal != "alice" {
		t.Fatalf("%+v, %v", again, err)
	}
	asks(again.ID)
	if err := operator.Cancel(t.Context(), again.ID); err != nil {
		t.Fatal(err)
	}
	record, err := operator.Task(t.Context(), again.ID)
	if err != nil || !record.Done() || record.Outcome.Kind != taskstore.OutcomeCancelled {
		t.Fatalf("%+v, %v", record, err)
	}
	operator.Reveal(t.Context(), record, "arguments")
	for _, unknown := range []error{
		operator.Cancel(t.Context(), "nobody"), operator.Answer(t.Context(), "nobody", "k", nil),
		func() error { _, err := operator.RunAgain(t.Context(), "nobody"); return err }(),
	} {
		if !errors.Is(unknown, taskstore.ErrNoRecord) {
			t.Error(unknown)
		}
	}
	var told []string
	for _, m := range record.Timeline.Moments() {
		told = append(told, string(m.Kind)+" "+m.Text+" "+m.Operator)
	}
	got := strings.Join(told, "\n")
	if !strings.HasPrefix(got, "created again "+taskstore.LogID("", id)+" olga\nstarted ") || !strings.HasSuffix(got, "asked sure \nended cancelled olga") {
		t.Error(got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, action := range []string{"answer", `"run again"`, "cancel", "reveal"} {
		if !strings.Contains(log.String(), "audit=operator action="+action+" operator=olga") {
			t.Errorf("the audit trail lacks %s:\n%s", action, &log)
		}
	}
}

// TestRunAgainHasNoSession runs a principal's task again on a server whose sessions mark their tasks.
func TestRunAgainHasNoSession(t *testing.T) {
	tool := mcptask.NewTool(mcptask.ToolSpec{Name: "t", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired}},
		func(context.Context, *mcptask.Task, struct{}) (string, error) { return "", nil })
	s, err := New(Options{SessionKey: bytes.Repeat([]byte("k"), 32)}, mcptask.Tools{Service: "S", Impl: t, Tools: []mcptask.Tool{tool}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for owner, isMarked := range map[*Caller]bool{{Principal: "alice"}: false, {}: false, {Session: "of nobody"}: true} {
		owner.Revision = mcptask.Revision20251125
		reply, err := s.Backend().Call(t.Context(), *owner, "t", json.RawMessage(`{}`), CallRequest{Mode: ModeTask})
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.Operator("olga").RunAgain(t.Context(), reply.Task.ID)
		if err != nil {
			t.Fatal(err)
		}
		if mark := MarkOfTask(again.ID); mark != MarkOfTask(reply.Task.ID) || (mark != "") != isMarked {
			t.Errorf("%+v: the task has the mark %q, and the former one %q", owner, mark, MarkOfTask(reply.Task.ID))
		}
	}
}
