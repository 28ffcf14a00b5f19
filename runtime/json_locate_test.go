package mcptask

import (
	"encoding/json"
	"errors"
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
