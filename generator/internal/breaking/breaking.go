package breaking

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/contract"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
)

// Finding is a change that breaks something.
type Finding struct {
	Rule    Rule
	Message string
	Breaks  []string
	Hint    string
	// The place, as exactly as it is known. File is nil if the file is gone; Old is then its path.
	File    *contract.File
	Old     string
	Service *contract.Service
	Tool    *contract.Tool
	Input   *contract.Input
	Error   *contract.Error
	// Property is the path of the argument, or of the member of the result if Result is set.
	Property []string
	Result   bool

	old *contract.Tool // the tool of the old state; nil if the finding is about something else
}

// Compare compares the files of two states. Without withModels, it does not look at descriptions.
func Compare(old, now []*contract.File, withModels bool) []Finding {
	c := &comparer{old: index(old), now: index(now), models: withModels, taken: map[*contract.Tool]bool{}, done: map[schemaPair][]fault{}}
	c.matchTools()
	for _, o := range c.old.tools {
		if n := c.match[o.tool]; n != nil {
			c.compareTool(o, *n)
		}
	}
	for _, file := range old {
		c.compareServices(file)
		c.compareInputs(file)
	}
	return c.findings
}

// place is a tool and where it stands.
type place struct {
	file    *contract.File
	service *contract.Service
	tool    *contract.Tool
}

func (p place) dir() string { return path.Dir(p.file.Path) }

// state is an index of the files of a state.
type state struct {
	files []*contract.File
	tools []place
}

func index(files []*contract.File) state {
	s := state{files: files}
	for _, f := range files {
		for _, service := range f.Services {
			for _, tool := range service.Tools {
				s.tools = append(s.tools, place{f, service, tool})
			}
		}
	}
	return s
}

type comparer struct {
	old, now state
	models   bool
	match    map[*contract.Tool]*place // of the old tools
	taken    map[*contract.Tool]bool   // new tools that have an old one
	done     map[schemaPair][]fault
	findings []Finding
}

// schemaPair is a comparison of two schemas. Tools share schemas, so it is made once.
type schemaPair struct {
	old, now *jsontree.Node
	use      string // arguments, result or answer
}

// compare returns the faults of a use of two schemas.
func (c *comparer) compare(old, now *jsontree.Node, use string) []fault {
	key := schemaPair{old, now, use}
	faults, ok := c.done[key]
	if !ok {
		if use == "result" {
			faults = compareResults(old, now)
		} else {
			faults = compareInputs(old, now, use == "arguments")
		}
		c.done[key] = faults
	}
	return faults
}

func (c *comparer) add(rule string, at Finding, format string, args ...any) {
	at.Rule = findRule(rule)
	at.Message = fmt.Sprintf(format, args...)
	if at.Breaks == nil {
		at.Breaks = at.Rule.Breaks
	}
	if at.old != nil && at.old.Task == "forbidden" { // it has no stored tasks
		at.Breaks = slices.DeleteFunc(slices.Clone(at.Breaks), func(s string) bool { return s == tasks })
	}
	switch {
	case at.File != nil && at.File.List != "":
		at.Hint = "the server has changed: adapt your calls, then run again with --allow " + rule
	case at.Hint == "":
		at.Hint = strings.ReplaceAll(at.Rule.WayOut, "`", "")
	}
	c.findings = append(c.findings, at)
}

// at returns the place of a finding about a tool.
func at(o, n place) Finding {
	return Finding{File: n.file, Service: n.service, Tool: n.tool, old: o.tool}
}

// matchTools finds the new tool of each old one: by its name, first in the same service, then in the same package, then
// anywhere. Then it looks for tools that have another name, and reports the tools that are gone.
func (c *comparer) matchTools() {
	c.match = map[*contract.Tool]*place{}
	byName := map[string][]int{}
	for i, n := range c.now.tools {
		for _, name := range append([]string{n.tool.Name}, n.tool.Was...) {
			byName[name] = append(byName[name], i)
		}
	}
	for _, near := range []func(o, n place) bool{
		func(o, n place) bool { return o.dir() == n.dir() && o.service.Name == n.service.Name },
		func(o, n place) bool { return o.dir() == n.dir() },
		func(o, n place) bool { return o.service.Name == n.service.Name },
		func(place, place) bool { return true },
	} {
		for _, o := range c.old.tools {
			for _, i := range byName[o.tool.Name] {
				n := &c.now.tools[i]
				if former := n.tool.Name != o.tool.Name; c.match[o.tool] == nil && (former || !c.taken[n.tool]) && near(o, *n) {
					c.match[o.tool] = n
					c.taken[n.tool] = c.taken[n.tool] || !former
				}
			}
		}
	}
	c.matchMethods()
	c.matchSchemas()
	for _, o := range c.old.tools {
		if c.match[o.tool] == nil {
			file, service := c.findService(o)
			c.add("tool-gone", Finding{File: file, Old: o.file.Path, Service: service, old: o.tool}, "the tool %q is gone", o.tool.Name)
		}
	}
}

// matchMethods finds the tools that have another name and the same method of the same service.
func (c *comparer) matchMethods() {
	for _, o := range c.old.tools {
		for i := range c.now.tools {
			n := &c.now.tools[i]
			if c.match[o.tool] == nil && !c.taken[n.tool] && n.dir() == o.dir() && n.service.Name == o.service.Name && o.tool.Method != "" && o.tool.Method == n.tool.Method {
				c.reportRenamed(o, n, "write %s on it: calls and stored tasks of the old name go on")
			}
		}
	}
}

// matchSchemas finds the tools that have another name and another method, if one gone tool and one new tool of a service
// have the same schemas. Of several, it cannot tell which is which.
func (c *comparer) matchSchemas() {
	key := func(p place) string {
		return strings.Join([]string{p.dir(), p.service.Name, canonical(p.tool.Input, false), canonical(p.tool.Output, false)}, "\n")
	}
	matched := map[*contract.Tool]bool{}
	for _, n := range c.match {
		matched[n.tool] = true
	}
	added := map[string][]*place{}
	for i, n := range c.now.tools {
		if !matched[n.tool] {
			added[key(n)] = append(added[key(n)], &c.now.tools[i])
		}
	}
	gone := map[string][]place{}
	for _, o := range c.old.tools {
		hasSchemas := o.tool.Output != nil || o.tool.Input.Get("properties") != nil && len(o.tool.Input.Get("properties").Members) > 0
		if c.match[o.tool] == nil && hasSchemas {
			gone[key(o)] = append(gone[key(o)], o)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(gone)) {
		if len(gone[k]) == 1 && len(added[k]) == 1 {
			c.reportRenamed(gone[k][0], added[k][0], "if it is the same tool, write %s on it")
		}
	}
}

// reportRenamed matches a tool with one of another name. The hint has a verb for the directive.
func (c *comparer) reportRenamed(o place, n *place, hint string) {
	c.match[o.tool], c.taken[n.tool] = n, true
	f := at(o, *n)
	f.Hint = fmt.Sprintf(hint, "was="+strings.Join(append([]string{o.tool.Name}, n.tool.Was...), ","))
	c.add("tool-renamed", f, "the tool %q is named %q now", o.tool.Name, n.tool.Name)
}

// findService returns what is left of the service of an old tool: the service, another file of the package, or nil.
func (c *comparer) findService(o place) (*contract.File, *contract.Service) {
	var left *contract.File
	for _, f := range c.now.files {
		if path.Dir(f.Path) != o.dir() {
			continue
		}
		for _, s := range f.Services {
			if s.Name == o.service.Name {
				return f, s
			}
		}
		if left == nil {
			left = f
		}
	}
	return left, nil
}

func (c *comparer) compareTool(o, n place) {
	old, now := o.tool, n.tool
	var served []string
	for _, other := range c.now.tools {
		served = append(append(served, other.tool.Name), other.tool.Was...)
	}
	for _, name := range old.Was {
		if !slices.Contains(served, name) {
			f := at(o, n)
			f.Hint = "write was=" + name + " on it again"
			c.add("tool-gone", f, "%q, a former name of the tool %q, is no longer served", name, now.Name)
		}
	}
	for _, f := range c.compare(old.Input, now.Input, "arguments") {
		finding := at(o, n)
		finding.Property = f.path
		if now.RunChanged && f.kind != "type" { // the handler cannot decode another type, so the task ends
			finding.Breaks = []string{callers}
		}
		c.add("argument-"+f.kind, finding, "%s %s", subject("the argument", "the arguments", f.path, now.Name), f.problem)
	}
	switch {
	case old.Output == nil: // there was nothing to read
	case now.Output == nil:
		c.add("result-gone", at(o, n), "the result of %q has no structured content any more", now.Name)
	default:
		for _, f := range c.compare(old.Output, now.Output, "result") {
			finding := at(o, n)
			finding.Property, finding.Result = f.path, true
			c.add("result-"+f.kind, finding, "%s %s", subject("the member", "the result", f.path, now.Name), f.problem)
		}
	}
	c.compareCalls(o, n)
	c.compareQuestions(o, n)
	if c.models && (old.Description != now.Description || old.Title != now.Title) {
		c.add("description", at(o, n), "the title or the description of %q has changed", now.Name)
	}
}

// subject names a property of a tool.
func subject(one, whole string, path []string, tool string) string {
	if len(path) == 0 {
		return fmt.Sprintf("%s of %q", whole, tool)
	}
	return fmt.Sprintf("%s %s of %q", one, strings.ReplaceAll(strings.Join(path, "."), ".[]", "[]"), tool)
}

// compareCalls reports kinds of calls that are refused now.
func (c *comparer) compareCalls(o, n place) {
	// Without the fallback tools, a call without a task is refused by a tool that needs one. A report of lost fallback tools
	// stands elsewhere.
	plain := func(task string) bool { return task != "required" || o.service.Fallback }
	switch was, is := o.tool.Task, n.tool.Task; {
	case was == "" || is == "": // a list that does not say
	case was != "forbidden" && is == "forbidden":
		f := at(o, n)
		f.Breaks = []string{callers, tasks}
		c.add("task-support", f, "%q no longer runs as a task: it had task=%s", n.tool.Name, was)
	case plain(was) && !plain(is):
		c.add("task-support", at(o, n), "%q has task=required now, so calls without a task are refused", n.tool.Name)
	}
	if o.tool.Restart && !n.tool.Restart && o.tool.Task != "forbidden" && n.tool.Task != "forbidden" && n.tool.Task != "" {
		c.add("restart-gone", at(o, n), "a task of %q fails now if its process dies: it had onlost=restart", n.tool.Name)
	}
}

// compareQuestions compares the questions that are asked before the task exists.
func (c *comparer) compareQuestions(o, n place) {
	for _, name := range o.tool.Questions {
		if !slices.Contains(n.tool.Questions, name) {
			c.add("question-gone", at(o, n), "%q no longer asks for %s before its task begins", n.tool.Name, name)
		}
	}
	for _, name := range n.tool.Questions {
		if !slices.Contains(o.tool.Questions, name) {
			c.add("question-new", at(o, n), "%q asks for %s now before its task begins", n.tool.Name, name)
		}
	}
}

// compareServices compares what the services of an old file have beside their tools.
func (c *comparer) compareServices(file *contract.File) {
	for _, old := range file.Services {
		nowFile, now := c.findService(place{file: file, service: old})
		if now == nil {
			continue // its tools are reported, or they are elsewhere
		}
		f := Finding{File: nowFile, Service: now}
		switch {
		case old.Fallback && !now.Fallback:
			c.add("fallback-gone", f, "the service %s no longer has the fallback tools", now.Name)
		case old.Fallback && old.Prefix != now.Prefix:
			c.add("fallback-gone", f, "the fallback tools of %s were named %stask_status and so on, and are named %stask_status now", now.Name, old.Prefix, now.Prefix)
		}
		for _, e := range old.Errors {
			i := slices.IndexFunc(now.Errors, func(n *contract.Error) bool { return n.Code == e.Code })
			if i < 0 {
				c.add("error-gone", f, "the error %s of the service %s is gone", e.Code, now.Name)
				continue
			}
			f := f
			f.Error = now.Errors[i]
			for _, fault := range c.compare(e.Schema, f.Error.Schema, "result") {
				f.Property = fault.path
				c.add("error-member", f, "%s %s", subject("the member", "the data", fault.path, e.Code), fault.problem)
			}
		}
	}
}

// compareInputs compares the questions of an old file.
func (c *comparer) compareInputs(file *contract.File) {
	for _, old := range file.Inputs {
		nowFile, now := c.findInput(path.Dir(file.Path), old.Name)
		if now == nil {
			f := Finding{File: nowFile, Old: file.Path}
			if nowFile != nil && len(nowFile.Services) > 0 {
				f.Service = nowFile.Services[0]
			}
			c.add("question-gone", f, "the question %s is gone", old.Name)
			continue
		}
		for _, f := range c.compare(old.Schema, now.Schema, "answer") {
			c.add("question-form", Finding{File: nowFile, Input: now, Property: f.path}, "%s %s", subject("the field", "the form", f.path, now.Name), f.problem)
		}
	}
}

// findInput returns the input with that name in a package, or else an input of that name that another package did not have
// before. If there is none, it returns a file of the package.
func (c *comparer) findInput(dir, name string) (left *contract.File, input *contract.Input) {
	for _, here := range []bool{true, false} {
		for _, f := range c.now.files {
			if here != (path.Dir(f.Path) == dir) {
				continue
			}
			for _, in := range f.Inputs {
				if in.Name == name && (here || !c.hadInput(path.Dir(f.Path), name)) {
					return f, in
				}
			}
			if here && left == nil {
				left = f
			}
		}
	}
	return left, nil
}

// hadInput reports whether a package had an input of that name before.
func (c *comparer) hadInput(dir, name string) bool {
	return slices.ContainsFunc(c.old.files, func(f *contract.File) bool {
		return path.Dir(f.Path) == dir && slices.ContainsFunc(f.Inputs, func(in *contract.Input) bool { return in.Name == name })
	})
}
