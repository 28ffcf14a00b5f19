package model

import (
	"regexp"
	"unicode"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// IsToolName reports whether a tool of the runtime may have a name.
func IsToolName(name string) bool { return toolName.MatchString(name) }

// ToolsFunc names the function that binds an implementation to the tools of a service.
func ToolsFunc(service string) string { return service + "Tools" }

// ServerType names the interface that a server of a list of tools implements.
func ServerType(service string) string { return service + "Server" }

// EntryConst names the constant with a tool of a list of tools.
func EntryConst(service, method string) string { return lowerFirstWord(service) + method + "Tool" }

// ClientType names the client type of a service.
func ClientType(service string) string { return service + "Client" }

// ClientFunc names the constructor of a service's client. It is exported if the service is.
func ClientFunc(service string) string {
	name := "New" + words.UpperFirst(ClientType(service))
	if !unicode.IsUpper([]rune(service)[0]) {
		return lowerFirstWord(name)
	}
	return name
}

// AskFunc names the function that asks a question. It is exported if the input is.
func AskFunc(input string) string { return prefixName("Ask", input) }

// AnswerFunc names the function that answers a question. It is exported if the input is.
func AnswerFunc(input string) string { return prefixName("Answer", input) }

// SpecFunc names the function that describes an input; see [Package.SpecFunc].
func SpecFunc(input string) string { return lowerFirstWord(input) + "Input" }

// ErrorSpecFunc names the function that describes an error.
func ErrorSpecFunc(name string) string { return lowerFirstWord(name) + "Spec" }

// CodeMethod names the method that returns the code of an error.
const CodeMethod = "ToolErrorCode"

// WorkflowSpecFunc names the function that describes an input to workflows. It is exported if the input
// is.
func WorkflowSpecFunc(input string) string { return input + "Input" }

// WorkflowsType names the type that implements the tools of a service that are workflows.
func WorkflowsType(service string) string { return service + "Workflows" }

// RunnerField names the field of that type.
const RunnerField = "Runner"

// ServiceNames returns the identifiers that a service adds to its package.
func ServiceNames(service string) []string {
	return []string{ToolsFunc(service), ClientType(service), ClientFunc(service)}
}

// InputNames returns the identifiers that an input adds to its package. In a package with workflows they
// include both names of the function that describes the input: a client's half has the other one.
func InputNames(input string, workflows bool) []string {
	names := []string{AskFunc(input), AnswerFunc(input), SpecFunc(input)}
	if spec := WorkflowSpecFunc(input); workflows && spec != SpecFunc(input) {
		names = append(names, spec)
	}
	return names
}

// ClientNames returns the methods that a tool adds to the client of its service.
func ClientNames(tool *Tool) []string {
	if tool.Policy.Task == Forbidden {
		return []string{tool.Method}
	}
	return []string{tool.Method, "Start" + tool.Method, "Resume" + tool.Method}
}

func prefixName(word, input string) string {
	if unicode.IsUpper([]rune(input)[0]) {
		return word + input
	}
	return lowerFirstWord(word) + words.UpperFirst(input)
}

// lowerFirstWord puts the first word of a name in lower case: HTTPService becomes httpService.
func lowerFirstWord(name string) string {
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsUpper(r) || i > 0 && i+1 < len(runes) && unicode.IsLower(runes[i+1]) {
			break
		}
		runes[i] = unicode.ToLower(r)
	}
	return string(runes)
}
