package taskserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// The names of the fallback tools, after the service's prefix.
const (
	ToolTaskStatus = "task_status"
	ToolTaskResult = "task_result"
	ToolTaskCancel = "task_cancel"
	ToolTaskAnswer = "task_answer"
	ToolTaskList   = "task_list"
)

// catalog has the tools of a server, checked and compiled.
type catalog struct {
	mu sync.RWMutex
	// tools has each tool under its name and under its former names.
	tools map[string]*registeredTool
	// order has the names of the tools, names their former ones too, and services the services, in the order of
	// declaration.
	order, names []string
	services     []*mcptask.Tools
	// revisions are the revisions that the server's options name. Each service must
	// know them.
	revisions []string
	// runsElsewhere is whether Options.Executor is set, which does not bound single tools.
	runsElsewhere bool
	// reserved maps the names of fallback tools to the service that has them.
	reserved map[string]string
}

// addService registers a service, or returns everything that is wrong with it.
func (c *catalog) addService(service *mcptask.Tools) []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := addition{catalog: c, service: service, tools: map[string]*registeredTool{}, reserved: maps.Clone(c.reserved)}
	if isNil(service.Impl) {
		a.fault("the implementation is nil")
	} else if service.Fault != nil {
		a.fault("%w", service.Fault)
	}
	switch service.Fallback {
	case "", mcptask.FallbackNone, mcptask.FallbackTools:
	default:
		a.fault("its fallback %q is not none or tools", service.Fallback)
	}
	a.reserveFallbackTools()
	a.compileErrors()
	for _, t := range service.Tools {
		a.addTool(t)
	}
	a.checkCapabilities()
	if a.faults != nil {
		return a.faults
	}
	maps.Copy(c.tools, a.tools)
	c.order, c.names, c.reserved = append(c.order, a.order...), append(c.names, a.names...), a.reserved
	c.services = append(c.services, service)
	return nil
}

// listNames returns the names of all tools, and their former names: stored tasks may have them.
func (c *catalog) listNames() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Clone(c.names)
}

// currentName returns the name that a tool has now. It returns the given name if the tool is not here.
func (c *catalog) currentName(tool string) string {
	if t, ok := c.findTool(tool); ok {
		return t.Spec.Name
	}
	return tool
}

// addition is a service on its way into the catalog.
type addition struct {
	catalog      *catalog
	service      *mcptask.Tools
	tools        map[string]*registeredTool
	errors       map[string]*validate.Schema // of the fields of typed errors, by code
	order, names []string
	reserved     map[string]string // the catalog's and the service's own
	faults       []error
}

func (a *addition) fault(format string, args ...any) {
	a.faults = append(a.faults, fmt.Errorf("mcptask: service %s: "+format, append([]any{a.service.Service}, args...)...))
}

func (a *addition) reserveFallbackTools() {
	if a.service.Fallback != mcptask.FallbackTools {
		return
	}
	for _, name := range []string{ToolTaskStatus, ToolTaskResult, ToolTaskCancel, ToolTaskAnswer, ToolTaskList} {
		name = a.service.Prefix + name
		a.reserved[name] = a.service.Service
		if other := a.catalog.tools[name]; other != nil {
			a.fault("its fallback tool %q is %s: give one of them a prefix", name, other.describeName(name))
		}
	}
}

func (a *addition) compileErrors() {
	a.errors = map[string]*validate.Schema{}
	for _, e := range a.service.Errors {
		if e.Schema == "" {
			continue
		}
		compiled, err := validate.Compile(e.Schema, false)
		if err != nil {
			a.fault("error %q: %w", e.Code, err)
		}
		a.errors[e.Code] = compiled
	}
}

func (a *addition) addTool(t mcptask.Tool) {
	name := t.Spec.Name
	compiled, faults := compileTool(a.service, t)
	compiled.errors = a.errors
	for _, err := range faults {
		a.fault("tool %q: %w", name, err)
	}
	if n := compiled.Spec.Policy.Concurrency; n > 0 && a.catalog.runsElsewhere {
		a.fault("tool %q: concurrency %d bounds only the local executor: leave Concurrency 0, and bound the tool in Options.Executor", name, n)
	}
	if a.enter(name, compiled) {
		a.order = append(a.order, name)
	}
	for _, was := range t.Spec.Was {
		switch {
		case !toolNamePattern.MatchString(was):
			a.fault("tool %q: its former name %q is not %s", name, was, toolNameRule)
		case was == name:
			a.fault("tool %q: its former name is the one that it has now: remove it from Was", name)
		default:
			a.enter(was, compiled)
		}
	}
}

// enter enters a tool under its name or a former one, unless that belongs to another tool.
func (a *addition) enter(name string, tool *registeredTool) bool {
	other := cmp.Or(a.catalog.tools[name], a.tools[name])
	by, isReserved := a.reserved[name]
	wayOut := "give one of them a prefix or a name"
	if tool.Spec.Name != name || other != nil && other.Spec.Name != name {
		wayOut = "remove the former name, which is in Was, or in was= of a declaration"
	}
	switch {
	case other != nil:
		a.fault("%q is %s, and %s: %s", name, tool.describeName(name), other.describeName(name), wayOut)
	case isReserved:
		a.fault("%q is %s, and a fallback tool of service %s: %s", name, tool.describeName(name), by, wayOut)
	default:
		a.tools[name], a.names = tool, append(a.names, name)
		return true
	}
	return false
}

func (a *addition) checkCapabilities() {
	for revision, declared := range a.service.Capabilities {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(declared), &object); declared != "" && err != nil {
			a.fault("capabilities of %s: %w", revision, err)
		}
	}
	if a.service.Capabilities == nil {
		return
	}
	for _, revision := range a.catalog.revisions {
		if a.service.Capabilities[revision] == "" && mcptask.Declared()[revision] != "" {
			a.fault("Options.Revisions has %s, which the service is not generated for: name it in mcptaskgen's --revision, beside all that are to stay", revision)
		}
	}
}

// findTool returns a tool by its name, or by a former one.
func (c *catalog) findTool(name string) (*registeredTool, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	t, ok := c.tools[name]
	return t, ok
}

// registeredTool is a tool as the server keeps it: checked and compiled.
type registeredTool struct {
	mcptask.Tool
	service *mcptask.Tools
	input   *validate.Schema
	output  *validate.Schema // nil if the tool has no output schema
	errors  map[string]*validate.Schema
}

// describeName says what a name is of the tool.
func (t *registeredTool) describeName(name string) string {
	if t.Spec.Name == name {
		return "a tool of service " + t.service.Service
	}
	return fmt.Sprintf("a former name of the tool %q of service %s", t.Spec.Name, t.service.Service)
}

// toolNameRule says which names tools may have.
const toolNameRule = "1 to 128 letters, digits, underscores, hyphens or dots"

var toolNamePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// compileTool checks a tool, compiles its schemas and returns all its faults.
func compileTool(service *mcptask.Tools, t mcptask.Tool) (r *registeredTool, faults []error) {
	if t.Fault != nil {
		faults = append(faults, t.Fault)
	}
	if t.Bind == nil {
		faults = append(faults, errors.New("it has no handler: make it with NewTool"))
	}
	if !toolNamePattern.MatchString(t.Spec.Name) {
		faults = append(faults, errors.New("its name is not "+toolNameRule))
	}
	r = &registeredTool{Tool: t, service: service}
	var err error
	if r.Spec.Policy, err = normalizePolicy(service, t.Spec.Policy); err != nil {
		faults = append(faults, err)
	}
	if r.input, err = validate.Compile(t.Spec.InputSchema, true); err != nil {
		faults = append(faults, fmt.Errorf("input schema: %w", err))
	} else if t.Bind != nil {
		_, unread := t.Bind(json.RawMessage("{}"))
		if _, err := t.Bind(r.input.Defaults()); err != nil && unread == nil {
			faults = append(faults, fmt.Errorf("input schema: the handler cannot read the defaults: %w", err))
		}
	}
	if t.Spec.OutputSchema != "" {
		if r.output, err = validate.Compile(t.Spec.OutputSchema, false); err != nil {
			faults = append(faults, fmt.Errorf("output schema: %w", err))
		}
	}
	for _, question := range t.Spec.Questions {
		if _, err = validate.Compile(question.Schema, true); err != nil {
			faults = append(faults, fmt.Errorf("question %q: %w", question.Name, err))
		}
	}
	return r, faults
}

// warnOfMemoryStore logs the tools that have onlost=restart if Options.Store is not set: the server's own store keeps no task
// that could run again after the process. It logs once.
func (b *Backend) warnOfMemoryStore(services ...mcptask.Tools) {
	if !b.ownStore {
		return
	}
	var names []string
	for _, service := range services {
		for _, t := range service.Tools {
			spec, _ := b.Tool(t.Spec.Name)
			if spec.Policy.OnLost == mcptask.RestartWhenLost && spec.Policy.Task != mcptask.TaskForbidden {
				names = append(names, spec.Name)
			}
		}
	}
	if len(names) > 0 {
		b.memoryWarning.Do(func() {
			b.logger.Warn("tasks of tools with onlost=restart are lost with the process: set Options.Store to a durable store, "+
				"such as that of runtime/sqlite, or to taskstore.NewMemory() if they may be lost", "tools", names)
		})
	}
}

// Tools lists the server's tools in the order of declaration.
func (b *Backend) Tools() []mcptask.ToolSpec {
	b.catalog.mu.RLock()
	defer b.catalog.mu.RUnlock()
	specs := make([]mcptask.ToolSpec, len(b.catalog.order))
	for i, name := range b.catalog.order {
		specs[i] = b.catalog.tools[name].Spec
	}
	return specs
}

// Tool returns a tool's spec with its policy's defaults filled in. The tool may be called by a former name.
func (b *Backend) Tool(name string) (mcptask.ToolSpec, bool) {
	t, ok := b.catalog.findTool(name)
	if !ok {
		return mcptask.ToolSpec{}, false
	}
	return t.Spec, true
}

// Service returns the service that a tool belongs to. The tool may be called by a former name.
func (b *Backend) Service(tool string) (mcptask.Tools, bool) {
	t, ok := b.catalog.findTool(tool)
	if !ok {
		return mcptask.Tools{}, false
	}
	return *t.service, true
}

// Capabilities returns the JSON objects that the services declare in a revision.
func (b *Backend) Capabilities(revision string) (declared []string) {
	b.catalog.mu.RLock()
	defer b.catalog.mu.RUnlock()
	for _, service := range b.catalog.services {
		if object := service.Capabilities[revision]; object != "" {
			declared = append(declared, object)
		}
	}
	return declared
}

// isNil reports whether v is nil, or an interface that holds a nil pointer, map,
// function, slice or channel.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch rv := reflect.ValueOf(v); rv.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Interface, reflect.Slice, reflect.Chan:
		return rv.IsNil()
	}
	return false
}
