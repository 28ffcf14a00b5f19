package declaration

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/directive"
)

// form is the syntax of a key's value.
type form int

const (
	text     form = iota // any nonempty string
	duration             // a Go duration
	choice               // one of a few words
	flag                 // nothing, true or false
	count                // a whole number, at least 1
)

// key describes one key of a directive.
type key struct {
	name    string
	form    form
	choices []string
	least   time.Duration // the minimum of a duration
	most    int           // the maximum of a count
	on      []string      // the directives that accept it
	example string
}

// keys lists all keys. The keys of the policy and the hints are also valid on a service, as
// defaults for its tools.
var keys = []key{
	{name: "name", form: text, on: []string{"tool"}},
	{name: "was", form: text, on: []string{"tool"}},
	{name: "title", form: text, on: []string{"tool"}},
	{name: "schema", form: text, on: []string{"tool"}},
	{name: "outputschema", form: text, on: []string{"tool"}},
	{name: "workflow", form: text, on: []string{"tool"}},
	{name: "task", form: choice, choices: []string{"forbidden", "optional", "required"}, on: []string{"tool", "service"}},
	{name: "ttl", form: duration, least: time.Millisecond, on: []string{"tool", "service"}, example: "24h"},
	{name: "poll", form: duration, least: time.Millisecond, on: []string{"tool", "service"}, example: "2s"},
	{name: "grace", form: duration, on: []string{"tool", "service"}, example: "200ms"},
	{name: "wait", form: duration, on: []string{"tool", "service"}, example: "20s"},
	{name: "deadline", form: duration, least: time.Millisecond, on: []string{"tool", "service"}, example: "1h"},
	{name: "concurrency", form: count, most: 1_000_000, on: []string{"tool", "service"}, example: "4"},
	{name: "onlost", form: choice, choices: []string{"fail", "restart"}, on: []string{"tool", "service"}},
	{name: "onchange", form: choice, choices: []string{"fail", "run"}, on: []string{"tool", "service"}},
	{name: "onleave", form: choice, choices: []string{"stop", "keep"}, on: []string{"tool", "service"}},
	{name: "attempts", form: count, most: 1000, on: []string{"tool", "service"}, example: "3"},
	{name: "immediate", form: text, on: []string{"tool", "service"}},
	{name: "readonly", form: flag, on: []string{"tool", "service"}},
	{name: "destructive", form: flag, on: []string{"tool", "service"}},
	{name: "idempotent", form: flag, on: []string{"tool", "service"}},
	{name: "openworld", form: flag, on: []string{"tool", "service"}},
	{name: "prefix", form: text, on: []string{"service"}},
	{name: "fallback", form: choice, choices: []string{"tools", "none"}, on: []string{"service"}},
	{name: "message", form: text, on: []string{"input"}},
	{name: "code", form: text, on: []string{"error"}},
	{name: "breaking", form: text, on: []string{"allow"}},
	{name: "portable", form: text, on: []string{"allow"}},
	{name: "reason", form: text, on: []string{"allow"}},
}

// setting is the checked value of a key.
type setting struct {
	pos      token.Pos // of the key
	valuePos token.Pos
	text     string
	duration time.Duration
	count    int
	flag     bool
	bad      bool // invalid, and already reported
}

// settings holds the keys of one directive, or of several of the same kind in one comment group.
type settings map[string]setting

// mergeSettings adds the arguments of a directive and reports invalid ones.
func (r *reader) mergeSettings(into settings, d directive.Directive) {
	for i, arg := range d.Args {
		if before := d.Args[max(0, i-1)]; i > 0 && isLostWord(d.Kind, before, arg) {
			r.addProblem(arg.Pos, fmt.Sprintf("%q follows %s=%s", arg.Key, before.Key, before.Value),
				fmt.Sprintf("quote a text of several words: write %s=\"%s ...\"", before.Key, before.Value))
			return
		}
		k, ok := r.findKey(d.Kind, arg)
		if !ok {
			continue
		}
		if before, repeated := into[arg.Key]; repeated {
			r.addProblem(arg.Pos, fmt.Sprintf("%s is set twice", arg.Key),
				fmt.Sprintf("line %d already sets it", r.fset.Position(before.pos).Line))
			continue
		}
		s := setting{pos: arg.Pos, valuePos: arg.ValuePos, text: arg.Value}
		if message, hint := k.parseValue(arg, &s); message != "" {
			pos := arg.Pos
			if arg.HasValue {
				pos = arg.ValuePos
			}
			r.addProblem(pos, message, hint)
			s = setting{pos: arg.Pos, valuePos: pos, bad: true}
		}
		into[arg.Key] = s
	}
}

// isLostWord reports whether an argument probably belongs to the unquoted text before it.
func isLostWord(kind string, before, arg directive.Arg) bool {
	k, ok := lookupKey(kind, before.Key)
	_, isKey := lookupKey(kind, arg.Key)
	return ok && k.form == text && before.HasValue && !before.Quoted && !isKey && !arg.HasValue
}

// lookupKey returns the key with that name of a directive.
func lookupKey(kind, name string) (key, bool) {
	for _, k := range keys {
		if k.name == name && slices.Contains(k.on, kind) {
			return k, true
		}
	}
	return key{}, false
}

func (r *reader) findKey(kind string, arg directive.Arg) (key, bool) {
	var valid []string
	for _, k := range keys {
		on := slices.Contains(k.on, kind)
		switch {
		case k.name == arg.Key && on:
			return k, true
		case k.name == arg.Key:
			r.addProblem(arg.Pos, fmt.Sprintf("%s is not a key of mcptask:%s", arg.Key, kind), "it belongs to mcptask:"+k.on[0])
			return key{}, false
		case on:
			valid = append(valid, k.name)
		}
	}
	r.problems.AddMisspelling(r.fset.Position(arg.Pos), fmt.Sprintf("unknown key %q of mcptask:%s", arg.Key, kind), "", arg.Key, valid,
		"the keys are "+strings.Join(valid, ", "))
	return key{}, false
}

// parseValue checks the value of an argument. If it is invalid, parseValue returns a message.
func (k key) parseValue(arg directive.Arg, s *setting) (message, hint string) {
	switch k.form {
	case flag:
		switch {
		case !arg.HasValue || arg.Value == "true":
			s.flag = true
		case arg.Value != "false":
			return fmt.Sprintf("%s=%s is neither true nor false", k.name, arg.Value), ""
		}
	case choice:
		if !slices.Contains(k.choices, arg.Value) {
			hint := "use one of " + strings.Join(k.choices, ", ")
			if !arg.HasValue {
				return k.name + " needs a value", hint
			}
			return fmt.Sprintf("%s=%s is not a valid value", k.name, arg.Value), cmp.Or(diag.DidYouMean(arg.Value, k.choices), hint)
		}
	case duration:
		return k.parseDuration(arg, s)
	case count:
		return k.parseCount(arg, s)
	case text:
		if !arg.HasValue || arg.Value == "" {
			return k.name + " needs a value", fmt.Sprintf("write %s=\"...\"", k.name)
		}
	}
	return "", ""
}

func (k key) parseDuration(arg directive.Arg, s *setting) (message, hint string) {
	example := fmt.Sprintf("write a duration such as %s=%s", k.name, k.example)
	if !arg.HasValue {
		return k.name + " needs a value", example
	}
	d, err := time.ParseDuration(arg.Value)
	switch {
	case err != nil && strings.Trim(arg.Value, "0123456789") == "d":
		return fmt.Sprintf("%s=%s is not a duration", k.name, arg.Value), "the longest unit is the hour: write a day as 24h"
	case err != nil && strings.Trim(arg.Value, "0123456789.") == "":
		return fmt.Sprintf("%s=%s has no unit", k.name, arg.Value), example
	case err != nil:
		return fmt.Sprintf("%s=%s is not a duration", k.name, arg.Value), example
	case k.least > 0 && d <= 0:
		return fmt.Sprintf("%s=%s is not positive", k.name, arg.Value), example
	case k.least > 0 && d < k.least:
		return fmt.Sprintf("%s=%s is shorter than a millisecond", k.name, arg.Value), "MCP counts durations in milliseconds"
	case d < 0:
		return fmt.Sprintf("%s=%s is negative", k.name, arg.Value), example
	}
	s.duration = d
	return "", ""
}

func (k key) parseCount(arg directive.Arg, s *setting) (message, hint string) {
	example := fmt.Sprintf("write a number such as %s=%s", k.name, k.example)
	if !arg.HasValue || arg.Value == "" {
		return k.name + " needs a value", example
	}
	n, err := strconv.Atoi(arg.Value)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return fmt.Sprintf("%s=%s is not a whole number", k.name, arg.Value), example
	case err != nil || n < 1 || n > k.most:
		return fmt.Sprintf("%s=%s is not between 1 and %d", k.name, arg.Value, k.most), example
	}
	s.count = n
	return "", ""
}
