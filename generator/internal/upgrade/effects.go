package upgrade

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// move is a step from one revision to another, with all its changes.
type move struct {
	from, to    *schema.Surface
	changes     []schema.Change
	tasks, asks bool // what the tools of the packages do
}

func newMove(from, to string) (m *move, err error) {
	m = &move{}
	if m.from, err = schema.Load(from); err != nil {
		return m, err
	}
	if m.to, err = schema.Load(to); err != nil {
		return m, err
	}
	m.changes, err = schema.Diff(m.from, m.to)
	return m, err
}

// subject is a tool with its service and package.
type subject struct {
	pkg     *model.Package
	service *model.Service
	tool    *model.Tool
}

func (s subject) isTask() bool { return s.tool.Policy.Task != model.Forbidden }

// mayAsk reports whether the tool may ask questions.
func (s subject) mayAsk() bool {
	return len(s.tool.Questions) > 0 || s.mayAskWhileRunning()
}

// mayAskWhileRunning reports whether the tool's handler may ask questions.
func (s subject) mayAskWhileRunning() bool { return s.tool.Task && s.pkg.MayAsk(s.service) }

// effect describes what one change means for the tools it affects.
type effect struct {
	section schema.Section
	// means is the canonical name of the change. Empty matches every change of the section.
	means string
	kinds []schema.Kind // empty matches every kind
	// when reports whether a tool is affected.
	when func(subject) bool
	// tool returns the entry for the table of tools. It may be nil.
	tool func(schema.Change, subject) string
	// todo returns what people have to do or know, once for all tools, or "". It may be nil.
	todo func(schema.Change, *move) string
}

// effects use the canonical names of package schema, so that they also apply to future revisions.
var effects = []effect{
	{
		section: schema.Aspects, means: "strict",
		when: func(s subject) bool { return s.tool.Policy.Task == model.Required },
		tool: func(c schema.Change, s subject) string {
			if s.service.Fallback {
				return "clients without tasks use the fallback tools, as before"
			}
			return "a plain call: " + c.To + describePrevious(c)
		},
	},
	{
		section: schema.Aspects, means: "decider",
		when: func(s subject) bool { return s.tool.Policy.Task == model.Optional },
		tool: func(c schema.Change, s subject) string {
			text := "whether the client or the server decides that a call is a task: " + c.To + describePrevious(c)
			if s.tool.Policy.Grace != 0 {
				text += fmt.Sprintf("; `grace` is %v", s.tool.Policy.Grace)
			}
			return text
		},
		todo: func(c schema.Change, m *move) string {
			if !strings.HasPrefix(c.To, "the server") {
				return ""
			}
			return "The server decides, so a quick call of an optional tool becomes a task too: set `grace` on tools that often finish at once (" + m.to.Revision + ")."
		},
	},
	{
		section: schema.Aspects, means: "questions", when: subject.mayAskWhileRunning,
		tool: func(c schema.Change, _ subject) string { return "its questions: " + c.To + describePrevious(c) },
		todo: func(_ schema.Change, m *move) string {
			return "Handlers that ask must handle `mcptask.ErrCannotAsk`: check in which calls " + m.to.Revision + " lets a server ask. A question that is a parameter of the method is asked before the task is created."
		},
	},
	{
		section: schema.Aspects, means: "before",
		when: func(s subject) bool { return len(s.tool.Questions) > 0 },
		tool: func(c schema.Change, _ subject) string {
			return "the questions in its parameters: " + c.To + describePrevious(c)
		},
	},
	{
		section: schema.MetaKeys, means: "immediate-response", kinds: []schema.Kind{schema.Removed},
		when: func(s subject) bool { return s.tool.Policy.Immediate != "" },
		tool: func(schema.Change, subject) string {
			return "its `immediate` text is not sent: the revision has no key for it"
		},
	},
	{
		section: schema.Aspects, means: "is-error", when: subject.isTask,
		todo: func(c schema.Change, _ *move) string {
			return fmt.Sprintf("Check code that looks at the status of a task, such as a switch over `TaskStatus`: after a tool error the status is %s%s.", c.To, describePrevious(c))
		},
	},
	{
		section: schema.Methods, means: "list", kinds: []schema.Kind{schema.Removed}, when: subject.isTask,
		todo: func(c schema.Change, m *move) string {
			return m.to.Revision + " cannot list tasks (`" + c.From + "` is gone): callers must keep the token of a call, `call.Token()`, to resume it."
		},
	},
	{
		section: schema.Methods, kinds: []schema.Kind{schema.Removed, schema.Renamed}, when: subject.isTask,
		todo: func(c schema.Change, _ *move) string {
			return "Update your own scripts, tests and proxies that use `" + c.From + "`: " + c.Text + "."
		},
	},
	{
		section: schema.Headers, kinds: []schema.Kind{schema.Added}, when: subject.isTask,
		todo: func(c schema.Change, _ *move) string {
			return "Let proxies and cross-origin rules pass the header `" + c.To + "`."
		},
	},
}

func describePrevious(c schema.Change) string {
	if c.From == "" {
		return ""
	}
	return " (before: " + c.From + ")"
}

func (e effect) matchesChange(c schema.Change) bool {
	return e.section == c.Section && (e.means == "" || e.means == c.Means) && (len(e.kinds) == 0 || slices.Contains(e.kinds, c.Kind))
}

// describeChanges says what the moves mean for a tool. It passes what is to be done to todo.
func (s subject) describeChanges(moves []*move, todo func(string)) string {
	if !s.isTask() && len(s.tool.Questions) == 0 {
		return "nothing: it never runs as a task"
	}
	var parts []string
	for _, m := range moves {
		for _, e := range effects {
			if !e.when(s) {
				continue
			}
			for _, c := range m.changes {
				if !e.matchesChange(c) {
					continue
				}
				if e.tool != nil {
					if text := e.tool(c, s); !slices.Contains(parts, text) {
						parts = append(parts, text)
					}
				}
				if e.todo != nil {
					todo(e.todo(c, m))
				}
			}
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "<br>")
}
