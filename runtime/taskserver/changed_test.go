package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// echo takes any arguments and returns them.
func echo(_ context.Context, _ *mcptask.Task, in map[string]any) (map[string]any, error) {
	return in, nil
}

// panicking are arguments whose decoding panics, unless there are none.
type panicking struct{ N *panicking }

func (*panicking) UnmarshalJSON(data []byte) error {
	if string(data) != "{}" {
		panic("in UnmarshalJSON")
	}
	return nil
}

// TestChangedArguments declares a tool anew while its tasks are stored: one that has run, and one that has waited.
func TestChangedArguments(t *testing.T) {
	type typed struct {
		N string `json:"n"`
	}
	tool := func(properties string, change mcptask.ChangePolicy) mcptask.ToolSpec {
		p := restart
		p.OnChange = change
		return mcptask.ToolSpec{Name: "t", InputSchema: `{"type":"object",` + properties + `}`, Policy: p}
	}
	const missing = `"properties":{"n":{},"codec":{"type":"string"}},"required":["codec"]`
	const changed = `error started under another declaration: `
	const reason = ` (code -32603) {"reason":"declaration_changed"}`
	for name, c := range map[string]struct {
		tool mcptask.Tool
		want string
	}{
		"same":     {mcptask.NewTool(tool(`"properties":{"n":{"type":"integer"}}`, ""), echo), `{"n":21}`},
		"default":  {mcptask.NewTool(tool(`"properties":{"n":{},"codec":{"default":"av1"}}`, ""), echo), `{"codec":"av1","n":21}`},
		"required": {mcptask.NewTool(tool(missing, ""), echo), changed + `missing property "codec"` + reason},
		"retyped":  {mcptask.NewTool(tool(`"properties":{"n":{"type":"string"}}`, ""), echo), changed + `n: got number, want string` + reason},
		"enum":     {mcptask.NewTool(tool(`"properties":{"n":{"enum":[1]}}`, mcptask.FailOnChange), echo), changed + `n: got 21, want 1` + reason},
		"decoded":  {mcptask.NewTool(tool(`"properties":{"n":{}}`, ""), func(context.Context, *mcptask.Task, typed) (string, error) { return "", nil }), changed + `n: got number, want string` + reason},
		"run":      {mcptask.NewTool(tool(missing, mcptask.RunOnChange), echo), `{"n":21}`},
		"no run": {mcptask.NewTool(tool(missing, mcptask.RunOnChange), func(context.Context, *mcptask.Task, typed) (string, error) { return "", nil }),
			changed + `n: got number, want string` + reason},
		"bare": {mcptask.NewRawTool(tool(missing, ""), func(_ context.Context, params json.RawMessage) (json.RawMessage, error) { return params, nil }),
			changed + `missing property "codec"` + reason},
		"panics": {mcptask.NewTool(tool(`"properties":{"n":{}}`, ""), func(context.Context, *mcptask.Task, panicking) (string, error) { return "", nil }), "error internal error (code -32603) "},
		"asks first": {mcptask.NewTool(func() mcptask.ToolSpec {
			spec := tool(missing, "")
			spec.Questions = []mcptask.InputSpec{approvalInput}
			return spec
		}(), echo), changed + `missing property "codec"` + reason},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			store := taskstore.NewMemory()
			first := newServer(t, Options{Store: store, Concurrency: 1}, numberTool("t", restart, hang))
			ids := []string{begin(t, first, alice, "t").ID, begin(t, first, alice, "t").ID}
			synctest.Wait()
			if err := first.server.Close(); err != nil {
				t.Fatal(err)
			}
			second := newServer(t, Options{Store: store, Logger: (&logged{}).logger()}, c.tool)
			for i, id := range ids {
				r := ended(t, second, alice, id)
				if got := outcomeText(r.Outcome); r.Attempt != 2-i || got != c.want && !strings.HasSuffix(got, `"structuredContent":`+c.want+`}`) {
					t.Errorf("attempt %d: %s, want %s", r.Attempt, got, c.want)
				}
				if isChanged := strings.HasPrefix(c.want, changed); r.Outcome.Error != nil && errors.Is(r.Outcome.Error, mcptask.ErrChanged) != isChanged {
					t.Errorf("%v is ErrChanged: %v", r.Outcome.Error, !isChanged)
				}
			}
		})
	}
}

// TestChangedForm declares a question anew while it is open, or after it was answered and before the run has gone on.
func TestChangedForm(t *testing.T) {
	rules.Covers(t, "E-42")
	const (
		form    = `{"type":"object","properties":{"approve":{"type":"boolean","description":"yes or no"}},"required":["approve"]}`
		worded  = `{"required":["approve"],"type":"object","properties":{"approve":{"default":false,"type":"boolean"}}}`
		more    = `{"type":"object","properties":{"approve":{"type":"boolean"},"note":{"type":"string"}},"required":["approve"]}`
		paid    = `{"type":"object","properties":{"paid":{"type":"boolean"},"approve":{"type":"boolean"}},"required":["approve","paid"]}`
		retyped = `{"type":"object","properties":{"approve":{"type":"string","enum":["yes","no"]}},"required":["approve"]}`
		sorted  = `{"properties":{"approve":{"enum":["yes","no"],"type":"string"}},"required":["approve"],"type":"object"}`

		plain = "Ship it?"
		again = "The form has changed since it was answered. Ship it?"
		both  = `{"action":"accept","content":{"approve":true,"paid":true}}`
		word  = `{"action":"accept","content":{"approve":"yes"}}`
		late  = "ship"
		anew  = "ship~form2"
	)
	type response struct{ key, answer string }
	for name, c := range map[string]struct {
		form     string
		answered string // before the change
		asked    string // the key of the open question after it, or ""
		message  string
		schema   string // of the open question, if it differs from form
		then     []response
		want     string
	}{
		"open, worded anew": {form: worded, asked: late, message: plain, schema: form, then: []response{{late, yes}}, want: `{"approve":true}`},
		"open":              {form: more, asked: anew, message: plain, then: []response{{anew, no}}, want: `{"approve":false}`},
		"open, late fits":   {form: more, asked: anew, message: plain, then: []response{{late, yes}}, want: `{"approve":true}`},
		"open, late no":     {form: more, asked: anew, message: plain, then: []response{{late, `{"action":"decline"}`}}, want: "declined"},
		"open, late shut":   {form: more, asked: anew, message: plain, then: []response{{late, `{"action":"cancel"}`}, {anew, yes}}, want: `{"approve":true}`},
		"open, late misfit": {form: paid, asked: anew, message: plain, then: []response{{late, yes}, {anew, both}}, want: `{"approve":true,"paid":true}`},
		"open, old misfit":  {form: paid, asked: anew, message: plain, then: []response{{anew, yes}, {anew, both}}, want: `{"approve":true,"paid":true}`},
		"answered, fits":    {form: more, answered: yes, want: `{"approve":true}`},
		"answered, no":      {form: retyped, answered: `{"action":"decline"}`, want: "declined"},
		"answered, misfit":  {form: paid, answered: yes, asked: anew, message: again, schema: `{"properties":{"paid":{"type":"boolean"},"approve":{"default":true,"type":"boolean"}},"required":["approve","paid"],"type":"object"}`, then: []response{{anew, both}}, want: `{"approve":true,"paid":true}`},
		"answered, retyped": {form: retyped, answered: yes, asked: anew, message: again, schema: sorted, then: []response{{late, word}, {anew, word}}, want: `{"approve":"yes"}`},
	} {
		for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
			for _, isUpfront := range []bool{false, true} {
				bubble.Run(t, strings.Join([]string{name, revision, map[bool]string{true: "before"}[isUpfront]}, " "), func(t *testing.T) {
					asker, prefix := alice, ""
					asker.Revision = revision
					call := CallRequest{Mode: ModeTask}
					if isUpfront {
						prefix, call.Later = upfrontKeyPrefix, true
					}
					respond := func(s *Backend, id string, a response) {
						t.Helper()
						var err error
						if revision == mcptask.Revision20251125 {
							err = s.Respond(t.Context(), asker, id, prefix+a.key, json.RawMessage(a.answer), nil)
						} else {
							err = answer(t, s, asker, id, prefix+a.key, a.answer)
						}
						isOldForm := c.form == paid && a == response{anew, yes} // sessions have no way to refuse it
						if (err != nil) != (isOldForm && revision == mcptask.Revision20260728) {
							t.Error(err)
						}
						synctest.Wait()
					}
					service := func(schema string, held chan struct{}) mcptask.Tool {
						input := mcptask.InputSpec{Name: "ship", Message: plain, Schema: schema}
						tool := mcptask.ToolSpec{Name: "t", InputSchema: numberSchema, Policy: restart}
						if isUpfront {
							tool.Questions = []mcptask.InputSpec{input}
						}
						return mcptask.NewTool(tool, func(ctx context.Context, task *mcptask.Task, _ number) (got map[string]any, err error) {
							if isUpfront {
								got, err = mcptask.Asked[map[string]any](task, 0)
							} else {
								got, err = mcptask.Ask[map[string]any](ctx, task, input, "ship", "")
							}
							if held != nil {
								<-ctx.Done()
								return nil, ctx.Err()
							}
							return got, err
						})
					}
					store := taskstore.NewMemory()
					first := newServer(t, Options{Store: store}, service(form, make(chan struct{})))
					reply, err := first.Call(t.Context(), asker, "t", json.RawMessage(`{"n":21}`), call)
					if err != nil {
						t.Fatal(err)
					}
					id := reply.Task.ID
					asks(t, first, asker, id)
					if c.answered != "" {
						respond(first, id, response{"ship", c.answered})
						if isUpfront && strings.Contains(c.answered, "decline") {
							return // the task has ended
						}
					}
					if err := first.server.Close(); err != nil {
						t.Fatal(err)
					}
					second := newServer(t, Options{Store: store}, service(c.form, nil))
					synctest.Wait()
					r, err := second.Get(t.Context(), asker, id)
					if err != nil {
						t.Fatal(err)
					}
					if open := r.Outstanding(); c.asked != "" {
						schema := c.form
						if c.schema != "" {
							schema = c.schema
						}
						if len(open) != 1 || open[0].Key != prefix+c.asked || string(open[0].Schema) != schema {
							t.Fatalf("asked: %+v", open)
						}
						q, err := mcptask.NewQuestion(id, "", spec.Elicit, open[0].Params)
						if err != nil || q.Message != c.message || string(q.Schema) != schema || q.Input != "ship" {
							t.Errorf("%+v, %v", q, err)
						}
					} else if len(open) > 0 {
						t.Fatalf("asked: %+v", open)
					}
					for i, a := range c.then {
						if r, err := second.Get(t.Context(), asker, id); err != nil || r.Done() {
							t.Errorf("before answer %d: %s, %v", i, outcomeText(r.Outcome), err)
						}
						respond(second, id, a)
					}
					if got := outcomeText(ended(t, second, asker, id).Outcome); !strings.Contains(got, c.want) {
						t.Errorf("%s, want %s", got, c.want)
					}
				})
			}
		}
	}
}

// TestFormAgain changes a form again and again: while its question is open, and back to what it was when it was answered.
func TestFormAgain(t *testing.T) {
	form := func(kind string) string {
		return `{"type":"object","properties":{"approve":{"type":"` + kind + `"}},"required":["approve"]}`
	}
	const optional = `{"type":"object","properties":{"approve":{"type":"boolean"},"note":{"type":"string"}}}`
	type version struct{ schema, asked, answer string }
	for name, versions := range map[string][]version{
		"back":           {{form("boolean"), "ship", yes}, {form("string"), "ship~form2", ""}, {form("integer"), "ship~form3", ""}, {optional, "", ""}},
		"back and forth": {{form("boolean"), "ship", yes}, {form("string"), "ship~form2", ""}, {form("boolean"), "", ""}, {form("string"), "ship~form3", ""}, {optional, "", ""}},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			store := taskstore.NewMemory()
			var id string
			for i, c := range versions {
				s := newServer(t, Options{Store: store}, mcptask.NewTool(mcptask.ToolSpec{Name: "t", InputSchema: numberSchema, Policy: restart},
					func(ctx context.Context, task *mcptask.Task, _ number) (string, error) {
						a, err := mcptask.Ask[map[string]any](ctx, task, mcptask.InputSpec{Name: "ship", Schema: c.schema}, "ship", "")
						if i < len(versions)-1 && err == nil {
							<-ctx.Done()
							return "", ctx.Err()
						}
						text, _ := json.Marshal(a)
						return string(text), err
					}))
				if i == 0 {
					id = begin(t, s, alice, "t").ID
				}
				synctest.Wait()
				r, err := s.Get(t.Context(), alice, id)
				if err != nil {
					t.Fatal(err)
				}
				if open := r.Outstanding(); c.asked == "" && len(open) > 0 || c.asked != "" && (len(open) != 1 || open[0].Key != c.asked) {
					t.Errorf("%d: %+v", i, open)
				}
				if isLast := i == len(versions)-1; isLast != strings.Contains(outcomeText(r.Outcome), `{\"approve\":true}`) {
					t.Errorf("%d: %s", i, outcomeText(r.Outcome))
				}
				if c.answer != "" {
					if err := answer(t, s, alice, id, c.asked, c.answer); err != nil {
						t.Error(err)
					}
					synctest.Wait()
				}
				if err := s.server.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestAddDefaults checks which answers become defaults of a form.
func TestAddDefaults(t *testing.T) {
	const form, given = `{"properties":{"b":{"type":"string"},"a":{"type":"integer"}},"required":["a"],"type":"object"}`, `{"a":1,"b":"x","c":true}`
	const open, secret = `{"properties":{"b":{"type":"string"}},"type":"object"}`, `{"properties":{"b":{"type":"string","writeOnly":true}},"type":"object"}`
	for _, c := range []struct{ schema, content, former, want string }{
		{form, given, form, `{"properties":{"b":{"default":"x","type":"string"},"a":{"default":1,"type":"integer"}},"required":["a"],"type":"object"}`},
		{form, `{"a":"1","b":null}`, form, form},
		{form, `[]`, form, form},
		{secret, given, form, secret},
		{open, given, secret, open},
		{open, given, `{"properties":5}`, `{"properties":{"b":{"default":"x","type":"string"}},"type":"object"}`},
		{`{"properties":{"b":true},"type":"object"}`, given, form, `{"properties":{"b":true},"type":"object"}`},
		{`{"properties":{"b":null},"type":"object"}`, given, form, `{"properties":{"b":null},"type":"object"}`},
		{`{"type":"object"}`, given, form, `{"type":"object"}`},
		{`true`, given, form, `true`},
	} {
		if got := addDefaults(json.RawMessage(c.schema), json.RawMessage(c.content), json.RawMessage(c.former)); string(got) != c.want {
			t.Errorf("%s with %s: %s, want %s", c.schema, c.content, got, c.want)
		}
	}
}

// TestFormBesideQuestions checks that a task does not take other questions for forms of one: a later question of its step,
// which was answered after the handler had withdrawn the first, or that of a step with the name of a form.
func TestFormBesideQuestions(t *testing.T) {
	const more = `{"type":"object","properties":{"approve":{"type":"boolean"},"note":{"type":"string"}}}`
	for name, c := range map[string]struct {
		first  string // its question is withdrawn after a minute, if it is not answered; the step "ship" asks then
		waits  bool   // whether that minute passes
		answer int    // the question that is answered before the restart
		want   string // the questions after it
	}{
		"a later one":               {"ship", true, 1, "ship superseded, ship#2 answered, "},
		"one named as a form":       {"ship~form2", false, 0, "ship~-form2 answered, ship superseded, ship~form2 outstanding, "},
		"one named as a form, late": {"ship~form", true, 0, "ship~-form superseded, ship outstanding, ship~-form#2 outstanding, "},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			store := taskstore.NewMemory()
			var id string
			for i, schema := range []string{approvalInput.Schema, more} {
				s := newServer(t, Options{Store: store}, mcptask.NewTool(mcptask.ToolSpec{Name: "t", InputSchema: numberSchema, Policy: restart},
					func(ctx context.Context, task *mcptask.Task, _ number) (string, error) {
						input := mcptask.InputSpec{Name: "ship", Schema: schema}
						brief, cancel := context.WithTimeout(ctx, time.Minute)
						defer cancel()
						_, err := mcptask.Ask[map[string]any](brief, task, input, c.first, "")
						if err != nil || c.first != "ship" {
							_, err = mcptask.Ask[map[string]any](ctx, task, input, "ship", "")
						}
						if i == 0 {
							<-ctx.Done()
						}
						return "", errors.Join(err, ctx.Err())
					}))
				if i == 0 {
					if id = begin(t, s, alice, "t").ID; c.waits {
						time.Sleep(2 * time.Minute)
					}
					asked := asks(t, s, alice, id)
					if err := answer(t, s, alice, id, asked.Inputs[c.answer].Key, yes); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				r, err := s.Get(t.Context(), alice, id)
				got := ""
				for _, in := range r.Inputs {
					got += fmt.Sprint(in.Key, " ", in.State, ", ")
				}
				if err != nil || i == 1 && got != c.want {
					t.Errorf("%s, %v", got, err)
				}
				if err := s.server.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestNextVersion runs a server of the next version beside one of this version, which has a free slot for the task that
// its declaration refuses.
func TestNextVersion(t *testing.T) {
	release := make(chan struct{})
	wait := func(ctx context.Context, _ *mcptask.Task, in map[string]any) (map[string]any, error) {
		select {
		case <-release:
			return in, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	version := func(properties string) mcptask.Tool {
		return mcptask.NewTool(mcptask.ToolSpec{
			Name: "t", InputSchema: `{"type":"object","properties":{` + properties + `},"additionalProperties":false}`, Policy: restart,
		}, wait)
	}
	for name, goesOn := range map[string]bool{"the next version has a slot again": true, "the next version is gone": false} {
		bubble.Run(t, name, func(t *testing.T) {
			release = make(chan struct{})
			store := taskstore.NewMemory()
			next := newServer(t, Options{Store: store, Concurrency: 1}, version(`"n":{},"title":{}`))
			var ids []string
			for range 2 {
				reply, err := next.Call(t.Context(), alice, "t", json.RawMessage(`{"n":1,"title":"new"}`), CallRequest{Mode: ModeTask})
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, reply.Task.ID)
			}
			time.Sleep(time.Minute)
			var log logged
			this := newServer(t, Options{Store: store, Logger: log.logger()}, version(`"n":{}`)) // a process of the old version has started again
			time.Sleep(time.Minute)
			r, err := this.Get(t.Context(), alice, ids[1])
			if err != nil || r.Attempt != 0 {
				t.Fatalf("attempt %d, %v, want a task that waits for the next version", r.Attempt, err)
			}
			if this.ShowPlace(&r); !strings.HasPrefix(r.StatusMessage, "Left to other servers until 2000-01-01T00:1") || strings.Contains(log.String(), "tasks wait for a free slot") {
				t.Errorf("%q, %s", r.StatusMessage, &log)
			}
			want := `"title":"new"`
			if goesOn {
				close(release)
			} else if err := next.server.Close(); err != nil {
				t.Fatal(err)
			} else {
				want = "started under another declaration: "
			}
			if got := outcomeText(ended(t, this, alice, ids[1]).Outcome); !strings.Contains(got, want) {
				t.Errorf("%s, want %s", got, want)
			}
			if strings.Contains(log.String(), "a stored task ends") == goesOn {
				t.Errorf("%s", &log)
			}
		})
	}
}

// TestLeftAgain checks that a task is left to others for as long again if it runs elsewhere meanwhile and loses that run.
func TestLeftAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		release := make(chan struct{}, 1)
		version := func(properties string) mcptask.Tool {
			schema := `{"type":"object","properties":{` + properties + `},"additionalProperties":false}`
			return mcptask.NewTool(mcptask.ToolSpec{Name: "t", InputSchema: schema, Policy: restart}, func(ctx context.Context, _ *mcptask.Task, in map[string]any) (map[string]any, error) {
				select {
				case <-release:
				case <-ctx.Done():
				}
				return in, ctx.Err()
			})
		}
		store, quiet := taskstore.NewMemory(), (&logged{}).logger()
		newServer(t, Options{Store: store}, numberTool("other", restart, hang)) // it lives to the end
		next := newServer(t, Options{Store: store, Logger: quiet, Concurrency: 1}, version(`"n":{},"title":{}`))
		this := newServer(t, Options{Store: store, Logger: quiet}, version(`"n":{}`))
		var id string
		for range 2 { // the second one waits, and is seen by both
			reply, err := next.Call(t.Context(), alice, "t", json.RawMessage(`{"n":1,"title":"new"}`), CallRequest{Mode: ModeTask})
			if err != nil {
				t.Fatal(err)
			}
			id = reply.Task.ID
		}
		time.Sleep(time.Minute)
		release <- struct{}{}
		time.Sleep(2 * misfitPatience)
		if err := next.server.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(misfitPatience / 2)
		if r, err := this.Get(t.Context(), alice, id); err != nil || r.Done() || r.Attempt != 1 {
			t.Errorf("attempt %d: %s, %v", r.Attempt, outcomeText(r.Outcome), err)
		}
		if got := outcomeText(ended(t, this, alice, id).Outcome); !strings.Contains(got, "started under another declaration") {
			t.Error(got)
		}
	})
}
