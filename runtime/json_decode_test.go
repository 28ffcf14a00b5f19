package mcptask

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/value"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
)

// TestMismatchWords checks that errors of the decoder name the field and no Go type, and that they are short.
func TestMismatchWords(t *testing.T) {
	type inner struct {
		Small int8             `json:"small"`
		Large int64            `json:"large"`
		When  time.Time        `json:"when"`
		Any   any              `json:"any"`
		Exact json.Number      `json:"exact"`
		List  []inner2         `json:"list"`
		Pair  map[int][]inner2 `json:"pair"`
		On    bool             `json:"on"`
	}
	for text, want := range map[string]string{
		`{"small":300}`:                          "small: got number 300, want an integer from -128 to 127",
		`{"small":1.5}`:                          "small: got number 1.5, want an integer from -128 to 127",
		`{"large":9223372036854775808}`:          "large: got number 9223372036854775808, want an integer from -9223372036854775808 to 9223372036854775807",
		`{"large":1e999999999}`:                  "large: got number 1e999999999, want an integer from -9223372036854775808 to 9223372036854775807",
		`{"on":{}}`:                              "on: got object, want boolean",
		`{"when":"noon"}`:                        `when: parsing time "noon" as "2006-01-02T15:04:05Z07:00": cannot parse "noon" as "2006"`,
		`{"exact":"1x"}`:                         `exact: invalid number literal, trying to unmarshal "\"1x\"" into Number`,
		`{"list":{"n":"1"}}`:                     "list: got object, want array",
		`{"list":[{"n":1},{"n":1.0},{"n":"1"}]}`: "list.2.n: got string, want number",
		`{"list":[7]}`:                           "list.0: got number, want object",
		`{"pair":{"7":[{"n":[]}]}}`:              "pair.7.0.n: got array, want number",
		`[]`:                                     "got array, want object",
		`{`:                                      "unexpected end of JSON input",
	} {
		_, err := value.Decode[inner](json.RawMessage(text))
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	long := strings.Repeat("9", 100_000)
	for _, text := range []string{`{"when":"` + long + `"}`, `{"small":` + long + `}`} {
		if _, err := value.Decode[inner](json.RawMessage(text)); err == nil || len(err.Error()) > 300 {
			t.Errorf("%.400s", err)
		}
	}
}

type inner2 struct {
	N int `json:"n"`
}

// TestIntegersWithFractions checks that 1.0 and 1e2 are the integers that they are, without a loss, and that a
// value that can be decoded as it is keeps its text.
func TestIntegersWithFractions(t *testing.T) {
	type numbers struct {
		Small int8            `json:"small"`
		Large uint64          `json:"large"`
		Big   big.Int         `json:"big"`
		Float float64         `json:"float"`
		Keys  map[int8][]int  `json:"keys"`
		Raw   json.RawMessage `json:"raw"`
		Exact json.Number     `json:"exact"`
		Any   any             `json:"any"`
	}
	for text, want := range map[string]string{
		`{"small":1.0,"large":9007199254740993.000,"big":-12e18,"keys":{"7":[1e2,-0.0]},"float":2.50}`: `{"small":1,"large":9007199254740993,"big":-12000000000000000000,"float":2.5,"keys":{"7":[100,0]},"raw":null,"exact":0,"any":null}`,
		`{"small":12.7e1,"large":1.8446744073709551615E+19,"any":"1.0\\\" 1.0"}`:                       `{"small":127,"large":18446744073709551615,"big":0,"float":0,"keys":null,"raw":null,"exact":0,"any":"1.0\\\" 1.0"}`,
		`{"small":1,"float":1.0,"raw":[1.0,1e2],"exact":1.0}`:                                          `{"small":1,"large":0,"big":0,"float":1,"keys":null,"raw":[1.0,1e2],"exact":1.0,"any":null}`,
	} {
		decoded, err := value.Decode[numbers](json.RawMessage(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := value.Marshal(decoded); string(got) != want {
			t.Errorf("%s: %s, want %s, %v", text, got, want, err)
		}
	}
}

// TestOthersNameTheirFields checks that answers, questions and results, which take other ways than arguments, are
// decoded like them.
func TestOthersNameTheirFields(t *testing.T) {
	type plan struct {
		Steps []inner2 `json:"steps"`
	}
	input := InputSpec{Name: "Plan", Schema: `{"type":"object","properties":{"steps":{"type":"array"}}}`}
	result := func(structured string) Snapshot {
		return Snapshot{Status: StatusCompleted, Result: &Result{Structured: json.RawMessage(structured)}}
	}
	for _, tc := range []struct {
		name   string
		decode func(text string) (plan, error)
		prefix string
	}{
		{"answer", func(text string) (plan, error) {
			return decodeAnswer[plan](json.RawMessage(`{"action":"accept","content":`+text+`}`), input)
		}, ErrInvalidAnswer.Error() + ": "},
		{"result", func(text string) (plan, error) { return decodeOutput[plan]("t", result(text)) }, "t: the result does not fit the output type: "},
	} {
		if got, err := tc.decode(`{"steps":[{"n":2.0},{"n":1e2}]}`); err != nil || len(got.Steps) != 2 || got.Steps[1].N != 100 {
			t.Errorf("%s: %+v, %v", tc.name, got, err)
		}
		want := tc.prefix + "steps.1.n: got number 2.5, want an integer from -9223372036854775808 to 9223372036854775807"
		if _, err := tc.decode(`{"steps":[{"n":2.0},{"n":2.5}]}`); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s…", tc.name, err, want)
		}
	}
	const want = "mcptask: question k: _meta: got array, want object"
	if _, err := NewQuestion("", "k", spec.Elicit, json.RawMessage(`{"message":"m","_meta":[]}`)); err == nil || err.Error() != want {
		t.Errorf("question: %v, want %s", err, want)
	}
}
