package upgrade

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// move is the way from one revision to another, with all that changes on it.
type move struct {
	from, to *schema.Surface
	changes  []schema.Change
}

func newMove(from, to string) (m move, err error) {
	if m.from, err = schema.Load(from); err != nil {
		return m, err
	}
	if m.to, err = schema.Load(to); err != nil {
		return m, err
	}
	m.changes, err = schema.Diff(m.from, m.to)
	return m, err
}

// subject is a tool and what it stands among.
type subject struct {
	pkg     *model.Package
	service *model.Service
	tool    *model.Tool
}

// isTask tells whether the tool ever runs as a task.
func (s subject) isTask() bool { return s.tool.Policy.Task != model.Forbidden }

// asks tells whether the tool may ask questions that the package declares.
func (s subject) asks() bool {
	return len(s.tool.Questions) > 0 || s.asksInside()
}

// asksInside tells whether its handler may, while it runs.
func (s subject) asksInside() bool { return s.tool.Task && len(s.pkg.Inputs) > 0 }

// effect is what one change means for the tools that notice it.
type effect struct {
	section schema.Section
	// means is the canonical name of what changes; empty for any of the section.
	means string
	kinds []schema.Kind // none is any
	// when tells whose matter it is.
	when func(subject) bool
	// tool says what is otherwise, in the table of tools; nil where todo says it.
	tool func(schema.Change, subject) string
	// todo is what people have to do or to know, once for all tools; nil for nothing.
	todo func(schema.Change, move) string
}

// effects go by the canonical names of package schema, so that they hold for revisions to come.
var effects = []effect{
	{
		section: schema.Aspects, means: "strict",
		when: func(s subject) bool { return s.tool.Policy.Task == model.Required },
		tool: func(c schema.Change, s subject) string {
			if s.service.Fallback {
				return "clients without tasks have the fallback tools, as before"
			}
			return "a plain call: " + c.To + before(c)
		},
	},
	{
		section: schema.Aspects, means: "decider",
		when: func(s subject) bool { return s.tool.Policy.Task == model.Optional },
		tool: func(c schema.Change, s subject) string {
			text := "who decides that a call is a task: " + c.To + before(c)
			if s.tool.Policy.Grace != 0 {
				text += fmt.Sprintf("; `grace` is %v", s.tool.Policy.Grace)
			}
			return text
		},
		todo: func(_ schema.Change, m move) string {
			return "Where the server decides, a quick call of an optional tool becomes a task too: set `grace` on tools that are often done at once (" + m.to.Revision + ")."
		},
	},
	{
		section: schema.Aspects, means: "questions", when: subject.asksInside,
		tool: func(c schema.Change, _ subject) string { return "its questions: " + c.To + before(c) },
		todo: func(_ schema.Change, m move) string {
			return "Handlers that ask have to expect `mcptask.ErrCannotAsk`: see in which calls " + m.to.Revision + " lets a server ask. A question that is a parameter of the method is asked ahead."
		},
	},
	{
		section: schema.Aspects, means: "before",
		when: func(s subject) bool { return len(s.tool.Questions) > 0 },
		tool: func(c schema.Change, _ subject) string {
			return "the questions that are its parameters: " + c.To + before(c)
		},
	},
	{
		section: schema.MetaKeys, means: "immediate-response", kinds: []schema.Kind{schema.Removed},
		when: func(s subject) bool { return s.tool.Policy.Immediate != "" },
		tool: func(schema.Change, subject) string { return "its `immediate` text is not sent: there is no key for it" },
	},
	{
		section: schema.Aspects, means: "is-error", when: subject.isTask,
		todo: func(c schema.Change, _ move) string {
			return fmt.Sprintf("Code that looks at the status of a task, such as a switch over `TaskStatus`: after a tool error it is %s%s.", c.To, before(c))
		},
	},
	{
		section: schema.Methods, means: "list", kinds: []schema.Kind{schema.Removed}, when: subject.isTask,
		todo: func(c schema.Change, m move) string {
			return "Nothing lists tasks in " + m.to.Revision + " (`" + c.From + "` is gone): callers keep the token of a call, `call.Token()`, that they mean to take up again."
		},
	},
	{
		section: schema.Methods, kinds: []schema.Kind{schema.Removed, schema.Renamed}, when: subject.isTask,
		todo: func(c schema.Change, _ move) string {
			return "Scripts, tests and proxies of your own that name `" + c.From + "`: " + c.Text + "."
		},
	},
	{
		section: schema.Headers, kinds: []schema.Kind{schema.Added}, when: subject.isTask,
		todo: func(c schema.Change, _ move) string {
			return "Proxies and rules for other origins have to let the header `" + c.To + "` through."
		},
	},
}

func before(c schema.Change) string {
	if c.From == "" {
		return ""
	}
	return " (before: " + c.From + ")"
}

// concerns tells whether a change has an effect.
func (e effect) concerns(c schema.Change) bool {
	return e.section == c.Section && (e.means == "" || e.means == c.Means) && (len(e.kinds) == 0 || slices.Contains(e.kinds, c.Kind))
}

// changes says what moves mean for a tool, and adds what is to be done.
func (s subject) changes(moves []move, todo func(string)) string {
	if !s.isTask() && len(s.tool.Questions) == 0 {
		return "nothing: it is never a task"
	}
	var parts []string
	for _, m := range moves {
		for _, e := range effects {
			if !e.when(s) {
				continue
			}
			for _, c := range m.changes {
				if !e.concerns(c) {
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
