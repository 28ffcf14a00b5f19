package providers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestRules gives each provider a schema that breaks one of its rules.
func TestRules(t *testing.T) {
	const opening, closing = `{"type":"object","properties":{"a":`, `},"required":["a"],"additionalProperties":false}`
	property := func(schema string) string { return opening + schema + closing }
	deep := strings.Repeat(opening, 11) + `{"type":"string"}` + strings.Repeat(closing, 11)
	for _, test := range []struct {
		name, schema string
		refuse       []string
	}{
		{"fine", property(`{"type":"string"}`), nil},
		{"dotted.name", property(`{"type":"string"}`), []string{"Anthropic", "Managed Agents", "OpenAI", "OpenAI strict"}},
		{"1st", property(`{"type":"string"}`), []string{"Gemini"}},
		{strings.Repeat("n", 65), property(`{"type":"string"}`), []string{"OpenAI", "Gemini", "OpenAI strict"}},
		{"rootless", `{"properties":{}}`, []string{"Anthropic", "Managed Agents", "OpenAI", "Gemini", "OpenAI strict"}},
		{"no_properties", `{"type":"object","additionalProperties":false}`, []string{"OpenAI", "OpenAI strict"}},
		{"one_of", `{"type":"object","properties":{},"additionalProperties":false,"oneOf":[{"type":"object","properties":{},"additionalProperties":false}]}`, []string{"Anthropic", "Managed Agents", "OpenAI", "Gemini", "OpenAI strict"}},
		{"not", `{"type":"object","properties":{},"additionalProperties":false,"not":{"type":"string"}}`, []string{"OpenAI", "Gemini", "OpenAI strict"}},
		{"space", `{"type":"object","properties":{"a b":{"type":"string"}},"required":["a b"],"additionalProperties":false}`, []string{"Anthropic", "Managed Agents", "Gemini"}},
		{"dash", `{"type":"object","properties":{"a-b":{"type":"string"}},"required":["a-b"],"additionalProperties":false}`, []string{"Gemini"}},
		{"invalid", property(`{"type":"text"}`), []string{"Anthropic", "Managed Agents"}},
		{"reference", property(`{"type":"array","items":{"$ref":"#"}}`), []string{"Managed Agents", "Gemini"}},
		{"types", property(`{"type":["string","null"]}`), []string{"Gemini"}},
		{"untyped", property(`{}`), []string{"Gemini", "OpenAI strict"}},
		{"numbers", property(`{"type":"integer","enum":[1]}`), []string{"Gemini"}},
		{"empty", property(`{"type":"string","enum":[""]}`), []string{"Gemini"}},
		{"items", property(`{"type":"array"}`), []string{"OpenAI", "Gemini", "OpenAI strict"}},
		{"lookahead", property(`{"type":"string","pattern":"^(?=a)"}`), []string{"OpenAI", "OpenAI strict"}},
		{"absent", `{"type":"object","properties":{},"required":["a"],"additionalProperties":false}`, []string{"Gemini"}},
		{"optional", `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, []string{"OpenAI strict"}},
		{"open", property(`{"type":"object","properties":{}}`), []string{"OpenAI strict"}},
		{"unlisted", property(`{"type":"string","minLength":1}`), []string{"OpenAI strict"}},
		{"format", property(`{"type":"string","format":"uri"}`), []string{"OpenAI strict"}},
		{"bound", property(`{"type":"number","exclusiveMinimum":0}`), nil},
		{"deep", deep, []string{"OpenAI strict"}},
	} {
		schema, err := Decode(json.RawMessage(test.schema))
		if err != nil {
			t.Fatal(err)
		}
		var refuse []string
		for _, provider := range All() {
			if len(provider.Check(test.name, schema)) > 0 {
				refuse = append(refuse, provider.Name)
			}
		}
		if !slices.Equal(refuse, test.refuse) {
			t.Errorf("%s is refused by %q, want %q", test.name, refuse, test.refuse)
		}
	}
}

// TestPlain drops keywords where they are keywords, and keeps properties that have their names.
func TestPlain(t *testing.T) {
	schema, err := Decode(json.RawMessage(`{"type":"object","properties":{"uniqueItems":{"type":"array","uniqueItems":true,"items":{"type":"string","contentEncoding":"base64"}}},"additionalProperties":false}`))
	if err != nil {
		t.Fatal(err)
	}
	plain, without := Plain(schema)
	got, err := json.Marshal(plain)
	if want := `{"properties":{"uniqueItems":{"items":{"type":"string"},"type":"array"}},"type":"object"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if fmt.Sprint(without) != "[contentEncoding uniqueItems]" {
		t.Errorf("without %v", without)
	}
	if problems := GeminiParameters("raw", schema); len(problems) != 3 {
		t.Errorf("as it is sent, it has the problems %q, want 3", problems)
	}
}
