package jsonschema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// bound is a keyword that limits values.
type bound struct {
	name  string
	value json.Number // "" if it is not set
}

func (b bound) String() string { return b.name + "=" + b.value.String() }

func (b bound) isExclusive() bool { return strings.HasPrefix(b.name, "exclusive") }

func newCount(name string, n *uint64) bound {
	if n == nil {
		return bound{name: name}
	}
	return bound{name, json.Number(strconv.FormatUint(*n, 10))}
}

// checkBounds refuses bounds that go beyond those of the Go type, or that exclude every value. s may
// be nil.
func checkBounds(ofType, s *schema, where string) (problems []error) {
	if s == nil {
		return nil
	}
	low := []bound{{"minimum", s.Minimum}, {"exclusiveMinimum", s.ExclusiveMinimum}}
	high := []bound{{"maximum", s.Maximum}, {"exclusiveMaximum", s.ExclusiveMaximum}}
	for _, b := range slices.Concat(low, high) {
		if b.value != "" && !isWithin(b.value, ofType) {
			problems = append(problems, beyondType(fmt.Sprintf("%q in the %s", b.String(), where), ofType))
		} else if err := checkWhole(s, b, where); err != nil {
			problems = append(problems, err)
		}
	}
	if err := checkWhole(s, bound{"multipleOf", s.MultipleOf}, where); err != nil {
		problems = append(problems, err)
	}
	if len(problems) > 0 {
		return problems
	}
	pairs := [][2]bound{
		{newCount("minLength", s.MinLength), newCount("maxLength", s.MaxLength)},
		{newCount("minItems", s.MinItems), newCount("maxItems", s.MaxItems)},
	}
	for _, l := range low {
		pairs = append(pairs, [2]bound{l, high[0]}, [2]bound{l, high[1]})
	}
	for _, pair := range pairs {
		l, h := pair[0], pair[1]
		if l.value == "" || h.value == "" {
			continue
		}
		exclusive := l.isExclusive() || h.isExclusive()
		if order := rational(l.value).Cmp(rational(h.value)); order > 0 || order == 0 && exclusive {
			problems = append(problems, &refusal{fmt.Sprintf("%q and %q in the %s allow no value", l, h, where), ""})
		} else if s.MultipleOf != "" && !hasMultiple(s, l, h) {
			problems = append(problems, &refusal{fmt.Sprintf("%q in the %s allows no value from %s to %s", "multipleOf="+s.MultipleOf, where, l, h), ""})
		}
	}
	return problems
}

// hasMultiple reports whether there is a multiple between two bounds.
func hasMultiple(s *schema, low, high bound) bool {
	step := rational(s.MultipleOf)
	quotient := new(big.Rat).Quo(rational(low.value), step)
	count := new(big.Int).Div(quotient.Num(), quotient.Denom()) // rounds down
	least := new(big.Rat).Mul(new(big.Rat).SetInt(count), step)
	if order := least.Cmp(rational(low.value)); order < 0 || order == 0 && low.isExclusive() {
		least.Add(least, step)
	}
	order := least.Cmp(rational(high.value))
	return order < 0 || order == 0 && !high.isExclusive()
}

// checkWhole refuses a bound of integers that is not an integer. The hint has the bound that means the same.
func checkWhole(s *schema, b bound, where string) error {
	if s.Type != "integer" || b.value == "" || rational(b.value).IsInt() {
		return nil
	}
	r := &refusal{message: fmt.Sprintf("%q in the %s is not an integer", b.String(), where)}
	name, value := b.name, rational(b.value)
	whole := new(big.Int).Div(value.Num(), value.Denom()) // rounds down
	switch {
	case name == "multipleOf" && value.Num().IsInt64() && value.Num().Int64() == 1:
		r.hint = "remove it, because every integer is a multiple of it"
		return r
	case name == "multipleOf":
		whole = value.Num() // of the reduced fraction
	case strings.HasSuffix(strings.ToLower(name), "minimum"):
		name = "minimum"
		whole.Add(whole, big.NewInt(1))
	default:
		name = "maximum"
	}
	r.hint = fmt.Sprintf("write %s=%s", name, whole)
	return r
}

func isWithin(n json.Number, s *schema) bool {
	return (s.Minimum == "" || rational(n).Cmp(rational(s.Minimum)) >= 0) && (s.Maximum == "" || rational(n).Cmp(rational(s.Maximum)) <= 0)
}

// beyondType refuses a value beyond the bounds of its Go type.
func beyondType(what string, ofType *schema) *refusal {
	return &refusal{what + " is not a value of the Go type", fmt.Sprintf("its values are %s to %s", ofType.Minimum, ofType.Maximum)}
}

// rational returns the value of a number that readNumber has checked.
func rational(n json.Number) *big.Rat {
	r, _ := new(big.Rat).SetString(n.String())
	return r
}
