package form

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxRepeated bounds the part of a person's input that an error repeats, in characters.
const maxRepeated = 60

// ReadNumber returns the number that a person typed for the field, in JSON, which has neither +3 nor 007.
func (f Field) ReadNumber(typed string) (json.RawMessage, error) {
	typed = strings.TrimSpace(typed)
	if whole := readInteger(typed); whole != nil {
		return whole, nil
	}
	if f.Type == "integer" {
		return nil, fmt.Errorf("%.*q is not a whole number", maxRepeated, typed)
	}
	number, err := strconv.ParseFloat(typed, 64)
	if err != nil || math.IsInf(number, 0) || math.IsNaN(number) {
		return nil, fmt.Errorf("%.*q is not a number such as 3 or -2.5", maxRepeated, typed)
	}
	if json.Valid([]byte(typed)) {
		return json.RawMessage(typed), nil
	}
	return json.RawMessage(strconv.FormatFloat(number, 'g', -1, 64)), nil
}

// readInteger returns an integer of any length in JSON, or nil.
func readInteger(typed string) json.RawMessage {
	digits, isNegative := strings.CutPrefix(strings.TrimPrefix(typed, "+"), "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return nil
	}
	digits = cmp.Or(strings.TrimLeft(digits, "0"), "0")
	if isNegative && digits != "0" {
		digits = "-" + digits
	}
	return json.RawMessage(digits)
}
