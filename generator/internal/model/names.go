package model

import "unicode"

// ToolsFunc is the function that binds an implementation to the tools of a service.
func ToolsFunc(service string) string { return service + "Tools" }

// ClientType is the client of a service.
func ClientType(service string) string { return service + "Client" }

// ClientFunc makes the client of a service; it is exported where the service is.
func ClientFunc(service string) string {
	name := "New" + upper(ClientType(service))
	if !unicode.IsUpper([]rune(service)[0]) {
		return lower(name)
	}
	return name
}

// InputConst and OutputConst hold the schemas of a tool.
func InputConst(service, method string) string { return lower(service) + method + "Input" }

// OutputConst holds the schema of a tool's output.
func OutputConst(service, method string) string { return lower(service) + method + "Output" }

// AskFunc asks a question; it is exported where the input is.
func AskFunc(input string) string { return verb("Ask", input) }

// AnswerFunc answers a question; it is exported where the input is.
func AnswerFunc(input string) string { return verb("Answer", input) }

// SpecFunc describes an input.
func SpecFunc(input string) string { return lower(input) + "Input" }

// SchemaConst holds the schema of an input.
func SchemaConst(input string) string { return lower(input) + "Schema" }

// ServiceNames are the identifiers that a service brings to its package.
func ServiceNames(service string) []string {
	return []string{ToolsFunc(service), ClientType(service), ClientFunc(service)}
}

// SchemaNames are those that a tool brings.
func SchemaNames(service string, tool *Tool) []string {
	names := []string{InputConst(service, tool.Method)}
	if tool.OutKind == Structured {
		names = append(names, OutputConst(service, tool.Method))
	}
	return names
}

// InputNames are those that an input brings.
func InputNames(input string) []string {
	return []string{AskFunc(input), AnswerFunc(input), SpecFunc(input), SchemaConst(input)}
}

// ClientNames are the methods that a tool brings to the client of its service.
func ClientNames(tool *Tool) []string {
	if tool.Policy.Task == Forbidden {
		return []string{tool.Method}
	}
	return []string{tool.Method, "Start" + tool.Method, "Resume" + tool.Method}
}

func verb(word, input string) string {
	if unicode.IsUpper([]rune(input)[0]) {
		return word + input
	}
	return lower(word) + upper(input)
}

// lower makes the first word of a name small: HTTPService is httpService.
func lower(name string) string {
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsUpper(r) || i > 0 && i+1 < len(runes) && unicode.IsLower(runes[i+1]) {
			break
		}
		runes[i] = unicode.ToLower(r)
	}
	return string(runes)
}

func upper(name string) string {
	runes := []rune(name)
	runes[0] = unicode.ToUpper(runes[0])
	return string(runes)
}
