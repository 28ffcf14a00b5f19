package mcptask

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestLocateMismatchShortens checks that the place and the value in an error are short, however long the names and
// numbers of the arguments are.
func TestLocateMismatchShortens(t *testing.T) {
	type arguments struct {
		Times  map[string]time.Time `json:"times"`
		Levels []int8               `json:"levels"`
	}
	decode := func(data json.RawMessage) error { return json.Unmarshal(data, new(arguments)) }
	long := strings.Repeat("9", 100_000)
	for _, value := range []string{`{"times":{"` + long + `":"noon"}}`, `{"levels":[1,` + long + `]}`} {
		err := locateMismatch(json.RawMessage(value), decode, decode(json.RawMessage(value)))
		if !strings.HasPrefix(err.Error(), "times.999") && !strings.HasPrefix(err.Error(), "levels.1: ") || len(err.Error()) > 300 {
			t.Errorf("%.400s", err)
		}
	}
}

// TestLocateMismatchIsBounded checks that the search for a bad argument costs in proportion to the
// arguments, also if each element of a long list has a long name before it.
func TestLocateMismatchIsBounded(t *testing.T) {
	value := `{"` + strings.Repeat("n", 10_000) + `":[` + strings.Repeat(`1,`, 10_000) + `"x"]}`
	decoded := 0
	err := locateMismatch(json.RawMessage(value), func(part json.RawMessage) error {
		decoded += len(part)
		if strings.Contains(string(part), `"x"`) {
			return errors.New("no number")
		}
		return nil
	}, errors.New("no number"))
	if most := (2 * maxMismatchDepth) * len(value); decoded > most || !strings.HasSuffix(err.Error(), ": no number") {
		t.Errorf("decoded %d bytes for %d: %.100s", decoded, len(value), err)
	}
}

// hexColor reads itself from text.
type hexColor struct{ red byte }

func (c *hexColor) UnmarshalText(text []byte) error {
	digits, ok := strings.CutPrefix(string(text), "#")
	if !ok {
		return errors.New("a color is written as #ff")
	}
	red, err := strconv.ParseUint(digits, 16, 8)
	if c.red = byte(red); err != nil {
		return fmt.Errorf("a color is written as #ff: %w", err)
	}
	return nil
}

// duration and date return the errors of package time.
type (
	duration struct{ value time.Duration }
	date     struct{ value time.Time }
)

func (d *duration) UnmarshalText(text []byte) (err error) {
	d.value, err = time.ParseDuration(string(text))
	return err
}

func (d *date) UnmarshalText(text []byte) (err error) {
	d.value, err = time.Parse(time.DateOnly, string(text))
	return err
}

// TestMismatchWords checks that each error of encoding/json names its place and no Go type.
func TestMismatchWords(t *testing.T) {
	type inner struct {
		Small   int8                 `json:"small"`
		Large   int64                `json:"large"`
		Byte    uint8                `json:"byte"`
		Half    float32              `json:"half"`
		Name    string               `json:"name"`
		On      bool                 `json:"on"`
		Quoted  int                  `json:"quoted,string"`
		Data    []byte               `json:"data"`
		When    time.Time            `json:"when"`
		Address netip.Addr           `json:"address"`
		Host    net.IP               `json:"host"`
		Network netip.Prefix         `json:"network"`
		Port    netip.AddrPort       `json:"port"`
		Level   slog.Level           `json:"level"`
		Match   regexp.Regexp        `json:"match"`
		Took    duration             `json:"took"`
		Date    date                 `json:"date"`
		Color   hexColor             `json:"color"`
		Colors  map[hexColor]bool    `json:"colors"`
		Counts  map[uint8]int        `json:"counts"`
		Lists   map[uint8][]uint     `json:"lists"`
		Exact   json.Number          `json:"exact"`
		Big     big.Int              `json:"big"`
		Any     any                  `json:"any"`
		List    []inner2             `json:"list"`
		Byname  map[string][2]inner2 `json:"byname"`
	}
	for value, want := range map[string]string{
		`{"small":300}`:                          "small: got 300, want an integer from -128 to 127",
		`{"small":1.5}`:                          "small: got 1.5, want an integer from -128 to 127",
		`{"large":9223372036854775808}`:          "large: got 9223372036854775808, want an integer from -9223372036854775808 to 9223372036854775807",
		`{"large":1e300}`:                        "large: got 1e300, want an integer from -9223372036854775808 to 9223372036854775807",
		`{"large":1e999999999}`:                  "large: got 1e999999999, want an integer from -9223372036854775808 to 9223372036854775807",
		`{"byte":-1}`:                            "byte: got -1, want an integer from 0 to 255",
		`{"byte":"1"}`:                           "byte: got string, want integer",
		`{"half":1e39}`:                          "half: got 1e39, want a number from -3.4028234663852886e+38 to 3.4028234663852886e+38",
		`{"half":true}`:                          "half: got boolean, want number",
		`{"name":7}`:                             "name: got number, want string",
		`{"on":{}}`:                              "on: got object, want boolean",
		`{"quoted":"abc"}`:                       `quoted: "abc" has no such value between its quotes: write one such as "7" or "true"`,
		`{"quoted":7}`:                           `quoted: 7 has no such value between its quotes: write one such as "7" or "true"`,
		`{"data":"***"}`:                         `data: "***" is not base64: write it such as aGVsbG8=`,
		`{"data":7}`:                             "data: got number, want a string in base64",
		`{"when":"noon"}`:                        `when: "noon" is not a time: write one such as 2026-01-02T15:04:05Z`,
		`{"address":"x"}`:                        `address: "x" is not an IP address: write one such as 192.0.2.1`,
		`{"host":"x"}`:                           `host: "x" is not an IP address: write one such as 192.0.2.1`,
		`{"network":"1.2.3.4/99"}`:               `network: "1.2.3.4/99" is not a range of IP addresses: write one such as 192.0.2.0/24`,
		`{"port":"1.2.3.4"}`:                     `port: "1.2.3.4" is not an IP address with a port: write one such as 192.0.2.1:80`,
		`{"port":"1.2.3.4:99999"}`:               `port: "1.2.3.4:99999" is not an IP address with a port: write one such as 192.0.2.1:80`,
		`{"level":"INFO+x"}`:                     `level: "INFO+x" is not a level: write one such as INFO`,
		`{"match":"("}`:                          `match: "(" is not a regular expression in the syntax of RE2`,
		`{"took":"1x"}`:                          `took: "1x" is not a duration: write one such as 1h30m`,
		`{"date":"2026-02-30"}`:                  `date: "2026-02-30" is not a time: write one such as 2026-01-02`,
		`{"when":7}`:                             `when: 7 is not a time: write one such as 2026-01-02T15:04:05Z`,
		`{"quoted":"1."}`:                        `quoted: got "1.", want an integer from -9223372036854775808 to 9223372036854775807, in quotes`,
		`{"large":0e99999999999}`:                "large: got 0e99999999999, want an integer from -9223372036854775808 to 9223372036854775807",
		`{"color":"#xx"}`:                        `color: a color is written as #ff: "xx" is not a number of this kind`,
		`{"list":{"n":"1"}}`:                     "list: got object, want array",
		`{"address":7}`:                          "address: got number, want string",
		`{"color":"red"}`:                        "color: a color is written as #ff",
		`{"colors":{"#10":true,"red":true}}`:     "colors.red: a color is written as #ff",
		`{"lists":{"7":[1.0,2.0],"300":[-0.0]}}`: `lists.300: got "300", want an integer from 0 to 255, in quotes`,
		`{"lists":{"7":[1.0,2.0,"3"]}}`:          "lists.7.2: got string, want integer",
		`{"counts":{"1":1,"300":1}}`:             `counts.300: got "300", want an integer from 0 to 255, in quotes`,
		`{"counts":{"one":1}}`:                   `counts.one: got "one", want an integer from 0 to 255, in quotes`,
		`{"exact":"1x"}`:                         `exact: "1x" is not a number`,
		`{"exact":true}`:                         "exact: got boolean, want number",
		`{"big":1.5}`:                            "big: 1.5 is not a number of this kind",
		`{"list":[{"n":1},{"n":1.0},{"n":"1"}]}`: "list.2.n: got string, want integer",
		`{"byname":{"a":[{"n":1},{"n":[]}]}}`:    "byname.a.1.n: got array, want integer",
		`[]`:                                     "got array, want object",
		`{`:                                      "unexpected end of JSON input",
	} {
		_, err := decodeJSON[inner](json.RawMessage(value))
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", value, err, want)
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
	for value, want := range map[string]string{
		`{"small":1.0,"large":9007199254740993.000,"big":-12e18,"keys":{"7":[1e2,-0.0]},"float":2.50}`: `{"small":1,"large":9007199254740993,"big":-12000000000000000000,"float":2.5,"keys":{"7":[100,0]},"raw":null,"exact":0,"any":null}`,
		`{"small":12.7e1,"large":1.8446744073709551615E+19,"any":"1.0\\\" 1.0"}`:                       `{"small":127,"large":18446744073709551615,"big":0,"float":0,"keys":null,"raw":null,"exact":0,"any":"1.0\\\" 1.0"}`,
		`{"small":1,"float":1.0,"raw":[1.0,1e2],"exact":1.0}`:                                          `{"small":1,"large":0,"big":0,"float":1,"keys":null,"raw":[1.0,1e2],"exact":1.0,"any":null}`,
	} {
		decoded, err := decodeJSON[numbers](json.RawMessage(value))
		if err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		if got, err := marshalJSON(decoded); string(got) != want {
			t.Errorf("%s: %s, want %s, %v", value, got, want, err)
		}
	}
}

// TestOthersNameTheirPlaces checks that answers, questions and results, which take other ways than arguments, are
// decoded like them.
func TestOthersNameTheirPlaces(t *testing.T) {
	type plan struct {
		Steps []inner2 `json:"steps"`
	}
	input := InputSpec{Name: "Plan", Schema: `{"type":"object","properties":{"steps":{"type":"array"}}}`}
	result := func(structured string) Snapshot {
		return Snapshot{Status: StatusCompleted, Result: &Result{Structured: json.RawMessage(structured)}}
	}
	for _, tc := range []struct {
		name   string
		decode func(value string) (plan, error)
		prefix string
	}{
		{"answer", func(value string) (plan, error) {
			return decodeAnswer[plan](json.RawMessage(`{"action":"accept","content":`+value+`}`), input)
		}, ErrInvalidAnswer.Error() + ": "},
		{"result", func(value string) (plan, error) { return decodeOutput[plan]("t", result(value)) }, "t: the result does not fit the output type: "},
	} {
		if got, err := tc.decode(`{"steps":[{"n":2.0},{"n":1e2}]}`); err != nil || len(got.Steps) != 2 || got.Steps[1].N != 100 {
			t.Errorf("%s: %+v, %v", tc.name, got, err)
		}
		want := tc.prefix + "steps.1.n: got 2.5, want an integer from "
		if _, err := tc.decode(`{"steps":[{"n":2.0},{"n":2.5}]}`); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s…", tc.name, err, want)
		}
	}
	const want = "mcptask: question k: _meta: got array, want object"
	if _, err := NewQuestion("", "k", methodElicit, json.RawMessage(`{"message":"m","_meta":[]}`)); err == nil || err.Error() != want {
		t.Errorf("question: %v, want %s", err, want)
	}
}
