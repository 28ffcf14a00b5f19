package breaking

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/contract"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
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
		c.compareFallbacks(file)
		c.compareErrors(file)
		c.compareForms(file)
	}
	return c.findings
}

// servedTool is a tool of a service.
type servedTool struct {
	file    *contract.File
	service *contract.Service
	tool    *contract.Tool
}

func (t servedTool) dir() string { return path.Dir(t.file.Path) }

// state is an index of the files of a state.
type state struct {
	files []*contract.File
	tools []servedTool
}

func index(files []*contract.File) state {
	s := state{files: files}
	for _, f := range files {
		for _, service := range f.Services {
			for _, tool := range service.Tools {
				s.tools = append(s.tools, servedTool{f, service, tool})
			}
		}
	}
	return s
}

type comparer struct {
	old, now state
	models   bool
	match    map[*contract.Tool]*servedTool // of the old tools
	taken    map[*contract.Tool]bool        // new tools that have an old one
	done     map[schemaPair][]fault
	findings []Finding
}

// schemaPair is a comparison of two schemas. Tools share schemas, so it is made once.
type schemaPair struct {
	old, now *jsontree.Node
	use      string // arguments, result, answer or texts
}

// compare returns the faults of a use of two schemas.
func (c *comparer) compare(old, now *jsontree.Node, use string) []fault {
	key := schemaPair{old, now, use}
	faults, ok := c.done[key]
	if !ok {
		switch use {
		case "result":
			faults = findResultFaults(old, now)
		case "texts":
			faults = findTextFaults(old, now)
		default:
			faults = findInputFaults(old, now, use == "arguments")
		}
		c.done[key] = faults
	}
	return faults
}

func (c *comparer) add(rule string, f Finding, format string, args ...any) {
	f.Rule = findRule(rule)
	f.Message = fmt.Sprintf(format, args...)
	if f.Breaks == nil {
		f.Breaks = f.Rule.Breaks
	}
	if f.old != nil && f.old.Task == "forbidden" { // it has no stored tasks
		f.Breaks = slices.DeleteFunc(slices.Clone(f.Breaks), func(s string) bool { return s == tasks })
	}
	switch {
	case f.File != nil && f.File.List != "":
		f.Hint = "the server has changed: adapt your calls, then run again with --allow " + rule
	case f.Hint == "":
		f.Hint = strings.ReplaceAll(f.Rule.WayOut, "`", "")
	}
	c.findings = append(c.findings, f)
}

// newToolFinding returns a finding about a tool, so far without a rule.
func newToolFinding(o, n servedTool) Finding {
	return Finding{File: n.file, Service: n.service, Tool: n.tool, old: o.tool}
}

// matchTools finds the new tool of each old one: by its name, first in the same service, then in the same package, then
// anywhere. Then it looks for tools that have another name, and reports the tools that are gone.
func (c *comparer) matchTools() {
	c.match = map[*contract.Tool]*servedTool{}
	byName := map[string][]int{}
	for i, n := range c.now.tools {
		for _, name := range append([]string{n.tool.Name}, n.tool.Was...) {
			byName[name] = append(byName[name], i)
		}
	}
	for _, near := range []func(o, n servedTool) bool{
		func(o, n servedTool) bool { return o.dir() == n.dir() && o.service.Name == n.service.Name },
		func(o, n servedTool) bool { return o.dir() == n.dir() },
		func(o, n servedTool) bool { return o.service.Name == n.service.Name },
		func(_, _ servedTool) bool { return true },
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
			f := c.newGoneFinding(o.file)
			if file, service := c.findService(o.file, o.service); service != nil {
				f.File, f.Service = file, service
			}
			f.old = o.tool
			c.add("tool-gone", f, "the tool %q is gone", o.tool.Name)
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
	key := func(t servedTool) string {
		return strings.Join([]string{t.dir(), t.service.Name, canonical(t.tool.Input, false), canonical(t.tool.Output, false)}, "\n")
	}
	matched := map[*contract.Tool]bool{}
	for _, n := range c.match {
		matched[n.tool] = true
	}
	added := map[string][]*servedTool{}
	for i, n := range c.now.tools {
		if !matched[n.tool] {
			added[key(n)] = append(added[key(n)], &c.now.tools[i])
		}
	}
	gone := map[string][]servedTool{}
	for _, o := range c.old.tools {
		hasSchemas := o.tool.Output != nil || len(o.tool.Input.MembersOf("properties")) > 0
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
func (c *comparer) reportRenamed(o servedTool, n *servedTool, hint string) {
	c.match[o.tool], c.taken[n.tool] = n, true
	f := newToolFinding(o, *n)
	f.Hint = fmt.Sprintf(hint, "was="+strings.Join(append([]string{o.tool.Name}, n.tool.Was...), ","))
	c.add("tool-renamed", f, "the tool %q is named %q now", o.tool.Name, n.tool.Name)
}

// findService returns what a service of an old file is now: the one of its name, or else the one that has most of its
// tools. A list of tools does not take the place of a declaration. It returns nil if there is neither.
func (c *comparer) findService(oldFile *contract.File, old *contract.Service) (file *contract.File, service *contract.Service) {
	for _, f := range c.now.files {
		for _, s := range f.Services {
			if path.Dir(f.Path) == path.Dir(oldFile.Path) && s.Name == old.Name {
				return f, s
			}
		}
	}
	counts := map[*contract.Service]int{}
	for _, tool := range old.Tools {
		if n := c.match[tool]; n != nil && (n.file.List == "") == (oldFile.List == "") {
			if counts[n.service]++; counts[n.service] > counts[service] {
				file, service = n.file, n.service
			}
		}
	}
	return file, service
}

// newGoneFinding returns a finding about something of an old file that is gone, at a file that its package has now.
func (c *comparer) newGoneFinding(old *contract.File) Finding {
	f := Finding{Old: old.Path}
	for _, now := range c.now.files {
		if f.File == nil && path.Dir(now.Path) == path.Dir(old.Path) {
			f.File = now
		}
	}
	return f
}

func (c *comparer) compareTool(o, n servedTool) {
	old, now := o.tool, n.tool
	var served []string
	for _, other := range c.now.tools {
		served = append(append(served, other.tool.Name), other.tool.Was...)
	}
	for _, name := range old.Was {
		if !slices.Contains(served, name) {
			f := newToolFinding(o, n)
			f.Hint = "write was=" + name + " on it again"
			c.add("tool-gone", f, "%q, a former name of the tool %q, is no longer served", name, now.Name)
		}
	}
	for _, f := range c.compare(old.Input, now.Input, "arguments") {
		finding := newToolFinding(o, n)
		finding.Property = f.path
		if now.RunChanged && f.kind != "type" { // the handler cannot decode another type, so the task ends
			finding.Breaks = []string{callers}
		}
		c.add("argument-"+f.kind, finding, "%s of %q %s", subject("the argument", "the arguments", f.path), now.Name, f.problem)
	}
	switch {
	case old.Output == nil: // there was nothing to read
	case now.Output == nil:
		c.add("result-gone", newToolFinding(o, n), "the result of %q is text now and has no structured content any more", now.Name)
	default:
		for _, f := range c.compare(old.Output, now.Output, "result") {
			finding := newToolFinding(o, n)
			finding.Property, finding.Result = f.path, true
			c.add("result-"+f.kind, finding, "%s of %q %s", subject("the member", "the result", f.path), now.Name, f.problem)
		}
	}
	c.compareCalls(o, n)
	c.compareLimits(o, n)
	c.compareAskedBefore(o, n)
	var changed []string
	if old.Title != now.Title {
		changed = append(changed, "the title")
	}
	if old.Description != now.Description {
		changed = append(changed, "the description")
	}
	changed = append(changed, c.findTexts(old.Input, now.Input, "the argument", "the arguments")...)
	changed = append(changed, c.findTexts(old.Output, now.Output, "the result member", "the result")...)
	c.addTexts(newToolFinding(o, n), changed, now.Name)
}

// findTexts names the members of a schema whose texts have changed.
func (c *comparer) findTexts(old, now *jsontree.Node, one, whole string) (names []string) {
	if c.models && old != nil && now != nil {
		for _, f := range c.compare(old, now, "texts") {
			names = append(names, subject(one, whole, f.path))
		}
	}
	return names
}

// addTexts reports the parts of a tool or a question whose texts have changed.
func (c *comparer) addTexts(f Finding, changed []string, name string) {
	if c.models && len(changed) > 0 {
		c.add("description", f, "the text of %q has changed: %s", name, listFirst(changed))
	}
}

// subject names a member of a schema.
func subject(one, whole string, path []string) string {
	if len(path) == 0 {
		return whole
	}
	return one + " " + strings.ReplaceAll(strings.Join(path, "."), ".[]", "[]")
}

// compareCalls reports kinds of calls that are refused now.
func (c *comparer) compareCalls(o, n servedTool) {
	// Without the fallback tools, a call without a task is refused by a tool that needs one. A report of lost fallback tools
	// stands elsewhere.
	plain := func(task string) bool { return task != "required" || o.service.Fallback }
	switch was, is := o.tool.Task, n.tool.Task; {
	case was == "" || is == "": // a list that does not say
	case was != "forbidden" && is == "forbidden":
		f := newToolFinding(o, n)
		f.Breaks = []string{callers, tasks}
		c.add("task-support", f, "%q no longer runs as a task: it had task=%s", n.tool.Name, was)
	case plain(was) && !plain(is):
		c.add("task-support", newToolFinding(o, n), "%q has task=required now, so calls without a task are refused", n.tool.Name)
	}
	if o.tool.Restart && !n.tool.Restart && o.tool.Task != "forbidden" && n.tool.Task != "forbidden" && n.tool.Task != "" {
		c.add("restart-gone", newToolFinding(o, n), "a task of %q fails now if its process dies: it had onlost=restart", n.tool.Name)
	}
}

// compareLimits reports limits that are lower now. A stored task keeps its ttl. A deadline also bounds calls without a task.
func (c *comparer) compareLimits(o, n servedTool) {
	report := func(limit, was, is string, breaks ...string) {
		f := newToolFinding(o, n)
		f.Breaks = breaks
		c.add("limit-lower", f, "%q has %s=%s now, and had %s", n.tool.Name, limit, is, was)
	}
	old, now := o.tool, n.tool
	if now.Deadline > 0 && (old.Deadline == 0 || now.Deadline < old.Deadline) {
		was := "none"
		if old.Deadline > 0 {
			was = words.Duration(old.Deadline)
		}
		report("deadline", was, words.Duration(now.Deadline), callers, tasks)
	}
	if old.Task == "forbidden" || now.Task == "forbidden" {
		return
	}
	if now.TTL > 0 && now.TTL < old.TTL {
		report("ttl", words.Duration(old.TTL), words.Duration(now.TTL), callers)
	}
	if old.Restart && now.Restart && now.Attempts > 0 && now.Attempts < old.Attempts {
		report("attempts", fmt.Sprint(old.Attempts), fmt.Sprint(now.Attempts), tasks)
	}
}

// compareAskedBefore compares the questions that are asked before the task exists.
func (c *comparer) compareAskedBefore(o, n servedTool) {
	for _, name := range o.tool.Questions {
		if !slices.Contains(n.tool.Questions, name) {
			c.add("question-gone", newToolFinding(o, n), "%q no longer asks for %s before its task begins", n.tool.Name, name)
		}
	}
	for _, name := range n.tool.Questions {
		if !slices.Contains(o.tool.Questions, name) {
			c.add("question-new", newToolFinding(o, n), "%q asks for %s now before its task begins", n.tool.Name, name)
		}
	}
}

// compareFallbacks compares the fallback tools of the services of an old file.
func (c *comparer) compareFallbacks(file *contract.File) {
	for _, old := range file.Services {
		nowFile, now := c.findService(file, old)
		if !old.Fallback || now == nil {
			continue
		}
		name := now.Name
		if name != old.Name {
			name += ", which has the tools of " + old.Name + ","
		}
		f := Finding{File: nowFile, Service: now}
		switch {
		case !now.Fallback:
			c.add("fallback-gone", f, "the service %s no longer has the fallback tools", name)
		case old.Prefix != now.Prefix:
			c.add("fallback-gone", f, "the fallback tools of %s were named %stask_status and so on, and are named %stask_status now", name, old.Prefix, now.Prefix)
		}
	}
}

// compareErrors compares the errors of an old file, unless all that could return them is gone.
func (c *comparer) compareErrors(file *contract.File) {
	if len(file.Services) > 0 && len(c.findPackages(file)) == 0 {
		return
	}
	for _, old := range file.Errors {
		nowFile, now := findDeclaration(c, file, func(f *contract.File) *contract.Error {
			return findFirst(f.Errors, func(e *contract.Error) bool { return e.Code == old.Code })
		})
		if now == nil {
			c.add("error-gone", c.newGoneFinding(file), "the error %s is gone", old.Code)
			continue
		}
		if old.Schema == nil || now.Schema == nil {
			continue // only the codes are known
		}
		for _, f := range c.compare(old.Schema, now.Schema, "result") {
			c.add("error-member", Finding{File: nowFile, Error: now, Property: f.path}, "%s of %q %s", subject("the member", "the data", f.path), now.Code, f.problem)
		}
	}
}

// compareForms compares the questions of an old file.
func (c *comparer) compareForms(file *contract.File) {
	for _, old := range file.Inputs {
		nowFile, now := findDeclaration(c, file, func(f *contract.File) *contract.Input {
			return findFirst(f.Inputs, func(in *contract.Input) bool { return in.Name == old.Name })
		})
		if now == nil {
			c.add("question-gone", c.newGoneFinding(file), "the question %s is gone", old.Name)
			continue
		}
		for _, f := range c.compare(old.Schema, now.Schema, "answer") {
			c.add("question-form", Finding{File: nowFile, Input: now, Property: f.path}, "%s of %q %s", subject("the field", "the form", f.path), now.Name, f.problem)
		}
		var changed []string
		if old.Message != now.Message {
			changed = append(changed, "the message")
		}
		c.addTexts(Finding{File: nowFile, Input: now}, append(changed, c.findTexts(old.Schema, now.Schema, "the field", "the form")...), now.Name)
	}
}

// findFirst returns the first value that fits, or nil.
func findFirst[V any](list []*V, fits func(*V) bool) *V {
	if i := slices.IndexFunc(list, fits); i >= 0 {
		return list[i]
	}
	return nil
}

// findDeclaration finds the declaration that has taken the place of one in an old file. get returns the declaration of that
// name in a file, or nil. It looks in the same package, then in the packages that have the tools of the old file's services
// now, then in packages that did not have the declaration before.
func findDeclaration[V any](c *comparer, old *contract.File, get func(*contract.File) *V) (*contract.File, *V) {
	dirs := c.findPackages(old)
	for _, accepts := range []func(dir string) bool{
		func(dir string) bool { return dir == path.Dir(old.Path) },
		func(dir string) bool { return slices.Contains(dirs, dir) },
		func(dir string) bool {
			return !slices.ContainsFunc(c.old.files, func(f *contract.File) bool { return path.Dir(f.Path) == dir && get(f) != nil })
		},
	} {
		for _, f := range c.now.files {
			if v := get(f); v != nil && accepts(path.Dir(f.Path)) {
				return f, v
			}
		}
	}
	return nil, nil
}

// findPackages returns the directories of the packages that have the services of an old file now.
func (c *comparer) findPackages(old *contract.File) (dirs []string) {
	for _, s := range old.Services {
		if f, _ := c.findService(old, s); f != nil {
			dirs = append(dirs, path.Dir(f.Path))
		}
	}
	return dirs
}
