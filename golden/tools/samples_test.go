package tools_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcptaskgen/mcptaskgen/golden/tools/issues"
	"github.com/mcptaskgen/mcptaskgen/golden/tools/nasty"
	"github.com/mcptaskgen/mcptaskgen/golden/tools/notes"
	"github.com/mcptaskgen/mcptaskgen/golden/tools/pipeline"
)

// generated are the types of the schemas of each list, by tool; the second is the output.
var generated = map[string]map[string][2]any{
	"issues/tools.json": {
		"list_issues":  {new(issues.ListIssuesInput), new(issues.ListIssuesOutput)},
		"create_issue": {new(issues.CreateIssueInput), new(issues.CreateIssueOutput)},
		"run_workflow": {new(issues.RunWorkflowInput), new(issues.RunWorkflowOutput)},
	},
	"notes/notes.json": {
		"write_memory":  {new(notes.WriteMemoryInput), new(notes.WriteMemoryOutput)},
		"search_memory": {new(notes.SearchMemoryInput), new(notes.SearchMemoryOutput)},
	},
	"nasty/tools.json": {
		"a b c d input": {new(nasty.ABCDInputInput), nil},
		"type":          {new(nasty.TypeInput), nil},
		"typeInput":     {new(nasty.TypeInputInput), nil},
		"天気":            {new(nasty.X天気Input), nil},
		"names":         {new(nasty.NamesInput), nil},
		"enums":         {new(nasty.EnumsInput), nil},
		"unions":        {new(nasty.UnionsInput), nil},
		"numbers":       {new(nasty.NumbersInput), new(nasty.NumbersOutput)},
		"objects":       {new(nasty.ObjectsInput), new(nasty.ObjectsOutput)},
		"loose":         {new(nasty.LooseInput), new(any)},
		"a-tool-whose-name-goes-on-and-on-until-it-has-used-up-all-of-the-one-hundred-and-twenty-eight-characters-that-the-protocol-admits-x": {
			new(nasty.AToolWhoseNameGoesOnAndOnUntilItHasUsedUpAllOfTheOneHundredAndInput), nil,
		},
	},
	"pipeline/tools.json": {
		"run_pipeline":   {new(pipeline.RunPipelineInput), new(pipeline.RunPipelineOutput)},
		"deploy_service": {new(pipeline.DeployServiceInput), new(pipeline.DeployServiceOutput)},
		"lint_file":      {new(pipeline.LintFileInput), new(pipeline.LintFileOutput)},
	},
}

// loose are the arguments for which the server also accepts a string, by their comments.
var loose = []string{"idOrObject", "oneOrMany"}

// TestSamples makes values of every schema. A value that the schema admits decodes into the generated type. The type
// encodes it as the same value, which is admitted again.
func TestSamples(t *testing.T) {
	lists, err := filepath.Glob("*/*.json")
	if err != nil || len(lists) != len(generated) {
		t.Fatalf("%d lists, want %d: %v", len(lists), len(generated), err)
	}
	for _, list := range lists {
		tools := readTools(t, list)
		for _, name := range slices.Sorted(maps.Keys(tools)) {
			types := generated[filepath.ToSlash(list)][name]
			for i, schema := range tools[name] {
				properties, _ := schema["properties"].(map[string]any)
				if types[i] != nil {
					t.Run(fmt.Sprintf("%s %.20s %d", list, name, i), func(t *testing.T) { roundTrips(t, schema, types[i]) })
				} else if i == 1 && schema != nil || len(properties) > 0 {
					t.Errorf("no type is given for a schema of %s", name)
				}
			}
		}
	}
}

// readTools reads the schemas of a list, by tool.
func readTools(t *testing.T, path string) map[string][2]map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	value, err := validator.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	tools := map[string][2]map[string]any{}
	var read func(value any)
	read = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, item := range v {
				read(item)
			}
		case map[string]any:
			if name, ok := v["name"].(string); ok {
				input, _ := v["inputSchema"].(map[string]any)
				output, _ := v["outputSchema"].(map[string]any)
				tools[name] = [2]map[string]any{input, output}
				return
			}
			read(v["tools"])
			read(v["result"])
		}
	}
	read(value)
	return tools
}

// roundTrips makes values of a schema and sends them through a type.
func roundTrips(t *testing.T, schema map[string]any, pointer any) {
	compiler := validator.NewCompiler()
	compiler.AssertFormat()
	compiler.UseLoader(nowhere{})
	if err := compiler.AddResource("schema:///", schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("schema:///")
	if err != nil {
		t.Fatal(err)
	}
	s := &sampler{random: rand.New(rand.NewPCG(1, 2)), root: schema}
	const wanted = 200
	valid := 0
	for try := 0; try < 50*wanted && valid < wanted; try++ {
		sent := normal(t, s.value(schema, 0))
		if compiled.Validate(sent) != nil {
			continue
		}
		valid++
		written, err := json.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		value := reflect.New(reflect.TypeOf(pointer).Elem())
		err = json.Unmarshal(written, value.Interface())
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &mismatch) && mismatch.Value == "string" && slices.Contains(loose, mismatch.Field) {
			valid--
			continue
		}
		if err != nil {
			t.Fatalf("%s does not decode: %v", written, err)
		}
		again, err := json.Marshal(value.Interface())
		if err != nil {
			t.Fatal(err)
		}
		got := normal(t, json.RawMessage(again))
		if err := compiled.Validate(got); err != nil {
			t.Fatalf("%s\nbecomes %s: %v", written, again, err)
		}
		if lost := compare(sent, got); lost != "" {
			t.Fatalf("%s\nbecomes %s: %s", written, again, lost)
		}
	}
	if valid < wanted/4 {
		t.Errorf("only %d samples were valid", valid)
	}
}

// nowhere has no other documents: a schema of one admits everything.
type nowhere struct{}

func (nowhere) Load(string) (any, error) { return true, nil }

func normal(t *testing.T, value any) any {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	back, err := validator.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// compare describes the first difference. Properties that no schema names may be missing, and so may those that are
// null or have the zero value that is their default.
func compare(sent, got any) string {
	switch s := sent.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("an object became %v", got)
		}
		for name, value := range g {
			if _, ok := s[name]; !ok {
				return fmt.Sprintf("%q was not there and is %v", name, value)
			}
		}
		for name, value := range s {
			there, ok := g[name]
			zero := value == nil || value == false || value == json.Number("0") || value == "" || strings.HasPrefix(name, "unnamed")
			if !ok && !zero {
				return fmt.Sprintf("%q was %v and is gone", name, value)
			}
			if ok {
				if difference := compare(value, there); difference != "" {
					return name + ": " + difference
				}
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(s) {
			return fmt.Sprintf("%v became %v", sent, got)
		}
		for i := range s {
			if difference := compare(s[i], g[i]); difference != "" {
				return difference
			}
		}
	default:
		if !reflect.DeepEqual(sent, got) {
			return fmt.Sprintf("%v became %v", sent, got)
		}
	}
	return ""
}
