package declaration

import (
	"fmt"
	"go/token"
	"slices"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/directive"
)

// form is what the value of a key looks like.
type form int

const (
	text     form = iota // any string that is not empty
	duration             // a Go duration
	choice               // one of a few words
	flag                 // nothing, true or false
)

// key is one key of a directive.
type key struct {
	name    string
	form    form
	choices []string
	least   time.Duration // of a duration
	on      []string      // the directives that have it
	example string
}

// keys is the whole vocabulary. The policy and the hints may also stand on a service, as defaults
// for its tools.
var keys = []key{
	{name: "name", form: text, on: []string{"tool"}},
	{name: "title", form: text, on: []string{"tool"}},
	{name: "schema", form: text, on: []string{"tool"}},
	{name: "outputschema", form: text, on: []string{"tool"}},
	{name: "task", form: choice, choices: []string{"forbidden", "optional", "required"}, on: []string{"tool", "service"}},
	{name: "ttl", form: duration, least: time.Millisecond, on: []string{"tool", "service"}, example: "24h"},
	{name: "poll", form: duration, least: time.Millisecond, on: []string{"tool", "service"}, example: "2s"},
	{name: "grace", form: duration, on: []string{"tool", "service"}, example: "200ms"},
	{name: "wait", form: duration, on: []string{"tool", "service"}, example: "90s"},
	{name: "deadline", form: duration, least: time.Millisecond, on: []string{"tool", "service"}, example: "1h"},
	{name: "onlost", form: choice, choices: []string{"fail", "restart"}, on: []string{"tool", "service"}},
	{name: "immediate", form: text, on: []string{"tool", "service"}},
	{name: "readonly", form: flag, on: []string{"tool", "service"}},
	{name: "destructive", form: flag, on: []string{"tool", "service"}},
	{name: "idempotent", form: flag, on: []string{"tool", "service"}},
	{name: "openworld", form: flag, on: []string{"tool", "service"}},
	{name: "prefix", form: text, on: []string{"service"}},
	{name: "fallback", form: choice, choices: []string{"tools", "none"}, on: []string{"service"}},
	{name: "message", form: text, on: []string{"input"}},
}

// setting is a key's checked value.
type setting struct {
	pos      token.Pos // of the key
	valuePos token.Pos
	text     string
	duration time.Duration
	flag     bool
	bad      bool // reported already
}

// settings are the keys of one directive, or of several of the same kind in one comment group.
type settings map[string]setting

// merge adds the arguments of a directive, and reports those that are wrong.
func (r *reader) merge(into settings, d directive.Directive) {
	for i := 0; i < len(d.Args); i++ {
		arg := d.Args[i]
		if words := splitText(d.Kind, d.Args[i:]); words > 0 {
			whole := arg.Value
			for _, word := range d.Args[i+1 : i+1+words] {
				whole += " " + word.Key
			}
			i++
			r.fail(d.Args[i].Pos, fmt.Sprintf("%q follows %s=%s", d.Args[i].Key, arg.Key, arg.Value),
				fmt.Sprintf("a text of several words stands in quotes: write %s=%q", arg.Key, whole))
			i += words - 1
		}
		if arg.Word {
			hint := directive.Form
			if strings.HasSuffix(arg.Key, ",") {
				hint = directive.NoComma
			}
			r.fail(arg.Pos, fmt.Sprintf("%q is not an argument", arg.Key), hint)
			continue
		}
		k, ok := r.findKey(d.Kind, arg)
		if !ok {
			continue
		}
		if before, repeated := into[arg.Key]; repeated {
			r.fail(arg.Pos, fmt.Sprintf("%s is set twice", arg.Key),
				fmt.Sprintf("it stands in line %d already", r.fset.Position(before.pos).Line))
			continue
		}
		s := setting{pos: arg.Pos, valuePos: arg.ValuePos, text: arg.Value}
		if message, hint := k.parse(arg, &s); message != "" {
			pos := arg.Pos
			if arg.HasValue {
				pos = arg.ValuePos
			}
			r.fail(pos, message, hint)
			s = setting{pos: arg.Pos, valuePos: pos, bad: true}
		}
		into[arg.Key] = s
	}
}

// splitText counts the words that a text without quotes has lost to the arguments behind it.
func splitText(kind string, args []directive.Arg) int {
	first := args[0]
	k, ok := keyOf(kind, first.Key)
	if !ok || k.form != text || !first.HasValue || first.Quoted {
		return 0
	}
	words := 0
	for _, arg := range args[1:] {
		if _, ok := keyOf(kind, strings.TrimSuffix(arg.Key, ",")); ok || arg.HasValue {
			break
		}
		words++
	}
	return words
}

// keyOf is the key of a directive that has the name.
func keyOf(kind, name string) (key, bool) {
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
			r.fail(arg.Pos, fmt.Sprintf("%s is no key of mcptask:%s", arg.Key, kind), "it belongs to mcptask:"+k.on[0])
			return key{}, false
		case on:
			valid = append(valid, k.name)
		}
	}
	hint := "the keys are " + strings.Join(valid, ", ")
	if near := diag.Nearest(strings.ToLower(arg.Key), valid); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	r.fail(arg.Pos, fmt.Sprintf("unknown key %q of mcptask:%s", arg.Key, kind), hint)
	return key{}, false
}

// parse checks the value of an argument; it returns what is wrong with it, if anything.
func (k key) parse(arg directive.Arg, s *setting) (message, hint string) {
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
			hint := "it is one of " + strings.Join(k.choices, ", ")
			if near := diag.Nearest(arg.Value, k.choices); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			if !arg.HasValue {
				return k.name + " needs a value", "it is one of " + strings.Join(k.choices, ", ")
			}
			return fmt.Sprintf("%s=%s is not known", k.name, arg.Value), hint
		}
	case duration:
		return k.parseDuration(arg, s)
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
		return fmt.Sprintf("%s=%s is not a duration", k.name, arg.Value), "the longest unit is the hour: a day is 24h"
	case err != nil && strings.Trim(arg.Value, "0123456789.") == "":
		return fmt.Sprintf("%s=%s has no unit", k.name, arg.Value), example
	case err != nil:
		return fmt.Sprintf("%s=%s is not a duration", k.name, arg.Value), example
	case k.least > 0 && d <= 0:
		return fmt.Sprintf("%s=%s is not positive", k.name, arg.Value), example
	case k.least > 0 && d < k.least:
		return fmt.Sprintf("%s=%s is shorter than a millisecond", k.name, arg.Value), "the wire knows no less"
	case d < 0:
		return fmt.Sprintf("%s=%s is negative", k.name, arg.Value), example
	}
	s.duration = d
	return "", ""
}
