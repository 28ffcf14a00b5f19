package validate

import (
	"encoding/json"
	"testing"
)

// TestDropLeftOut checks which members of a form say that a property is left out.
func TestDropLeftOut(t *testing.T) {
	const schema = `{"type":"object","required":["must"],"properties":{
		"must":{"type":"string","enum":["a"]},
		"listed":{"type":"string","enum":["a","b"],"default":"a"},
		"none":{"type":"string","enum":["","b"]},
		"titled":{"type":"string","oneOf":[{"const":"a","title":"A"}]},
		"any":{"anyOf":[{"const":"a"},{"const":"b"}]},
		"text":{"type":"string"},
		"short":{"type":"string","minLength":1},
		"count":{"type":"integer"},
		"nullable":{"type":["string","null"],"enum":["a",null]}}}`
	compiled, err := Compile(schema, true)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{ // "" for an object that stays as it is
		`{"listed":"","titled":"","any":"","text":"<"}`:   `{"text":"<"}`,
		`{"listed":null,"text":null,"count":null}`:        `{}`,
		`{"must":"","none":"","text":"","short":""}`:      "",
		`{"must":null,"nullable":null,"more":null}`:       "",
		`{"nullable":"","count":""}`:                      `{"count":""}`,
		`{"listed":"c","titled":" ","any":0,"count":"x"}`: "",
		`{"listed":"","listed":"a"}`:                      "",
		`[""]`:                                            "",
		`{`:                                               "",
	} {
		if want == "" {
			want = value
		}
		if got := string(compiled.DropLeftOut(t.Context(), json.RawMessage(value))); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}
