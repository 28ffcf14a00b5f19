package mcptask

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/plain"
)

// catalog holds the tools of a server, checked and compiled.
type catalog struct {
	mu    sync.RWMutex
	tools map[string]*registeredTool
	order []string
	// services are in the order of declaration too.
	services []*Tools
	// revisions are those that the server's options name, which each service has to know.
	revisions []string
	// reserved are the names of fallback tools, and the service that has them.
	reserved map[string]string
}

// add registers one service, or returns everything that is wrong with it.
func (c *catalog) addService(service *Tools) (faults []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("mcptask: service %s: "+format, append([]any{service.Service}, args...)...))
	}
	if plain.IsNil(service.Impl) {
		fault("the implementation is nil")
	}
	added := map[string]*registeredTool{}
	var order []string
	reserved := maps.Clone(c.reserved)
	if service.Fallback == FallbackTools {
		for _, name := range []string{ToolTaskStatus, ToolTaskResult, ToolTaskCancel, ToolTaskAnswer} {
			name = service.Prefix + name
			reserved[name] = service.Service
			if other := c.tools[name]; other != nil {
				fault("its fallback tool %q is a tool of service %s: give one of them a prefix", name, other.service.Service)
			}
		}
	}
	for _, t := range service.Tools {
		name := t.spec.Name
		r, wrong := compileTool(service, t)
		for _, err := range wrong {
			fault("tool %q: %w", name, err)
		}
		other := c.tools[name]
		if other == nil {
			other = added[name]
		}
		if other != nil {
			fault("tool %q is also in service %s: give one of them a prefix or a name", name, other.service.Service)
			continue
		}
		if by, ok := reserved[name]; ok {
			fault("tool %q is a fallback tool of service %s: give one of them a prefix or a name", name, by)
			continue
		}
		added[name] = r
		order = append(order, name)
	}
	for revision, declared := range service.Capabilities {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(declared), &object); declared != "" && err != nil {
			fault("capabilities of %s: %w", revision, err)
		}
	}
	for _, revision := range c.revisions {
		if service.Capabilities != nil && service.Capabilities[revision] == "" && Declared()[revision] != "" {
			fault("Options.Revisions has %s, which the service is not generated for: name it in mcptaskgen's --revision, beside all that are to stay", revision)
		}
	}
	if faults != nil {
		return faults
	}
	for _, name := range order {
		c.tools[name] = added[name]
	}
	c.order, c.reserved = append(c.order, order...), reserved
	c.services = append(c.services, service)
	return nil
}

func (c *catalog) findTool(name string) (*registeredTool, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	t, ok := c.tools[name]
	return t, ok
}

// Register adds a service to a server that is made already; an adapter that
// takes in the tools of an SDK uses it. It adds all of it or nothing.
func (s *Server) Register(service Tools) error { return errors.Join(s.catalog.addService(&service)...) }

// Tools lists what the server offers, in the order of declaration.
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

// Service returns the service that a tool is of.
func (s *Server) Service(tool string) (Tools, bool) {
	t, ok := s.catalog.findTool(tool)
	if !ok {
		return Tools{}, false
	}
	return *t.service, true
}

// Capabilities are the JSON objects that the services declare in a revision.
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
