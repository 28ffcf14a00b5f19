package terminal

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/internal/form"
)

func TestFields(t *testing.T) {
	of := func(property string) string {
		return `{"type":"object","properties":{"a":` + property + `},"required":["a"]}`
	}
	for _, c := range []struct{ name, schema, label string }{
		{"text", of(`{"type":"string"}`), "  a (text): "},
		{"optional", `{"properties":{"a":{"type":"string","maxLength":5}}}`, "  a (text of at most 5 characters, optional): "},
		{"a title", of(`{"type":"string","title":"First\u001b[2J name","default":"Ann"}`), "  First name (text) [Ann]: "},
		{"an e-mail address", of(`{"type":"string","format":"email"}`), "  a (e-mail address): "},
		{"a date", of(`{"type":"string","format":"date"}`), "  a (date such as 2026-01-31): "},
		{"a time", of(`{"type":"string","format":"date-time"}`), "  a (time such as 2026-01-31 15:04): "},
		{"a number", of(`{"type":"number","minimum":0.5,"default":1.5}`), "  a (number from 0.5) [1.5]: "},
		{"an integer", of(`{"type":"integer","minimum":1,"maximum":5}`), "  a (whole number from 1 to 5): "},
		{"a boolean", of(`{"type":"boolean","default":true}`), "  a (y/n) [y]: "},
		{"no default", of(`{"type":"boolean","default":null}`), "  a (y/n): "},
		{"choices", of(`{"type":"string","enum":["x","y"],"enumNames":["An X"],"default":"x"}`), "  a (1-2) [An X]: "},
		{"numbers to choose", of(`{"type":"integer","enum":[10,20],"default":20.0}`), "  a (1-2) [20]: "},
		{"one value", of(`{"type":"string","const":"x"}`), "  a (1-1): "},
		{"several", of(`{"type":"array","items":{"anyOf":[{"const":"x","title":"An X"},{"const":"y"}]},"minItems":1,"default":["x"]}`), "  a (numbers, with commas, at least 1) [An X]: "},
		{"none", of(`{"type":"array","items":{"type":"string","enum":["x"]},"default":[]}`), "  a (numbers, with commas) [none]: "},
		{"a password", of(`{"type":"string","format":"password","minLength":8}`), "  a (hidden, at least 8 characters): "},
		{"a secret with a default", of(`{"type":"string","writeOnly":true,"default":"hunter2"}`), "  a (hidden) [hidden]: "},
		{"a pattern of JavaScript", of(`{"type":"string","pattern":"(?=x)"}`), "  a (text): "},
	} {
		t.Run(c.name, func(t *testing.T) {
			made, err := form.Parse([]byte(c.schema))
			if err != nil || len(made.Fields) != 1 {
				t.Fatalf("got %v, %v", made.Fields, err)
			}
			if got := (field{made.Fields[0]}).prompt(false); got != c.label {
				t.Errorf("got %q, want %q", got, c.label)
			}
		})
	}
	for _, schema := range []string{``, `null`, `{}`, `{"type":"object"}`, `{"type":"object","properties":{}}`} {
		if made, err := form.Parse([]byte(schema)); err != nil || len(made.Fields) > 0 {
			t.Errorf("%q: got %v, %v", schema, made.Fields, err)
		}
	}
	for _, schema := range []string{
		`true`, `[]`, `{`, `{"type":"array"}`, `{"$ref":"#"}`, of(`{"type":"object"}`), of(`{"$ref":"#"}`), of(`{"type":"array","items":{"type":"string"}}`), of(`{"type":"array"}`), of(`{"type":"string","oneOf":[{"title":"none"}]}`),
		of(`{"type":"string","minimum":"x"}`), of(`1`), `{"properties":1}`, `{"required":1}`, `{"properties":{},"required":["a"]}`,
		of(`{"type":"string","description":"` + strings.Repeat("x", 300<<10) + `"}`),
	} {
		if _, err := form.Parse([]byte(schema)); !errors.Is(err, form.ErrFormless) {
			t.Errorf("%.100q: got %v", schema, err)
		}
	}
}

// TestFieldsInOrder keeps the order of a schema. A name that comes twice counts once.
func TestFieldsInOrder(t *testing.T) {
	var properties []string
	for _, name := range strings.Fields("z a m b a") {
		properties = append(properties, fmt.Sprintf(`%q:{"type":"string"}`, name))
	}
	made, err := form.Parse([]byte(`{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`))
	var names []string
	for _, f := range made.Fields {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); err != nil || got != "z a m b" {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestRead(t *testing.T) {
	const (
		integer = `{"type":"integer","maximum":100}`
		number  = `{"type":"number"}`
		choices = `{"type":"string","enum":["x","y","3"],"enumNames":["An X","A Y","three"]}`
		several = `{"type":"array","items":{"type":"string","enum":["New York","Rome"]},"minItems":1}`
	)
	for _, c := range []struct{ property, typed, want, fault string }{
		{`{"type":"string"}`, ` a "b" <c>`, `" a \"b\" <c>"`, ""},
		{`{"type":"string","minLength":3}`, `ab`, ``, "got 2 characters, want at least 3"},
		{`{"type":"string","format":"email"}`, `ab`, ``, "email"},
		{`{"type":"string","format":"date"}`, `2026-02-31`, ``, "write one such as 2026-01-31"},
		{`{"type":"string","default":"x"}`, ``, `"x"`, ""},
		{`{"type":"string"}`, ` `, ``, "a value is needed"},
		{integer, ` +007 `, `7`, ""},
		{integer, `-0`, `0`, ""},
		{integer, `1.5`, ``, `"1.5" is not a whole number`},
		{integer, `1e1`, ``, "is not a whole number"},
		{integer, `101`, ``, "got 101, want at most 100"},
		{integer, `99999999999999999999999`, ``, "want at most 100"},
		{number, `-2.50`, `-2.50`, ""},
		{number, `.5`, `0.5`, ""},
		{number, `1e3`, `1e3`, ""},
		{number, `1,5`, ``, "is not a number"},
		{number, `inf`, ``, "is not a number"},
		{number, `1e999`, ``, "is not a number"},
		{`{"type":"boolean"}`, `YES`, `true`, ""},
		{`{"type":"boolean"}`, `n`, `false`, ""},
		{`{"type":"boolean"}`, `ok`, ``, `"ok" is not y or n`},
		{choices, `y`, `"y"`, ""},
		{choices, `2`, `"y"`, ""},
		{choices, `3`, `"3"`, ""},
		{choices, `an x`, `"x"`, ""},
		{`{"type":"integer","enum":[9007199254740992,9007199254740993]}`, `2`, `9007199254740993`, ""},
		{choices, `a`, ``, `"a" begins 2 of the choices: type more of it, or a number from 1 to 3`},
		{choices, `A x`, ``, `"A x" is none of the choices: type a number from 1 to 3`},
		{choices, `AN`, `"x"`, ""},
		{choices, `thr`, `"3"`, ""},
		{choices, ` `, ``, "a value is needed"},
		{several, `New York`, `["New York"]`, ""},
		{several, `rom, n`, `["New York","Rome"]`, ""},
		{several, `rome, new york`, `["New York","Rome"]`, ""},
		{several, `2, 1,2`, `["New York","Rome"]`, ""},
		{several, `1,3`, ``, `"3" is none of the choices`},
		{several, `,`, ``, "got 0 items, want at least 1"},
		{`{"type":"string","writeOnly":true,"pattern":"^[a-z]+$"}`, `SECRET`, ``, "it does not fit"},
	} {
		t.Run(c.property+c.typed, func(t *testing.T) {
			made, err := form.Parse([]byte(`{"type":"object","properties":{"t":` + c.property + `},"required":["t"]}`))
			if err != nil {
				t.Fatal(err)
			}
			f := field{made.Fields[0]}
			value, err := f.read(c.typed)
			if err == nil {
				err = f.check(t.Context(), value)
			}
			switch {
			case c.fault == "" && (err != nil || string(value) != c.want):
				t.Errorf("got %s, %v, want %s", value, err, c.want)
			case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault) || strings.Contains(err.Error(), "SECRET") || strings.HasPrefix(err.Error(), "t: ")):
				t.Errorf("got %v, want %s", err, c.fault)
			}
		})
	}
}

// TestReadTime reads times as people type them.
func TestReadTime(t *testing.T) {
	zone := time.FixedZone("CET", 60*60)
	for typed, want := range map[string]string{
		"2026-12-24":                "2026-12-24T00:00:00+01:00",
		" 2026-12-24 18:00 ":        "2026-12-24T18:00:00+01:00",
		"2026-12-24 18:00:05":       "2026-12-24T18:00:05+01:00",
		"2026-12-24T18:00":          "2026-12-24T18:00:00+01:00",
		"2026-12-24 18:00Z":         "2026-12-24T18:00:00Z",
		"2026-12-24 18:00-05:00":    "2026-12-24T18:00:00-05:00",
		"2026-12-24T18:00:00.25Z":   "2026-12-24T18:00:00.25Z",
		"2026-12-24T18:00:00+02:00": "2026-12-24T18:00:00+02:00",
		"24.12.2026":                "",
		"2026-02-30":                "",
		"2026-12-24 25:00":          "",
	} {
		value, err := readTime(typed, zone)
		if got := strings.Trim(string(value), `"`); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %s, %v, want %s", typed, got, err, want)
		}
	}
}

func TestCheckForm(t *testing.T) {
	made, err := form.Parse([]byte(`{"properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := checkMembers(t.Context(), made.Members, json.RawMessage(`{"a":1}`)); err != nil {
		t.Error(err)
	}
	for _, content := range []string{`{"b":"x"}`, `{"a":"x"}`} {
		if err := checkMembers(t.Context(), made.Members, json.RawMessage(content)); err == nil || !strings.Contains(err.Error(), "a") {
			t.Errorf("%s: %v", content, err)
		}
	}
}

func TestFindHost(t *testing.T) {
	for address, want := range map[string]string{
		"https://bank.example:8443/login":         "bank.example:8443",
		"https://bank.example@evil.example/login": "evil.example",
		"http://bank.example":                     "bank.example (not encrypted)",
		"https://bаnk.example":                    `b\u0430nk.example`, // a Cyrillic letter
		"javascript:alert(1)":                     "none: this is no web address",
		"bank.example":                            "none: this is no web address",
		"https://%zz":                             "none: this is no web address",
	} {
		if got := findHost(address); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}
