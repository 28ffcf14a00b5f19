package jsonschema_test

import (
	"encoding/json"
	"go/token"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsonschema"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsonschema/testdata/kinds"
)

// TestDeclared derives types that declare their JSON.
func TestDeclared(t *testing.T) {
	pkg, err := loadedKinds()
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	deriver := jsonschema.New(pkg.Fset, pkg, func(_ token.Pos, message string) { notes = append(notes, message) })
	obj := pkg.Types.Scope().Lookup("Declared")
	schema := deriver.Derive(obj.Type(), jsonschema.Argument, obj.Pos(), func(_ token.Pos, message, hint string) {
		t.Error(message, hint)
	})
	var got struct {
		Properties map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(schema), &got); err != nil {
		t.Fatal(err)
	}
	const money = `"type": "string", "description": "An amount with its currency.", "pattern": "^[0-9]+ [A-Z]{3}$", "examples": ["5 EUR"]`
	const point = `"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": ["x"], "additionalProperties": false`
	for name, want := range map[string]string{
		"decs":     `{"type": "array", "items": {"type": "string", "pattern": "^[0-9]+$"}, "minItems": 1}`,
		"by_name":  `{"type": "object", "additionalProperties": {"type": "string"}}`,
		"deep":     `{"type": "array", "items": {"type": "array", "items": {"type": "string", "maxLength": 9}}}`,
		"money":    `{` + money + `}`,
		"price":    `{` + strings.NewReplacer("An amount with its currency.", "what it costs").Replace(money) + `}`,
		"amounts":  `{"type": "object", "additionalProperties": {` + money + `}}`,
		"point":    `{` + point + `}`,
		"points":   `{"type": "array", "items": {` + point + `}}`,
		"listed":   `{"type": "object", "additionalProperties": {"type": "boolean"}}`,
		"time":     `{"type": "string", "format": "date-time"}`,
		"port":     `{"type": "integer", "minimum": 0, "maximum": 65535}`,
		"level":    `{"type": "integer", "description": "How loud it is.\n1: Quiet\n2: Normal\n4: Loud", "enum": [1, 2, 4]}`,
		"colour":   `{"type": "integer", "description": "A colour.\n0: Red\n1: Green", "enum": [0, 1]}`,
		"rights":   `{"type": "integer", "minimum": 0, "maximum": 255}`,
		"single":   `{"type": "string"}`,
		"untagged": `{"type": "integer", "enum": [80, 443]}`,
	} {
		if diff := cmp.Diff(decodeJSON(t, want), decodeJSON(t, string(got.Properties[name]))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		delete(got.Properties, name)
	}
	if len(got.Properties) > 0 {
		t.Errorf("%d properties were not compared", len(got.Properties))
	}
	for _, guess := range deriver.Guesses() {
		notes = append(notes, guess.Message)
	}
	slices.Sort(notes)
	const way = "; decide it with //mcptask:enum or //mcptask:open above the type"
	if diff := cmp.Diff([]string{
		"Colour is taken as an enum of its 2 constants; decide it with //mcptask:enum, //mcptask:enum strings or //mcptask:open above the type",
		"Single has one constant, Default, so it is not taken as an enum" + way,
		"the constants of Rights look like flags, so it is not taken as an enum" + way,
	}, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	price := kinds.NewMoney(1, "EUR")
	sent, _ := encodeSent(t, schema, jsonschema.Argument, kinds.Declared{
		Decs: []kinds.Dec{kinds.NewDec("12")}, Money: kinds.NewMoney(5, "EUR"), Price: &price, Time: kinds.MyTime{Time: time.Now()},
		Port: 8080, Level: kinds.Loud, Rights: kinds.Read | kinds.Write,
	})
	if err := checkSchema(t, schema).Validate(decodeJSON(t, sent)); err != nil {
		t.Errorf("%s: %v", sent, err)
	}
}
