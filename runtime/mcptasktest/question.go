package mcptasktest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
)

const (
	// maxShown bounds the bytes of a question's texts in a failure.
	maxShown = 200
	// maxFrames bounds how far a question is traced back to its test.
	maxFrames = 100
)

// describeQuestion describes a question in one line: its method, its text, and the schema of its
// answer or its params.
func describeQuestion(kind string, q mcptask.Question) string {
	switch kind {
	case kindForm:
		return fmt.Sprintf("%s %q, answered by %s %s", q.Method, text.Shorten(q.Message, maxShown), q.Input, describeSchema(q.Schema))
	case kindURL:
		return fmt.Sprintf("%s %q, the page %s", q.Method, text.Shorten(q.Message, maxShown), text.Shorten(q.URL, maxShown))
	}
	return q.Method + " " + text.Shorten(string(q.Params), maxShown)
}

// property is a member of an answer, which is flat.
type property struct {
	Type  string            `json:"type"`
	Enum  []json.RawMessage `json:"enum"`
	Items *property         `json:"items"`
}

// describe writes the type of a property.
func (p property) describe() string {
	switch {
	case p.Items != nil:
		return "list of " + p.Items.describe()
	case len(p.Enum) > 0:
		values := make([]string, len(p.Enum))
		for i, v := range p.Enum {
			values[i] = string(v)
		}
		return strings.Join(values, "|")
	case p.Type == "":
		return "any"
	}
	return p.Type
}

// describeSchema describes the schema of an answer, such as {approve?: boolean}.
func describeSchema(schema json.RawMessage) string {
	var s struct {
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return text.Shorten(string(schema), maxShown)
	}
	members := []string{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		optional := "?"
		if slices.Contains(s.Required, name) {
			optional = ""
		}
		members = append(members, name+optional+": "+s.Properties[name].describe())
	}
	return "{" + text.Shorten(strings.Join(members, ", "), maxShown) + "}"
}

// place is the code that asked a question.
type place struct {
	lines string // of the handler, and of the test that called it
	types string // the import path of the answer's type; "" if it is not known
}

// ownPackages are the packages between a handler and its script.
var ownPackages = []string{reflect.TypeFor[mcptask.Task]().PkgPath(), reflect.TypeFor[Script]().PkgPath()}

// findPlace finds the code that asks for an input, on the stack of the calling goroutine. The generated
// function that asks is in the package of the input's type.
func findPlace(input string) place {
	var asked, called, types string
	for frame := range callers() {
		pkg := packageOf(frame.Function)
		line := fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
		switch {
		case asked != "":
		case slices.Contains(ownPackages, pkg):
			continue
		case types == "" && input != "" && frame.Function == pkg+".Ask"+input:
			types = pkg
			continue
		default:
			asked = line
		}
		if strings.HasSuffix(frame.File, "_test.go") {
			called = line // the last one is in the test itself
		}
	}
	if called != "" && called != asked {
		asked += ", called at " + called
	}
	return place{asked, types}
}

// callers yields the frames of the goroutine, the innermost first.
func callers() func(yield func(runtime.Frame) bool) {
	pc := make([]uintptr, maxFrames)
	frames := runtime.CallersFrames(pc[:runtime.Callers(0, pc)])
	return func(yield func(runtime.Frame) bool) {
		for {
			frame, more := frames.Next()
			if frame.Function != "" && packageOf(frame.Function) != "runtime" && !yield(frame) || !more {
				return
			}
		}
	}
}

// callerPackage returns the package that called this one.
func callerPackage() string {
	for frame := range callers() {
		if pkg := packageOf(frame.Function); !slices.Contains(ownPackages, pkg) {
			return pkg
		}
	}
	return ""
}

// packageOf returns the import path of a function's package.
func packageOf(function string) string {
	slash := strings.LastIndex(function, "/") + 1
	name, _, _ := strings.Cut(function[slash:], ".")
	return function[:slash] + name
}

// majorVersion matches the last element of an import path that does not name its package.
var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// suggest returns a script that fits a question, as Go code. test is the import path of the test.
func (p place) suggest(kind string, q mcptask.Question, test string) string {
	switch kind {
	case kindURL:
		return fmt.Sprintf("mcptasktest.AcceptURL(%q)", q.Key)
	case kindModel:
		return fmt.Sprintf(`mcptasktest.SampleText(%q, "text")`, q.Key)
	case kindRoots:
		return fmt.Sprintf(`mcptasktest.Roots(%q, mcptask.Root{URI: "file:///home/ann"})`, q.Key)
	}
	answer := cmp.Or(q.Input, "Answer")
	if p.types != "" && p.types != test {
		name := path.Base(p.types)
		if majorVersion.MatchString(name) {
			name = path.Base(path.Dir(p.types))
		}
		answer = name + "." + answer
	}
	return fmt.Sprintf("mcptasktest.Accept(%q, %s{})", q.Key, answer)
}
