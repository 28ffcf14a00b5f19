package generator

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/emit"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/toolschema"
)

// awkward are names with a meaning in Go, in generated code or in encoding/json.
var awkward = strings.Fields("type func range map go any error nil string bool true false iota len init main _ __ " +
	"context json mcptask mcptask2 slices time url big netip Context Task Tools Result Call Run Start Resume Ask Answer " +
	"ctx task in impl conn c f err zero opts token step message answer answer2 p P S s In Out in2 " +
	"TaskStatus TaskStatusWorking taskCapabilities NewSClient STools SClient sRunInput sRunOutput AskIn " +
	"w Runner SWorkflows InWorkflows QuestionInput questionInput RunWorkflow StartRun ResumeRun StartStart RunInput RunOutput AdditionalProperties MarshalJSON UnmarshalJSON String " +
	"Error x X ID Id id iD HTTPServerURL ı İ ſ K Å ǅ ß ñ é 天気 ä_ _Ä a1 A1 a_1 A_1 𝒜 x٣")

// known returns a text that identifier turns into an awkward name.
func known(i int) string { return "#" + string(rune(' '+i%len(awkward))) }

// identifier turns any text into a name: an awkward one, or one made of the letters and digits
// of the text.
func identifier(text string) string {
	if runes := []rune(text); len(runes) == 2 && runes[0] == '#' {
		return awkward[int(runes[1])%len(awkward)]
	}
	name := strings.Map(func(r rune) rune {
		if r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
	if name == "" || unicode.IsDigit([]rune(name)[0]) {
		name = "x" + name
	}
	return name
}

// FuzzNames checks any names of packages, services, methods, parameters, types, fields,
// constants and properties in a declaration.
func FuzzNames(f *testing.F) {
	f.Add("p", "S", "Run", "in", "In", "Field", "name,omitempty", "Fast")
	f.Add("mcptask", "CI", "HTTPServerURL", "ctx", "Input", "ID", "-,", "A")
	f.Add("context", "Ci", "Start", "_", "Context", "Context", "a b", "Z")
	f.Add("json", "s", "NewSClient", "mcptask", "Ä", "Ö", "天気", "ñ")
	for i, name := range awkward {
		f.Add(known(i), "S", known(i+1), known(i*3), known(i*5), known(i*7), name, known(i*11))
	}
	w := newWorkshop(f)
	f.Fuzz(func(t *testing.T, pkg, service, method, param, typ, field, property, constant string) {
		for _, workflow := range []string{"", " workflow=Run"} {
			w.checkDeclaration(t, declareNames(workflow, identifier(pkg), identifier(service), identifier(method), identifier(param),
				identifier(typ), identifier(field), property, identifier(constant)))
		}
	})
}

// FuzzListNames checks any names of packages, services, tools, schemas and properties, and any
// values of enums, in a list of tools.
func FuzzListNames(f *testing.F) {
	f.Add("p", "S", "run", "In", "field", "name", "fast")
	f.Add("mcptask", "", "天気", "a/b~c%", "ID", "id", "")
	for i, name := range awkward {
		f.Add(known(i), "S", name, awkward[i*3%len(awkward)], awkward[i*5%len(awkward)], awkward[i*7%len(awkward)], name)
	}
	w := newWorkshop(f)
	f.Fuzz(func(t *testing.T, pkg, service, method, typ, field, property, constant string) {
		w.checkList(t, identifier(pkg), "", listNames(t, service, method, typ, field, property, constant))
	})
}

func declareNames(workflow, pkg, service, method, param, typ, field, property, constant string) []byte {
	tag := "`" + strings.ReplaceAll(fmt.Sprintf("json:%q", property), "`", "") + "`"
	return fmt.Appendf(nil, `package %[1]s

import (
	"context"
	"encoding/json"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//mcptask:service fallback=tools
type %[2]s interface {
	//mcptask:tool name=run%[10]s
	%[3]s(%[4]s context.Context, task *mcptask.Task, in %[5]s, ask Question) (%[5]s, error)
	//mcptask:tool task=required
	%[3]s2(%[4]s context.Context, in2 struct{ A %[5]s; json.Number }) (out struct{ %[6]s %[8]sKind }, err error)
}

//mcptask:service prefix=x
type %[2]s_ interface {
	%[6]s(context.Context) (*mcptask.Result, error)
}

// %[5]s is a type.
type %[5]s struct {
	%[6]s  string %[7]s
	Other  []%[8]sKind
	Itself *%[5]s
}

//mcptask:input message="?"
type Question struct {
	%[6]s %[8]sKind %[7]s
}

type %[8]sKind string

const (
	// %[8]s is one.
	%[8]s %[8]sKind = "a"
	%[8]s2 %[8]sKind = %[9]q
)
`, pkg, service, method, param, typ, field, tag, constant, property, workflow)
}

func listNames(tb testing.TB, service, method, typ, field, property, constant string) []byte {
	tb.Helper()
	type object = map[string]any
	schema := object{
		"type": "object", "required": []string{property}, "additionalProperties": object{"enum": []string{constant, field, strings.ToLower(field)}},
		"properties": object{
			property: object{"$ref": "#/$defs/" + strings.NewReplacer("~", "~0", "/", "~1", "%", "%25").Replace(typ)},
			field:    object{"type": "string", "enum": []string{constant, strings.ToUpper(constant), property, "b", ""}},
			strings.ToLower(field) + "_": object{"type": "object", "properties": object{
				property: object{"type": "integer"}, typ: object{"const": method}, constant: object{"type": []string{"array", "null"}},
			}},
		},
		"$defs": object{typ: object{"type": "object", "properties": object{property: object{"type": "array", "items": object{"$ref": "#"}}}}},
	}
	list, err := json.Marshal([]any{
		object{"serverInfo": object{"name": service}, "tools": []any{}},
		object{"name": method, "description": property, "inputSchema": schema, "outputSchema": schema},
		object{"name": method + "_", "description": typ, "inputSchema": schema},
		object{"name": "Start" + method, "inputSchema": schema},
		object{"name": property + " ", "title": field, "inputSchema": schema, "outputSchema": object{"type": "string", "enum": []string{property}}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return list
}

// checkList generates from a list of tools and checks the result. It must be Go code that gofmt
// does not change and that compiles, and a second run must give the same. Otherwise every
// problem must have a position.
func (w *workshop) checkList(tb testing.TB, pkg, service string, list []byte) (content []byte) {
	tb.Helper()
	generate := func() []byte {
		var problems diag.List
		cfg := toolschema.Config{Path: filepath.Join(w.dir, "tools.json"), Package: pkg, Service: service}
		remote := toolschema.Read(cfg, list, &problems)
		err := problems.Err(w.dir)
		if (err == nil) == (remote == nil) {
			tb.Fatalf("want either a model or an error: %v\n%s", err, list)
		}
		if err != nil {
			checkError(tb, err, "tools.json", list)
			return nil
		}
		content, err := emit.Remote(remote, w.protocol)
		if err != nil {
			tb.Fatalf("%v\n%s", err, list)
		}
		return content
	}
	if !isPackageName(pkg) {
		return nil // generateList refuses it
	}
	bounded(tb, len(list), func() {
		content = generate()
		if again := generate(); string(again) != string(content) {
			tb.Fatalf("a second run differs:\n%s\n-- and --\n%s", content, again)
		}
		if content != nil {
			w.checkGo(tb, nil, content)
		}
	})
	return content
}
