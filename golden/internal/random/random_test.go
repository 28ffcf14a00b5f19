// Package random tests schemas and decoding with random types and values. What is sent fits its schema, as three
// validators read it. A value that a schema admits is decoded, or refused with its place.
package random

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	google "github.com/google/jsonschema-go/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcptaskgen/mcptaskgen/generator"
)

var seed = flag.Uint64("seed", 1, "the `seed` of the random types and values")

const (
	structs     = 100
	writtenEach = 20 // values of each struct
	sentEach    = 60 // values that are sent to each tool
)

// TestRandomTypes makes structs with random types and tags, and a tool for each.
func TestRandomTypes(t *testing.T) {
	defer func() {
		if t.Failed() {
			t.Logf("the seed is %d: go test ./golden/internal/random -seed %[1]d", *seed)
		}
	}()
	source := newSource(*seed, structs)
	p := buildProgram(t, source)
	random := rand.New(rand.NewPCG(*seed, 1))
	var tools []*tool
	if err := json.Unmarshal(p.line(t), &tools); err != nil || len(tools) != structs {
		t.Fatalf("%d tools, %v", len(tools), err)
	}
	faults := faults{T: t, source: source}
	decoded, refused := 0, 0
	for _, tool := range tools {
		tool.compile(t)
		var written, answers []answer
		p.exchange(t, map[string]any{"tool": tool.Name, "values": writtenEach}, &written)
		for _, a := range written {
			tool.sent = append(tool.sent, a.Sent)
			if a.Refusal != "" {
				faults.add(tool, "the tool refuses what the type writes", a.Refusal, a.Written)
			} else {
				tool.returned = append(tool.returned, a.Value)
			}
		}
		var values []json.RawMessage
		for i := range sentEach {
			switch i % 4 {
			case 0, 1:
				values = append(values, mutate(random, pick(random, tool.sent)))
			case 2:
				values = append(values, mutate(random, pick(random, written).Written)) // with nulls
			default:
				values = append(values, tool.admitted(random))
			}
		}
		p.exchange(t, map[string]any{"tool": tool.Name, "arguments": values}, &answers)
		for i, a := range answers {
			if wrong := changed(exactly(values[i]), exactly(a.Sent)); wrong != "" {
				faults.add(tool, "a client sends something else", wrong, values[i])
			}
			fits := accepts(tool.input, a.Sent)
			switch {
			case strings.HasPrefix(a.Refusal, "the tool's output does not fit"):
				decoded++ // the zero value of a member that was not sent is none of its enum
			case a.Refusal == "" && fits:
				decoded++
			case a.Refusal == "":
				faults.add(tool, "the tool takes what its schema refuses", "", values[i])
			default:
				if fits {
					refused++
				}
				if wrong := misworded(a.Refusal, values[i]); wrong != "" {
					faults.add(tool, wrong, a.Refusal, values[i])
				}
			}
		}
	}
	t.Logf("of the values that fit, %d were decoded and %d refused", decoded, refused)
	if decoded < structs*sentEach/10 {
		t.Errorf("only %d values were decoded", decoded)
	}
	checkWritten(t, tools, &faults)
	faults.report()
}

// changed describes how a value was changed when it was sent, or returns "". Nulls may be left out or empty.
func changed(value, sent any) string {
	switch v := value.(type) {
	case nil:
		if text := string(encode(sent)); !slices.Contains([]string{"null", "[]", "{}", `""`}, text) {
			return "null becomes " + text
		}
		return ""
	case []any:
		list, ok := sent.([]any)
		if !ok || len(list) != len(v) {
			return fmt.Sprintf("a list of %d becomes %s", len(v), encode(sent))
		}
		for i := range v {
			if wrong := changed(v[i], list[i]); wrong != "" {
				return wrong
			}
		}
		return ""
	case map[string]any:
		members, _ := sent.(map[string]any)
		for name, member := range v {
			left, ok := members[name]
			if wrong := changed(member, left); wrong != "" && (ok || member != nil) {
				return name + ": " + wrong
			}
			delete(members, name)
		}
		if len(members) > 0 {
			return fmt.Sprintf("it gets %s", encode(members))
		}
		return ""
	}
	if before, after := encode(value), encode(sent); !bytes.Equal(before, after) {
		return fmt.Sprintf("%s becomes %s", before, after)
	}
	return ""
}

// checkWritten checks with all validators that the schemas take what was sent and returned.
func checkWritten(t *testing.T, tools []*tool, faults *faults) {
	t.Helper()
	for _, tool := range tools {
		for _, side := range tool.sides() {
			for _, value := range side.values {
				if err := side.first.Validate(exactly(value)); err != nil {
					faults.add(tool, "santhosh-tekuri/jsonschema", err.Error(), value)
				}
				var decoded any
				if err := json.Unmarshal(value, &decoded); err != nil {
					t.Fatal(err)
				}
				if err := side.second.Validate(decoded); err != nil {
					faults.add(tool, "google/jsonschema-go", err.Error(), value)
				}
			}
		}
	}
	t.Run("Ajv", func(t *testing.T) {
		node := startNode(t)
		for _, tool := range tools {
			for _, side := range tool.sides() {
				texts := make([]string, len(side.values))
				for i, value := range side.values {
					texts[i] = string(value)
				}
				var reply struct {
					Error  string
					Faults [][2]string
				}
				node.exchange(t, map[string]any{"schema": side.text, "values": texts}, &reply)
				if reply.Error != "" {
					faults.add(tool, "Ajv does not compile the schema", reply.Error, side.text)
				}
				for i, fault := range reply.Faults {
					for k, sdk := range []string{"Ajv of the SDK 1.x", "Ajv of the SDK 2.x"} {
						if fault[k] != "" {
							faults.add(tool, sdk, fault[k], side.values[i])
						}
					}
				}
			}
		}
	})
}

// faults collects the faults by kind.
type faults struct {
	*testing.T

	source string
	byKind map[string][]string
}

func (f *faults) add(tool *tool, kind, why string, value json.RawMessage) {
	if f.byKind == nil {
		f.byKind = map[string][]string{}
	}
	if list := f.byKind[kind]; len(list) == 0 || !strings.HasPrefix(list[len(list)-1], tool.Name+":") { // one for each tool
		f.byKind[kind] = append(list, fmt.Sprintf("%s: %.600s\n\t%.400s", tool.Name, why, value))
	}
}

// report reports the first faults of each kind, with the types of the first.
func (f *faults) report() {
	f.Helper()
	const few = 8
	for _, kind := range slices.Sorted(maps.Keys(f.byKind)) {
		list := f.byKind[kind]
		f.Errorf("%s: %d tools:\n%s", kind, len(list), strings.Join(list[:min(few, len(list))], "\n"))
	}
	if path := os.Getenv("MCPTASK_RANDOM_SOURCE"); path != "" {
		if err := os.WriteFile(path, []byte(f.source), 0o600); err != nil {
			f.Error(err)
		}
	} else if f.Failed() {
		f.Log("MCPTASK_RANDOM_SOURCE names a file for the types")
	}
}

// answer is an answer of the program.
type answer struct {
	Written, Sent, Value json.RawMessage
	Refusal              string
}

// schema is a schema as two validators read it.
type schema struct {
	first  *jsonschema.Schema
	second *google.Resolved
}

// tool is a tool with its schemas.
type tool struct {
	Name          string
	Input, Output json.RawMessage

	input, output  schema
	sent, returned []json.RawMessage
}

// side is a schema of a tool with values that fit.
type side struct {
	schema
	text   json.RawMessage
	values []json.RawMessage
}

func (tool *tool) sides() []side {
	return []side{{tool.input, tool.Input, tool.sent}, {tool.output, tool.Output, tool.returned}}
}

func (tool *tool) compile(t *testing.T) {
	t.Helper()
	tool.input, tool.output = compile(t, tool.Input), compile(t, tool.Output)
}

func compile(t *testing.T, text json.RawMessage) schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("schema:random", exactly(text)); err != nil {
		t.Fatal(err)
	}
	first, err := c.Compile("schema:random")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var parsed google.Schema
	if err := json.Unmarshal(text, &parsed); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	second, err := parsed.Resolve(nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return schema{first, second}
}

// accepts reports whether a value fits a schema.
func accepts(s schema, value json.RawMessage) bool { return s.first.Validate(exactly(value)) == nil }

// exactly decodes JSON and keeps the text of its numbers.
func exactly(text json.RawMessage) any {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		panic(fmt.Sprintf("%v: %s", err, text))
	}
	return value
}

// goWords are words of Go that a caller does not know.
var goWords = regexp.MustCompile(`unmarshal|\bGo\b|struct|main\.|json:|u?int(8|16|32|64)|float(32|64)|strconv`)

// misworded returns the fault of the refusal of a value, or "".
func misworded(refusal string, value json.RawMessage) string {
	if word := goWords.FindString(refusal); word != "" {
		return "a refusal speaks of Go: " + word
	}
	if rest, ok := strings.CutPrefix(refusal, "invalid arguments: "); !ok || !hasPlace(exactly(value), rest) {
		return "a refusal has no place"
	}
	return ""
}

var ofObject = regexp.MustCompile(`^(missing propert|additional propert)`)

// hasPlace reports whether a text begins with the place of something in a value.
func hasPlace(value any, text string) bool {
	if ofObject.MatchString(text) {
		return true
	}
	members, _ := value.(map[string]any)
	if list, ok := value.([]any); ok {
		members = map[string]any{}
		for i, item := range list {
			members[strconv.Itoa(i)] = item
		}
	}
	for name, member := range members {
		rest, ok := strings.CutPrefix(text, name)
		if ok && (strings.HasPrefix(rest, ": ") || strings.HasPrefix(rest, ".") && hasPlace(member, rest[1:])) {
			return true
		}
	}
	return false
}

// program is a process that answers each line of its input by a line.
type program struct {
	in    io.Writer
	out   *bufio.Reader
	wrong *bytes.Buffer
}

// start starts a program and stops it at the end of the test.
func start(t *testing.T, name string, args ...string) *program {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	p := &program{wrong: new(bytes.Buffer)}
	cmd.Stderr = p.wrong
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewReaderSize(out, 1<<20)
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // exchange has reported the fault
	})
	return p
}

// line reads a line.
func (p *program) line(t *testing.T) []byte {
	t.Helper()
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("%v\n%s", err, p.wrong)
	}
	return line
}

func (p *program) exchange(t *testing.T, request, reply any) {
	t.Helper()
	data, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.in.Write(append(data, '\n')); err != nil {
		t.Fatalf("%v\n%s", err, p.wrong)
	}
	if err := json.Unmarshal(p.line(t), reply); err != nil {
		t.Fatal(err)
	}
}

// startNode starts the validators of the published TypeScript SDKs. It skips the test if they are missing.
func startNode(t *testing.T) *program {
	t.Helper()
	missing := func(what string) {
		if os.Getenv("MCPTASK_REQUIRE") == "all" {
			t.Fatal(what)
		}
		t.Skip(what)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		missing("node is missing: install nodejs")
	}
	directory := absolute(t, "../../../examples/pipeline/interop")
	if _, err := os.Stat(filepath.Join(directory, "node_modules/@modelcontextprotocol/client")); err != nil {
		missing("a published client is missing: run npm ci in examples/pipeline/interop")
	}
	return start(t, node, "testdata/validators.mjs", directory)
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// writeModule makes a module of a package main that uses this checkout, and returns its directory.
func writeModule(t *testing.T, source string) string {
	t.Helper()
	root, dir := absolute(t, "../../.."), t.TempDir()
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	const path = "github.com/mcptaskgen/mcptaskgen"
	_, rest, _ := strings.Cut(string(module), "\n")
	rest = regexp.MustCompile(`(?ms)^tool (\(.*?^\)|[^\n]*)`).ReplaceAllString(rest, "")
	for name, content := range map[string]string{
		"go.mod": "module example.com/random\n" + rest + fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %[1]s => %q\n", path, root),
		"go.sum": string(sums), "types.go": source,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// generate generates the code of a module.
func generate(t *testing.T, dir string) error {
	t.Helper()
	output, err := generator.Generate(t.Context(), generator.Config{Dir: dir})
	if err == nil {
		_, err = output.Write()
	}
	return err
}

// buildProgram builds and starts the program with the types of a source.
func buildProgram(t *testing.T, source string) *program {
	t.Helper()
	dir := writeModule(t, source)
	if err := generate(t, dir); err != nil {
		t.Fatalf("%.4000v", err)
	}
	main, err := os.ReadFile("testdata/program/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), main, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "program", ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%.4000s", err, out)
	}
	return start(t, filepath.Join(dir, "program"))
}
