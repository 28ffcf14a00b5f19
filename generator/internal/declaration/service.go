package declaration

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsonschema"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// Defaults: how long a plain call may block before a fallback tool takes over, given that common
// clients give up at 120 seconds, and how long a task is kept.
const (
	fallbackWait = 90 * time.Second
	defaultTTL   = 24 * time.Hour
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
}

func (r *reader) readService(spec *ast.TypeSpec, iface *ast.InterfaceType, b *block) *model.Service {
	service := &model.Service{Name: spec.Name.Name, Doc: r.docs[spec].Text()}
	r.positions[service] = spec.Name.Pos()
	if s, ok := b.get("prefix"); ok {
		service.Prefix = s.text
		if !toolName.MatchString(s.text) {
			r.addProblem(s.valuePos, fmt.Sprintf("prefix=%q cannot start the name of a tool", s.text),
				"a name has 1 to 128 letters, digits, _, - and .")
			service.Prefix = ""
		}
	}
	if s, ok := b.get("fallback"); ok {
		service.Fallback = s.text == "tools"
	}
	if service.Fallback {
		for _, name := range []string{"task_status", "task_result", "task_cancel", "task_answer"} {
			// Services with the same prefix share these tools.
			if pos, taken := r.tools[service.Prefix+name]; taken && pos.IsValid() {
				r.addProblem(b.pos, fmt.Sprintf("fallback=tools adds a tool %q, which %s also declares",
					service.Prefix+name, r.describeLine(pos)), "give the service a prefix=")
			}
			r.tools[service.Prefix+name] = token.NoPos
		}
	}
	methods := map[string]bool{}
	r.readMethods(service, iface, b, methods, map[*ast.InterfaceType]bool{})
	if len(methods) == 0 && len(iface.Methods.List) == 0 {
		r.addProblem(spec.Name.Pos(), "service "+service.Name+" has no methods", "add a method for each tool")
	} else if s, ok := b.get("attempts"); ok && !b.restarts {
		r.addProblem(s.pos, fmt.Sprintf("attempts=%d has no effect: no tool of %s has onlost=restart", s.count, service.Name), attemptsHint)
	}
	return service
}

// readMethods reads the methods of an interface in source order. It includes the methods of
// embedded interfaces of the same package.
func (r *reader) readMethods(service *model.Service, iface *ast.InterfaceType, b *block, done map[string]bool, open map[*ast.InterfaceType]bool) {
	if open[iface] {
		return
	}
	open[iface] = true
	r.readInterface[iface] = true
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

// readTool reads a method. It returns nil if the method cannot be a tool.
func (r *reader) readTool(service *model.Service, field *ast.Field, defaults *block) *model.Tool {
	b := r.directives[field]
	method := field.Names[0]
	tool := &model.Tool{Method: method.Name, Doc: field.Doc.Text(), Description: jsonschema.Description(field.Doc.Text())}
	r.positions[tool] = method.Pos()
	r.readName(service, tool, method, b)
	if s, ok := b.get("title"); ok {
		tool.Title = s.text
	}
	sig, ok := r.readSignature(tool, service, field)
	r.readPolicy(service, tool, method, b, defaults)
	r.readAnnotations(tool, b, defaults)
	if !ok {
		return nil
	}
	r.readSchemas(tool, sig, b)
	return tool
}

func (r *reader) readName(service *model.Service, tool *model.Tool, method *ast.Ident, b *block) {
	name, pos := snakeCase(method.Name), method.Pos()
	if s, ok := b.get("name"); ok {
		name, pos = s.text, s.valuePos
	}
	tool.Name = service.Prefix + name
	if !toolName.MatchString(tool.Name) {
		hint := "a name has 1 to 128 letters, digits, _, - and ."
		if pos == method.Pos() {
			hint += "; set one with name="
		}
		r.addProblem(pos, fmt.Sprintf("%q is not a valid tool name", tool.Name), hint)
		return
	}
	before, taken := r.tools[tool.Name]
	switch {
	case taken && !before.IsValid():
		r.addProblem(pos, fmt.Sprintf("fallback=tools already adds a tool %q", tool.Name), "choose another name with name=, or give the service a prefix=")
	case taken:
		r.addProblem(pos, fmt.Sprintf("%s already declares the tool %q", r.describeLine(before), tool.Name), "choose another name with name=, or give the service a prefix=")
	default:
		r.tools[tool.Name] = pos
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
func (r *reader) readPolicy(service *model.Service, tool *model.Tool, method *ast.Ident, own, defaults *block) {
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
	if s, ok := find("wait"); service.Fallback && !ok && !s.bad && p.Task != model.Forbidden {
		p.Wait = fallbackWait
	}
	r.checkTTL("deadline", p.Deadline, p, own, defaults)
	r.checkTTL("poll", p.Poll, p, own, defaults)
	r.readRestart(p, own, defaults)
	if s, ok := find("immediate"); ok {
		p.Immediate = s.text
	}
}

// attemptsHint is the way out of attempts= for tools that do not restart.
const attemptsHint = "add onlost=restart if the handler may run more than once, or remove attempts"

// readRestart sets whether a task whose worker died runs again, and how often. A service's attempts
// is the default of the tools that restart. The others may stand beside them.
func (r *reader) readRestart(p *model.Policy, own, defaults *block) {
	lost, ok := findSetting("onlost", own, defaults)
	p.Restart = ok && lost.text == "restart"
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

// checkTTL reports a duration that is longer than the task is kept.
func (r *reader) checkTTL(key string, value time.Duration, p *model.Policy, own, defaults *block) {
	ttl := cmp.Or(p.TTL, defaultTTL)
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
