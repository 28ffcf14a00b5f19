package portable_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/portable"
)

// TestCheck finds each row in the smallest input that has its construct, and nothing beside it.
func TestCheck(t *testing.T) {
	long := strings.Repeat("a", 65)
	for _, c := range []struct{ tool, input, output, want string }{
		{input: `{"type":"object","properties":{}}`},
		{input: `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"type":"object","additionalProperties":false}}}`},
		{input: `{"type":"object","properties":{"a":{"type":"integer","exclusiveMinimum":0},"b":{"type":"string","format":"uri"},"c":{"type":"object"}}}`},
		{input: `{"type":"object","properties":{"m":{"type":"object","patternProperties":{"^a":{"type":"string"}},"propertyNames":{"enum":["a",""]}}}}`},
		{input: `{"type":"object","properties":{"u":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`},
		{input: `{"type":"object","properties":{"o":{"type":"object","properties":{"with space":{"type":"string"}}}}}`},
		{input: `{"type":"object","properties":{"enum":{"type":"string","default":[1]}}}`},
		{input: `{"properties":{}}`, want: "root-type"},
		{input: `{"type":"object"}`, want: "root-properties"},
		{input: `{"type":"object","properties":{},"anyOf":[{"required":["a"]}]}`, want: "root-combination (anyOf)"},
		{input: `{"type":"object","properties":{},"not":{}}`, want: "root-combination (not)"},
		{input: `{"type":"object","properties":{"$ref":{"type":"string"}}}`, want: `property-name ("$ref") properties/$ref`},
		{input: `{"type":"object","properties":{"` + long + `":{"type":"string"}}}`, want: `property-name ("` + long + `") properties/` + long},
		{input: `{"type":"object","properties":{"a":{"type":["array","null"],"items":{"type":"string"}}}}`, want: `type-list ("array", "null") properties/a`},
		{input: `{"type":"object","properties":{"a":{"type":"string","enum":["",1,true,null]}}}`, want: `enum-numbers (1, true) properties/a; enum-empty properties/a; enum-null properties/a`},
		{input: `{"type":"object","properties":{"a":{},"b":{"type":"array","items":{"description":"any"}},"c":{"type":"object","additionalProperties":{}}}}`, want: "no-type properties/a; no-type properties/b/items"},
		{input: `{"type":"object","properties":{"a":true}}`, want: "boolean-schema (true) properties/a"},
		{input: `{"type":"object","properties":{"a":{"type":"array","prefixItems":[{}]}}}`, want: "array-items properties/a"},
		{input: `{"type":"object","properties":{"a":{"type":"array","items":[{}]}}}`, want: "items-list properties/a"},
		{input: `{"type":"object","properties":{"a":{"$ref":"#"}}}`, want: "reference properties/a"},
		{
			input: `{"type":"object","properties":{"a":{"$ref":"#/$defs/T"},"b":{"$ref":"#/$defs/T"}},"$defs":{"T":{"type":"object","properties":{"n":{"type":"integer","enum":[1]}}}}}`,
			want:  "reference properties/a; enum-numbers (1) properties/a/properties/n; reference properties/b",
		},
		{input: `{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)"}}}`, want: "pattern (^(?!x)) properties/a"},
		{input: `{"type":"object","properties":{"a":{"type":"string","pattern":"(?:x)\\\\.p"}}}`},
		{input: nested(10)},
		{input: nested(11), want: "depth" + strings.Repeat("/items", 10)},
		{output: `{"type":"object","$schema":"http://json-schema.org/draft-07/schema#"}`, want: "output-dialect (http://json-schema.org/draft-07/schema#)"},
		{output: `{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"a":true}}`, want: "boolean-schema (true) properties/a"},
		{output: `{"anyOf":[{"type":["string","null"]}]}`},
		{tool: long, want: "tool-name-length (65)"},
		{tool: long[:46], want: "tool-name-prefixed (46)"},
		{tool: long[:45]},
		{tool: "a.b", want: "tool-name-characters"},
		{tool: "1c", want: "tool-name-start"},
	} {
		tool := portable.Tool{Name: "plain", Input: parse(t, c.input), Output: parse(t, c.output)}
		if c.tool != "" {
			tool.Name = c.tool
		}
		var got []string
		for _, f := range portable.Check(tool) {
			text := f.Row.Name
			if f.Detail != "" {
				text += " (" + f.Detail + ")"
			}
			if path := strings.Join(f.Path, "/"); strings.HasPrefix(path, "items/") {
				text += "/" + path
			} else if path != "" {
				text += " " + path
			}
			got = append(got, text)
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s%s%s:\ngot  %s\nwant %s", c.tool, c.input, c.output, strings.Join(got, "; "), c.want)
		}
	}
	if got := portable.Check(portable.Tool{Name: "a", Description: strings.Repeat("é", 2049)}); len(got) != 1 || got[0].Row.Name != "description-length" {
		t.Errorf("a long description: %v", got)
	}
	if few, many := portable.CheckCount(128), portable.CheckCount(129); len(few) > 0 || len(many) != 1 {
		t.Errorf("128 tools: %v, 129 tools: %v", few, many)
	}
}

// nested returns a schema of lists inside each other.
func nested(levels int) string {
	if levels == 1 {
		return `{"type":"string"}`
	}
	inner := nested(levels - 1)
	return `{"type":"object","properties":{},"items":` + strings.Replace(inner, `"object"`, `"array"`, 1) + "}"
}

// TestRows checks that the rows are whole.
func TestRows(t *testing.T) {
	var names []string
	for _, row := range portable.Rows() {
		if slices.Contains(names, row.Name) {
			t.Errorf("two rows %s", row.Name)
		}
		names = append(names, row.Name)
		if row.Construct == "" || row.Happens == "" || len(row.Seen) == 0 || (row.Silent == "") != (row.Schema != "") {
			t.Errorf("%s lacks a part", row.Name)
		}
	}
}

// TestRefusals checks which findings become one refusal, and how its places are named.
func TestRefusals(t *testing.T) {
	row := &portable.Row{Name: "row", Construct: "a flaw", Happens: "Somebody refuses it"}
	for want, places := range map[string][]string{
		"a has a flaw (x): Somebody refuses it [row]":                   {"a", "a"},
		"a, b, c and d have a flaw (x): Somebody refuses it [row]":      {"a", "b", "c", "d"},
		"a, b, c and 2 more have a flaw (x): Somebody refuses it [row]": {"a", "b", "c", "d", "e"},
	} {
		var refused portable.Refusals[int]
		for i, place := range places {
			refused.Add(portable.Finding{Row: row, Detail: "x"}, "owner", place, i, "way out")
		}
		if len(refused.List) != 1 || refused.List[0].Message() != want || refused.List[0].At != 0 {
			t.Errorf("%v became %+v, want %s", places, refused.List, want)
		}
	}
	var refused portable.Refusals[int]
	refused.Add(portable.Finding{Row: row, Detail: "x"}, "owner", "a", 0, "")
	refused.Add(portable.Finding{Row: row, Detail: "x"}, "another", "b", 1, "")
	refused.Add(portable.Finding{Row: row, Detail: "y"}, "owner", "c", 2, "")
	if len(refused.List) != 2 || refused.List[0].Message() != "a and c have a flaw: Somebody refuses it [row]" {
		t.Errorf("two owners and two details became %+v", refused.List)
	}
}

func parse(t *testing.T, text string) *jsontree.Node {
	t.Helper()
	if text == "" {
		return nil
	}
	n, err := jsontree.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
