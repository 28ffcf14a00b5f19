package mcptask

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

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
	if most := (maxMismatchWork + 1) * len(value); decoded > most || !strings.HasSuffix(err.Error(), ": no number") {
		t.Errorf("decoded %d bytes for %d: %.100s", decoded, len(value), err)
	}
}
