package declaration

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/description"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

func (r *reader) readServices(out *model.Package) {
	for _, spec := range r.specs {
		b := r.directives[spec]
		iface, ok := spec.Type.(*ast.InterfaceType)
		if b == nil || !ok {
			continue
		}
		if spec.TypeParams != nil {
			r.addProblem(spec.TypeParams.Pos(), spec.Name.Name+" is generic", "a service cannot have type parameters; its tools may use instances such as Page[Run]")
			continue
		}
		if spec.Name.Name == "_" {
			r.addProblem(spec.Name.Pos(), "a service needs a name", "its client and its tools are named after it")
			continue
		}
		out.Services = append(out.Services, r.readService(spec, iface, b))
	}
	r.checkFormerNames()
	for _, service := range out.Services {
		r.reserveFallbackTools(service)
	}
}

// reserveFallbackTools reports the tools of any service that have the name of one of this service's
// fallback tools. Services with the same prefix share these.
func (r *reader) reserveFallbackTools(service *model.Service) {
	for _, name := range service.FallbackTools() {
		pos, taken := r.tools[name]
		if !taken {
			continue
		}
		delete(r.tools, name) // one report for all services that share the fallback tool
		wayOut := "choose another name with name=, give " + service.Name + " another prefix=, or set fallback=none on it"
		if slices.ContainsFunc(service.Tools, func(tool *model.Tool) bool { return tool.Name == name }) {
			wayOut = "choose another name with name=, or set fallback=none on " + service.Name
		}
		r.addProblem(pos, fmt.Sprintf("%q is also a fallback tool of service %s, for clients without tasks", name, service.Name), wayOut)
	}
}

func (r *reader) readService(spec *ast.TypeSpec, iface *ast.InterfaceType, b *block) *model.Service {
	service := &model.Service{Name: spec.Name.Name, Pos: r.fset.Position(spec.Name.Pos()), Allows: r.allowed(spec)}
	r.positions[service] = spec.Name.Pos()
	service.Description = description.Read(r.docs[spec]).Text
	if s, ok := b.get("prefix"); ok {
		service.Prefix = s.text
		if !model.IsToolName(s.text) {
			r.addProblem(s.valuePos, fmt.Sprintf("prefix=%q cannot start the name of a tool", s.text),
				"a name has 1 to 128 letters, digits, _, - and .")
			service.Prefix = ""
		}
	}
	methods := map[string]bool{}
	r.readMethods(service, iface, b, methods, map[*ast.InterfaceType]bool{})
	describe(service)
	if len(methods) == 0 && len(iface.Methods.List) == 0 {
		r.addProblem(spec.Name.Pos(), "service "+service.Name+" has no methods", "add a method for each tool")
	} else if s, ok := b.get("attempts"); ok && !b.restarts {
		r.addProblem(s.pos, fmt.Sprintf("attempts=%d has no effect: no tool of %s has onlost=restart", s.count, service.Name), attemptsHint)
	}
	if s, ok := b.get("concurrency"); ok && len(service.Tools) > 0 && !slices.ContainsFunc(service.Tools, waitsInLine) {
		r.addProblem(s.pos, fmt.Sprintf("concurrency=%d has no effect: no tool of %s waits in line", s.count, service.Name), concurrencyHint)
	}
	if s, ok := b.get("onleave"); ok && s.text == "keep" {
		switch fallback, set := b.get("fallback"); {
		case set && fallback.text == "none":
			r.addProblem(s.pos, keepWithoutFallback, keepFallbackHint)
		case len(service.Tools) > 0 && !service.RunsTasks():
			r.addProblem(s.pos, "onleave=keep has no effect: no tool of "+service.Name+" may run as a task", keepHint)
		}
	}
	service.Fallback = b.allowsFallback() && service.RunsTasks()
	return service
}

// readMethods reads the methods of an interface in source order. It includes the methods of
// embedded interfaces of the same package. open has the interfaces that it has read, with true for
// those that it is reading.
func (r *reader) readMethods(service *model.Service, iface *ast.InterfaceType, b *block, done map[string]bool, open map[*ast.InterfaceType]bool) {
	if _, before := open[iface]; before {
		return
	}
	open[iface] = true
	defer func() { open[iface] = false }()
	for _, field := range iface.Methods.List {
		if len(field.Names) == 0 {
			r.readEmbedded(service, field, b, done, open)
			continue
		}
		r.serviceMethods[field] = true
		name := field.Names[0]
		if done[name.Name] {
			continue
		}
		done[name.Name] = true
		if !name.IsExported() {
			r.addProblem(name.Pos(), fmt.Sprintf("%s.%s is not exported", service.Name, name.Name), "every method of a service is a tool, which clients call through an exported method")
			continue
		}
		if tool := r.readTool(service, field, b); tool != nil {
			service.Tools = append(service.Tools, tool)
		}
	}
}

func (r *reader) readEmbedded(service *model.Service, field *ast.Field, b *block, done map[string]bool, open map[*ast.InterfaceType]bool) {
	if name, ok := ast.Unparen(field.Type).(*ast.Ident); ok {
		if spec, ok := r.interfaces[r.pkg.TypesInfo.Uses[name]]; ok && spec.TypeParams == nil {
			done[""] = true // the service is not empty
			if open[spec.Type.(*ast.InterfaceType)] {
				r.addProblem(field.Pos(), fmt.Sprintf("service %s embeds %s, which contains itself by this line", service.Name, name.Name), "remove one of the embedded interfaces")
			}
			r.readMethods(service, spec.Type.(*ast.InterfaceType), b, done, open)
			return
		}
	}
	if inline, ok := ast.Unparen(field.Type).(*ast.InterfaceType); ok {
		done[""] = true
		r.readMethods(service, inline, b, done, open)
		return
	}
	what := types.ExprString(field.Type)
	if t := r.pkg.TypesInfo.TypeOf(field.Type); t != nil && !types.IsInterface(t) || strings.ContainsAny(what, "~|") {
		r.addProblem(field.Pos(), fmt.Sprintf("service %s has a type constraint, %s", service.Name, what), "a service can only have methods")
		return
	}
	r.addProblem(field.Pos(), fmt.Sprintf("service %s embeds %s", service.Name, what),
		"embed only interfaces of this package without type parameters, or write the methods out")
}

// describe rewrites the comments of a service and its tools for readers who know the tools by their names.
func describe(service *model.Service) {
	names := description.Names{}
	for _, tool := range service.Tools {
		names[tool.Method] = tool.Name
	}
	for _, tool := range service.Tools {
		tool.Description = description.Tool(tool.Method, tool.Name, tool.Description, names)
	}
	service.Description = description.Service(service.Name, service.Description, names)
}

// readTool reads a method. It returns nil if the method cannot be a tool.
func (r *reader) readTool(service *model.Service, field *ast.Field, defaults *block) *model.Tool {
	b := r.directives[field]
	method := field.Names[0]
	about := description.Read(field.Doc)
	tool := &model.Tool{Method: method.Name, Doc: description.Source(field.Doc), Description: about.Text, Pos: r.fset.Position(method.Pos()), Allows: r.allowed(field)}
	r.positions[tool] = method.Pos()
	switch {
	case tool.Description == "" && tool.Doc != "":
		r.addNote(method.Pos(), fmt.Sprintf("the comment of the tool %s has nothing for models, which see no more than its name; write above it what it does", method.Name))
	case tool.Description == "":
		r.addNote(method.Pos(), fmt.Sprintf("the tool %s has no comment, so a model sees no more than its name; write above it what it does", method.Name))
	case about.HidesDeprecation():
		r.addNote(method.Pos(), fmt.Sprintf("the tool %s is deprecated, which models do not see; say so in the first paragraph of its comment, or remove the method", method.Name))
	}
	r.readName(service, tool, method, b)
	if s, ok := b.get("title"); ok {
		tool.Title = s.text
	}
	sig, ok := r.readSignature(tool, service, field)
	r.readPolicy(tool, method, b, defaults)
	r.readAnnotations(tool, b, defaults)
	if !ok {
		return nil
	}
	r.readWorkflow(tool, service, sig, b)
	r.readSchemas(tool, sig, b)
	r.checkRefused(service, tool, sig, field, defaults.node)
	return tool
}

func (r *reader) readName(service *model.Service, tool *model.Tool, method *ast.Ident, b *block) {
	name, pos := words.SnakeCase(method.Name), method.Pos()
	if s, ok := b.get("name"); ok {
		name, pos = s.text, s.valuePos
		if short, ok := strings.CutPrefix(name, service.Prefix); ok && service.Prefix != "" && short != "" {
			r.addNote(pos, fmt.Sprintf("prefix=%s is put before name=%s, so the tool is named %s%s; write name=%s for %s",
				service.Prefix, name, service.Prefix, name, short, name))
		}
	}
	tool.Name = service.Prefix + name
	if !model.IsToolName(tool.Name) {
		hint := "a name has 1 to 128 letters, digits, _, - and ."
		if pos == method.Pos() {
			hint += "; set one with name="
		}
		r.addProblem(pos, fmt.Sprintf("%q is not a valid tool name", tool.Name), hint)
		return
	}
	if before, taken := r.tools[tool.Name]; taken {
		r.addProblem(pos, fmt.Sprintf("%s already declares the tool %q", r.describeLine(before), tool.Name), "choose another name with name=, or give the service a prefix=")
		return
	}
	r.tools[tool.Name] = pos
	r.readFormerNames(tool, b)
}

// readFormerNames sets the names that a tool had before. They are whole, because a prefix may have changed too.
func (r *reader) readFormerNames(tool *model.Tool, b *block) {
	s, ok := b.get("was")
	if !ok {
		return
	}
	for name := range strings.SplitSeq(s.text, ",") {
		before, taken := r.former[name]
		switch {
		case !model.IsToolName(name):
			r.addProblem(s.valuePos, fmt.Sprintf("was=%s: %q is not a valid tool name", s.text, name), "write the names as clients know them, with the prefix of their service, and commas between them")
		case name == tool.Name:
			r.addProblem(s.valuePos, fmt.Sprintf("was=%s is the name that the tool has now", name), "remove it, or give the tool another name with name=")
		case taken:
			r.addProblem(s.valuePos, fmt.Sprintf("%s already has was=%s", r.describeLine(before), name), "only one tool can take the place of another: remove one of the two")
		default:
			r.former[name] = s.valuePos
			tool.Was = append(tool.Was, name)
		}
	}
}

// checkFormerNames reports the former names that tools of the package have today.
func (r *reader) checkFormerNames() {
	for name, pos := range r.former {
		if now, taken := r.tools[name]; taken {
			r.addProblem(pos, fmt.Sprintf("was=%s, but %s declares the tool %[1]q", name, r.describeLine(now)), "a call of that name is for the other tool: remove it here")
		}
	}
}

// describeLine names the file and line of a position, for a message about another one.
func (r *reader) describeLine(pos token.Pos) string {
	p := r.fset.Position(pos)
	return fmt.Sprintf("%s:%d", diag.Relative(r.pkg.Dir, p.Filename), p.Line)
}

// findSetting returns a tool's own setting, or else the default of its service.
func findSetting(key string, own, defaults *block) (setting, bool) {
	if own.has(key) {
		return own.get(key)
	}
	return defaults.get(key)
}

// readPolicy sets how the tool runs. The tool's own settings override those of the service.
func (r *reader) readPolicy(tool *model.Tool, method *ast.Ident, own, defaults *block) {
	find := func(key string) (setting, bool) { return findSetting(key, own, defaults) }
	p := &tool.Policy
	p.Task = model.Forbidden
	if tool.Task {
		p.Task = model.Optional
	}
	if s, ok := find("task"); ok {
		p.Task = model.Support(s.text)
		if tool.Task && p.Task == model.Forbidden {
			pos := s.pos
			if !own.has("task") {
				pos = method.Pos()
			}
			r.addProblem(pos, fmt.Sprintf("%s takes a *mcptask.Task but has task=forbidden", method.Name),
				"remove the parameter, or set task=optional or task=required")
		}
	}
	for key, into := range map[string]*time.Duration{
		"ttl": &p.TTL, "poll": &p.Poll, "grace": &p.Grace, "wait": &p.Wait, "deadline": &p.Deadline,
	} {
		if s, ok := find(key); ok {
			*into = s.duration
		}
	}
	if defaults.allowsFallback() && p.Task != model.Forbidden {
		r.checkWait(own, defaults)
	}
	r.readRestart(p, own, defaults)
	r.checkTTL("deadline", p.Deadline, p, own, defaults)
	r.checkTTL("poll", p.Poll, p, own, defaults)
	r.readConcurrency(p, method, own, defaults)
	r.readChange(p, method, own, defaults)
	r.readLeave(p, method, own, defaults)
	if s, ok := find("immediate"); ok {
		p.Immediate = s.text
	}
}

// checkWait reports wait=0s on a tool with the fallback. Without a limit, a plain call would never go on
// as a task, and clients would give up on it.
func (r *reader) checkWait(own, defaults *block) {
	if s, ok := findSetting("wait", own, defaults); ok && s.duration == 0 {
		r.addProblem(s.pos, "wait=0s means no limit, but with fallback=tools a plain call needs one",
			"remove it for the default of 25s, set a duration such as wait=5m, or set fallback=none on the service")
	}
}

// readWorkflow sets the workflow that is the handler of a tool.
func (r *reader) readWorkflow(tool *model.Tool, service *model.Service, sig signature, b *block) {
	s, ok := b.get("workflow")
	if !ok {
		return
	}
	tool.Workflow = s.text
	name := service.Name + "." + tool.Method
	if !isWorkflowName(s.text) {
		r.addProblem(s.valuePos, fmt.Sprintf("%.200q cannot be the type of a workflow", s.text),
			fmt.Sprintf("the name of a type has at most %d bytes, and only printable characters", longestWorkflowName))
	}
	if !tool.Task {
		r.addProblem(s.pos, name+" is a workflow and takes no *mcptask.Task", "add the parameter after the context: the workflow runs as a task")
	}
	if tool.OutKind == model.Content {
		r.addProblem(sig.out.Pos(), name+" is a workflow and returns *mcptask.Result", "return a struct, or a string for text: the result of a workflow is data")
	}
}

// longestWorkflowName is how long the name of a workflow's type may be in Temporal, in bytes.
const longestWorkflowName = 1000

// isWorkflowName reports whether a name can be the type of a workflow.
func isWorkflowName(name string) bool {
	unprintable := func(c rune) bool { return !unicode.IsPrint(c) }
	return len(name) <= longestWorkflowName && utf8.ValidString(name) && !strings.ContainsFunc(name, unprintable)
}

// concurrencyHint is the way out of concurrency= for tools that never wait in line.
const concurrencyHint = "let the tool run as a task, by a *mcptask.Task parameter and without task=forbidden, or remove concurrency"

// waitsInLine reports whether calls of a tool can wait for a slot: as tasks of a handler that holds one.
func waitsInLine(tool *model.Tool) bool {
	return tool.Policy.Task != model.Forbidden && tool.Workflow == ""
}

// readConcurrency sets how many handlers of a tool run at once. A service's concurrency is the default of the tools
// whose calls can wait in line. The others may stand beside them.
func (r *reader) readConcurrency(p *model.Policy, method *ast.Ident, own, defaults *block) {
	s, ok := findSetting("concurrency", own, defaults)
	switch isOwn, isWorkflow := own.has("concurrency"), own.has("workflow"); {
	case !ok:
	case !isWorkflow && p.Task != model.Forbidden:
		p.Concurrency = s.count
	case isOwn && isWorkflow:
		r.addProblem(s.pos, "concurrency on a workflow, which holds no slot of this process", "remove it, and bound the workers of the workflow's task queue")
	case isOwn:
		r.addProblem(s.pos, fmt.Sprintf("concurrency=%d on %s, whose calls cannot wait in line without a task", s.count, method.Name), concurrencyHint)
	}
}

// attemptsHint is the way out of attempts= for tools that do not restart.
const attemptsHint = "add onlost=restart if the handler may run more than once, or remove attempts"

// readRestart sets whether a task whose worker died runs again, and how often. A service's attempts
// is the default of the tools that restart. The others may stand beside them. A workflow always restarts, and
// a service's deadline does not bound it: the time in which its handler waits for it does not count.
func (r *reader) readRestart(p *model.Policy, own, defaults *block) {
	lost, ok := findSetting("onlost", own, defaults)
	p.Restart = ok && lost.text == "restart"
	if own.has("workflow") {
		if own.has("onlost") && lost.text == "fail" {
			r.addProblem(lost.pos, "onlost=fail on a workflow, which goes on if the server dies", "remove it: a workflow has onlost=restart, so that another run of the handler waits for it")
		}
		if s, ok := own.get("deadline"); ok {
			r.addProblem(s.pos, "deadline on a workflow, which does not work in this process", "remove it: bound the workflow by its WorkflowExecutionTimeout, and its task by ttl")
		}
		p.Restart, p.Attempts, p.Deadline = true, model.WorkflowAttempts, 0
	}
	if p.Restart || lost.bad {
		defaults.restarts = true
	}
	s, ok := findSetting("attempts", own, defaults)
	switch {
	case ok && p.Restart:
		p.Attempts = s.count
	case ok && own.has("attempts") && !lost.bad:
		r.addProblem(s.pos, fmt.Sprintf("attempts=%d has no effect without onlost=restart", s.count), attemptsHint)
	}
}

// readChange sets whether a stored task runs although its arguments no longer fit. Another run for a workflow only waits
// for it, and does not read them.
func (r *reader) readChange(p *model.Policy, method *ast.Ident, own, defaults *block) {
	s, ok := findSetting("onchange", own, defaults)
	switch {
	case own.has("workflow"):
		if s, ok := own.get("onchange"); ok {
			r.addProblem(s.pos, "onchange on a workflow, which has got its arguments already", "remove it: the server goes on to wait for the workflow")
		}
		p.RunChanged = true
	case p.Task != model.Forbidden:
		p.RunChanged = ok && s.text == "run"
	case own.has("onchange"):
		r.addProblem(s.pos, fmt.Sprintf("onchange=%s on %s, which never runs as a task", s.text, method.Name), changeHint)
	}
}

// changeHint is the way out of onchange= for tools that never run as tasks.
const changeHint = "let the tool run as a task, by a *mcptask.Task parameter and without task=forbidden, or remove onchange"

// readLeave sets whether the work goes on when its caller leaves. The fallback tools have to find it then. A service's
// onleave=keep is the default of the tools that may run as tasks. The others may stand beside them.
func (r *reader) readLeave(p *model.Policy, method *ast.Ident, own, defaults *block) {
	s, ok := findSetting("onleave", own, defaults)
	switch {
	case !ok || s.text != "keep":
	case p.Task != model.Forbidden:
		p.Keep = true
	case own.has("onleave"):
		r.addProblem(s.pos, fmt.Sprintf("onleave=keep on %s, which never runs as a task", method.Name), keepHint)
	}
	if fallback, none := defaults.get("fallback"); none && fallback.text == "none" && p.Keep && own.has("onleave") {
		r.addProblem(s.pos, keepWithoutFallback, keepFallbackHint)
	}
}

const (
	keepWithoutFallback = "onleave=keep with fallback=none: no tool would find the work again"
	keepFallbackHint    = "remove one of the two"
)

// keepHint is the way out of onleave=keep for tools that never run as tasks.
const keepHint = "let the tool run as a task, by a *mcptask.Task parameter and without task=forbidden, or remove onleave"

// checkTTL reports a duration that is longer than the task is kept.
func (r *reader) checkTTL(key string, value time.Duration, p *model.Policy, own, defaults *block) {
	ttl := cmp.Or(p.TTL, model.DefaultTTL)
	if value <= ttl {
		return
	}
	at, ok := own.get(key)
	if !ok {
		if at, ok = own.get("ttl"); !ok {
			at, _ = defaults.get(key)
		}
	}
	r.addProblem(at.pos, fmt.Sprintf("%s=%s is longer than the ttl, %s", key, words.Duration(value), words.Duration(ttl)),
		"a task is deleted when its ttl ends; make the ttl longer or the "+key+" shorter")
}

func (r *reader) readAnnotations(tool *model.Tool, own, defaults *block) {
	a := &tool.Annotations
	for key, into := range map[string]**bool{
		"readonly": &a.ReadOnly, "destructive": &a.Destructive, "idempotent": &a.Idempotent, "openworld": &a.OpenWorld,
	} {
		if s, ok := findSetting(key, own, defaults); ok {
			*into = &s.flag
		}
	}
}
