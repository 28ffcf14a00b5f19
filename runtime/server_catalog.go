package mcptask

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
)

// catalog has the tools of a server, checked and compiled.
type catalog struct {
	mu    sync.RWMutex
	tools map[string]*registeredTool
	// order has the names of the tools, and services the services, in the order of
	// declaration.
	order    []string
	services []*Tools
	// revisions are the revisions that the server's options name. Each service must
	// know them.
	revisions []string
	// reserved maps the names of fallback tools to the service that has them.
	reserved map[string]string
}

// addService registers a service, or returns everything that is wrong with it.
func (c *catalog) addService(service *Tools) []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := addition{catalog: c, service: service, tools: map[string]*registeredTool{}, reserved: maps.Clone(c.reserved)}
	if isNil(service.Impl) {
		a.fault("the implementation is nil")
	}
	a.reserveFallbackTools()
	for _, t := range service.Tools {
		a.addTool(t)
	}
	a.checkCapabilities()
	if a.faults != nil {
		return a.faults
	}
	maps.Copy(c.tools, a.tools)
	c.order, c.reserved = append(c.order, a.order...), a.reserved
	c.services = append(c.services, service)
	return nil
}

// listNames returns the names of all tools.
func (c *catalog) listNames() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Clone(c.order)
}

// addition is a service on its way into the catalog.
type addition struct {
	catalog  *catalog
	service  *Tools
	tools    map[string]*registeredTool
	order    []string
	reserved map[string]string // the catalog's and the service's own
	faults   []error
}

func (a *addition) fault(format string, args ...any) {
	a.faults = append(a.faults, fmt.Errorf("mcptask: service %s: "+format, append([]any{a.service.Service}, args...)...))
}

func (a *addition) reserveFallbackTools() {
	if a.service.Fallback != FallbackTools {
		return
	}
	for _, name := range []string{ToolTaskStatus, ToolTaskResult, ToolTaskCancel, ToolTaskAnswer} {
		name = a.service.Prefix + name
		a.reserved[name] = a.service.Service
		if other := a.catalog.tools[name]; other != nil {
			a.fault("its fallback tool %q is a tool of service %s: give one of them a prefix", name, other.service.Service)
		}
	}
}

func (a *addition) addTool(t Tool) {
	name := t.spec.Name
	compiled, faults := compileTool(a.service, t)
	for _, err := range faults {
		a.fault("tool %q: %w", name, err)
	}
	other := a.catalog.tools[name]
	if other == nil {
		other = a.tools[name]
	}
	if other != nil {
		a.fault("tool %q is also in service %s: give one of them a prefix or a name", name, other.service.Service)
		return
	}
	if by, ok := a.reserved[name]; ok {
		a.fault("tool %q is a fallback tool of service %s: give one of them a prefix or a name", name, by)
		return
	}
	a.tools[name] = compiled
	a.order = append(a.order, name)
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
		if a.service.Capabilities[revision] == "" && Declared()[revision] != "" {
			a.fault("Options.Revisions has %s, which the service is not generated for: name it in mcptaskgen's --revision, beside all that are to stay", revision)
		}
	}
}

// findTool returns a tool by its name.
func (c *catalog) findTool(name string) (*registeredTool, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	t, ok := c.tools[name]
	return t, ok
}

// registeredTool is a tool as the server keeps it: checked and compiled.
type registeredTool struct {
	Tool
	service *Tools
	input   *validate.Schema
	output  *validate.Schema // nil if the tool has no output schema
}

// maxToolName bounds the bytes of a tool's name.
const maxToolName = 128

var toolNamePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// compileTool checks a tool, compiles its schemas and returns all its faults.
func compileTool(service *Tools, t Tool) (r *registeredTool, faults []error) {
	if t.fault != nil {
		faults = append(faults, t.fault)
	}
	if t.bind == nil {
		faults = append(faults, errors.New("it has no handler: make it with NewTool"))
	}
	if len(t.spec.Name) > maxToolName || !toolNamePattern.MatchString(t.spec.Name) {
		faults = append(faults, errors.New("its name is not 1 to 128 letters, digits, underscores, hyphens or dots"))
	}
	r = &registeredTool{Tool: t, service: service}
	var err error
	if r.spec.Policy, err = t.spec.Policy.normalize(); err != nil {
		faults = append(faults, err)
	}
	if r.input, err = validate.Compile(t.spec.InputSchema, true); err != nil {
		faults = append(faults, fmt.Errorf("input schema: %w", err))
	} else if t.bind != nil {
		_, unread := t.bind(json.RawMessage("{}"))
		if _, err := t.bind(r.input.Defaults()); err != nil && unread == nil {
			faults = append(faults, fmt.Errorf("input schema: the handler cannot read the defaults: %w", err))
		}
	}
	if t.spec.OutputSchema != "" {
		if r.output, err = validate.Compile(t.spec.OutputSchema, false); err != nil {
			faults = append(faults, fmt.Errorf("output schema: %w", err))
		}
	}
	return r, faults
}

// Register adds a service to a running server, or nothing of it. An adapter uses it
// that takes over the tools of an SDK.
func (s *Server) Register(service Tools) error {
	if err := errors.Join(s.catalog.addService(&service)...); err != nil {
		return err
	}
	s.warnOfMemoryStore(service)
	return nil
}

// warnOfMemoryStore logs the tools that have onlost=restart although the store keeps no task
// that could run again after the process.
func (s *Server) warnOfMemoryStore(services ...Tools) {
	if !s.KeepsInMemory() {
		return
	}
	var names []string
	for _, service := range services {
		for _, t := range service.Tools {
			spec, _ := s.Tool(t.spec.Name)
			if spec.Policy.OnLost == RestartWhenLost && spec.Policy.Task != TaskForbidden {
				names = append(names, spec.Name)
			}
		}
	}
	if len(names) > 0 {
		s.logger.Warn("tasks of tools with onlost=restart are lost with the process: "+
			"set Options.Store to a durable store, such as runtime/sqlite", "tools", names)
	}
}

// Tools lists the server's tools in the order of declaration.
func (s *Server) Tools() []ToolSpec {
	s.catalog.mu.RLock()
	defer s.catalog.mu.RUnlock()
	specs := make([]ToolSpec, len(s.catalog.order))
	for i, name := range s.catalog.order {
		specs[i] = s.catalog.tools[name].spec
	}
	return specs
}

// Tool returns a tool's spec with its policy's defaults filled in.
func (s *Server) Tool(name string) (ToolSpec, bool) {
	t, ok := s.catalog.findTool(name)
	if !ok {
		return ToolSpec{}, false
	}
	return t.spec, true
}

// Service returns the service that a tool belongs to.
func (s *Server) Service(tool string) (Tools, bool) {
	t, ok := s.catalog.findTool(tool)
	if !ok {
		return Tools{}, false
	}
	return *t.service, true
}

// Capabilities returns the JSON objects that the services declare in a revision.
func (s *Server) Capabilities(revision string) (declared []string) {
	s.catalog.mu.RLock()
	defer s.catalog.mu.RUnlock()
	for _, service := range s.catalog.services {
		if object := service.Capabilities[revision]; object != "" {
			declared = append(declared, object)
		}
	}
	return declared
}
