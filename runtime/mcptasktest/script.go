package mcptasktest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// The kinds of questions. They are methods, except kindURL and kindAny.
const (
	kindForm  = "elicitation/create"
	kindURL   = taskserver.CanAskURL
	kindModel = "sampling/createMessage"
	kindRoots = "roots/list"
	kindAny   = ""
)

// Script is the scripted answer to one question of a handler, or the stored value of a step. Create
// one with Accept, Decline or Dismiss for a generated question, AcceptURL, DeclineURL or DismissURL
// for AskURL, Sample, SampleText or DeclineSample for Sample, Roots for Roots, CannotAsk for any of
// them, and Stored for a step.
type Script struct {
	step, kind string
	input      string // the name of a form's type
	code       string // the Go expression that makes this script
	response   func() (json.RawMessage, error)
	isStored   bool // response returns the value of a step
}

// Accept answers the question of a step.
func Accept[T any](step string, answer T) Script {
	s := newFormScript[T](step, func() (json.RawMessage, error) {
		return json.Marshal(map[string]any{"action": "accept", "content": answer})
	})
	s.code = fmt.Sprintf("mcptasktest.Accept(%q, %T{…})", step, answer)
	return s
}

// Decline refuses to answer. The handler gets mcptask.ErrDeclined.
func Decline[T any](step string) Script {
	s := newFormScript[T](step, respond(`{"action":"decline"}`))
	s.code = fmt.Sprintf("mcptasktest.Decline[%v](%q)", reflect.TypeFor[T](), step)
	return s
}

// Dismiss closes the question. The handler gets mcptask.ErrDismissed.
func Dismiss[T any](step string) Script {
	s := newFormScript[T](step, respond(`{"action":"cancel"}`))
	s.code = fmt.Sprintf("mcptasktest.Dismiss[%v](%q)", reflect.TypeFor[T](), step)
	return s
}

func newFormScript[T any](step string, response func() (json.RawMessage, error)) Script {
	return Script{step: step, kind: kindForm, input: reflect.TypeFor[T]().Name(), response: response}
}

// AcceptURL agrees to open the page that task.AskURL names at a step.
func AcceptURL(step string) Script {
	return newScript("AcceptURL", kindURL, step, respond(`{"action":"accept"}`))
}

// DeclineURL refuses to open the page. The handler gets mcptask.ErrDeclined.
func DeclineURL(step string) Script {
	return newScript("DeclineURL", kindURL, step, respond(`{"action":"decline"}`))
}

// DismissURL closes the question about the page. The handler gets mcptask.ErrDismissed.
func DismissURL(step string) Script {
	return newScript("DismissURL", kindURL, step, respond(`{"action":"cancel"}`))
}

// Sample is the model's answer to task.Sample at a step. An empty Role means "assistant", and an
// empty Model means "mcptasktest".
func Sample(step string, result mcptask.SampleResult) Script {
	if result.Role == "" {
		result.Role = "assistant"
	}
	if result.Model == "" {
		result.Model = "mcptasktest"
	}
	s := newScript("Sample", kindModel, step, func() (json.RawMessage, error) { return json.Marshal(result) })
	s.code = fmt.Sprintf("mcptasktest.Sample(%q, mcptask.SampleResult{…})", step)
	return s
}

// SampleText is Sample with an answer of text.
func SampleText(step, text string) Script {
	s := Sample(step, mcptask.SampleResult{Content: []mcptask.Content{mcptask.TextContent(text)}})
	s.code = fmt.Sprintf("mcptasktest.SampleText(%q, …)", step)
	return s
}

// DeclineSample refuses to ask the model. The handler gets mcptask.ErrDeclined.
func DeclineSample(step string) Script {
	return newScript("DeclineSample", kindModel, step, func() (json.RawMessage, error) { return nil, mcptask.ErrDeclined })
}

// Roots are the places that task.Roots returns at a step.
func Roots(step string, roots ...mcptask.Root) Script {
	return newScript("Roots", kindRoots, step, func() (json.RawMessage, error) {
		return json.Marshal(map[string]any{"roots": append([]mcptask.Root{}, roots...)})
	})
}

// CannotAsk stands for a client that cannot be asked, whatever the handler asks at a step. The
// handler gets mcptask.ErrCannotAsk.
func CannotAsk(step string) Script {
	return newScript("CannotAsk", kindAny, step, func() (json.RawMessage, error) { return nil, mcptask.ErrCannotAsk })
}

// Stored says that an earlier run of the task has stored a value: as the result of mcptask.Step, which does not call its
// function then, or with mcptask.Save. The handler's task.Attempt is 2.
func Stored[T any](step string, value T) Script {
	return Script{step: step, isStored: true, code: fmt.Sprintf("mcptasktest.Stored(%q, …)", step), response: func() (json.RawMessage, error) {
		return json.Marshal(value)
	}}
}

func newScript(function, kind, step string, response func() (json.RawMessage, error)) Script {
	return Script{step: step, kind: kind, code: fmt.Sprintf("mcptasktest.%s(%q)", function, step), response: response}
}

func respond(response string) func() (json.RawMessage, error) {
	return func() (json.RawMessage, error) { return json.RawMessage(response), nil }
}

// fits reports whether the script answers questions of this kind.
func (s Script) fits(kind string, q mcptask.Question) bool {
	return !s.isStored && s.kind == kindAny || s.kind == kind && (s.input == q.Input || q.Input == "")
}

// NewTask returns a task for the test of one handler that is called directly. Its questions get the
// scripted answers, in any order. A question whose step has no script, or one for another kind of
// question, gets mcptask.ErrCannotAsk and fails the test. An answer that its schema refuses fails the
// test too. So does a script that no question used, if nothing else was wrong with the questions. All
// of them are reported when the test ends, at the line that calls NewTask. Progress is logged.
//
// mcptask.Save keeps values for mcptask.Load. mcptask.Sleep is logged and returns at once, so that hours of work take no
// time. To test a later run of a task, script the values that it finds with Stored.
func NewTask(t testing.TB, scripts ...Script) *mcptask.Task {
	t.Helper()
	for i, s := range scripts {
		if slices.ContainsFunc(scripts[:i], func(other Script) bool { return other.step == s.step }) {
			t.Fatalf("mcptasktest: step %q has two scripts; if the handler asks it again, the second step is %s#2", s.step, s.step)
		}
	}
	host := &scriptedHost{t: t, test: callerPackage(), scripts: slices.Clone(scripts), stored: map[string]taskstore.Step{}}
	// The report of a cleanup has the line that registered it, and not that of the runtime that calls it.
	t.Cleanup(func() {
		t.Helper()
		host.mu.Lock()
		defer host.mu.Unlock()
		for _, problem := range host.problems {
			t.Errorf("mcptasktest: %s", problem)
		}
		if len(host.problems) > 0 { // the handler may have ended early, and the problems say why
			return
		}
		for _, s := range host.scripts {
			did, verb := "its questions were at "+listOr(host.asked, "no step"), "asked at"
			if s.isStored {
				did, verb = "its steps were "+listOr(host.steps, "none"), "came to"
			}
			t.Errorf("mcptasktest: the handler never %s step %q; %s\n\tremove %s, or correct the step", verb, s.step, did, s.code)
		}
	})
	attempt := 1
	if slices.ContainsFunc(scripts, func(s Script) bool { return s.isStored }) {
		attempt = 2
	}
	return mcptask.NewTask(host, mcptask.TaskInfo{ID: rand.Text(), Principal: Local, Attempt: attempt})
}

// scriptedHost is the mcptask.Host behind NewTask.
type scriptedHost struct {
	t    testing.TB
	test string // the package of the test

	mu       sync.Mutex
	scripts  []Script // those that were not used yet
	asked    []string // the steps of the questions
	problems []string // to be reported when the test ends
	steps    []string // the names of steps and positions, in the order of their first use
	stored   map[string]taskstore.Step
}

// Report implements mcptask.Host.
func (h *scriptedHost) Report(_ context.Context, done, total float64, message string) {
	h.t.Helper()
	if done == 0 && total == 0 {
		h.t.Logf("message %s", message)
		return
	}
	h.t.Logf("progress %v/%v %s", done, total, message)
}

// Ask implements mcptask.Host.
func (h *scriptedHost) Ask(ctx context.Context, in mcptask.Request) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q, err := mcptask.NewQuestion("", in.Key, in.Method, in.Params)
	if err != nil {
		return nil, err
	}
	kind := in.Method
	if q.URL != "" {
		kind = kindURL
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, fmt.Sprintf("%q", in.Key))
	i := slices.IndexFunc(h.scripts, func(s Script) bool { return s.step == in.Key })
	if i < 0 {
		h.report("add to NewTask", kind, q, "step %q has no scripted answer", in.Key)
		return nil, mcptask.ErrCannotAsk
	}
	s := h.scripts[i]
	h.scripts = slices.Delete(h.scripts, i, i+1)
	if !s.fits(kind, q) {
		h.report("replace it by", kind, q, "step %q asks for something else than its script answers: %s", in.Key, s.code)
		return nil, mcptask.ErrCannotAsk
	}
	response, err := s.response()
	if errors.Is(err, mcptask.ErrCannotAsk) || errors.Is(err, mcptask.ErrDeclined) {
		return nil, err
	}
	invalid := err
	if err == nil {
		invalid = mcptask.CheckAnswer(ctx, in, response)
	}
	if invalid != nil && ctx.Err() == nil {
		h.report("replace it by an answer that fits", kind, q, "the scripted answer for step %q is invalid: %v", in.Key, invalid)
	}
	return response, err
}

// report notes a problem with a question, and a script that would fit. h.mu is held.
func (h *scriptedHost) report(wayOut, kind string, q mcptask.Question, format string, args ...any) {
	place := findPlace(q.Input)
	remaining := make([]string, len(h.scripts))
	for i, s := range h.scripts {
		remaining[i] = s.code
	}
	h.problems = append(h.problems, fmt.Sprintf("%s\n\tasked: %s\n\tat: %s\n\tother scripts that are left: %s\n\t%s: %s",
		fmt.Sprintf(format, args...), describeQuestion(kind, q), place.lines, listOr(remaining, "none"), wayOut, place.suggest(kind, q, h.test)))
}

// listOr joins items. It returns none if there are no items.
func listOr(items []string, none string) string {
	if len(items) == 0 {
		return none
	}
	return strings.Join(items, ", ")
}
