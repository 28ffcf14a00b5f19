// Package breaking compares two contracts and finds what breaks callers, stored tasks and models.
package breaking

import "slices"

// The values of Finding.Breaks.
const (
	callers = "callers"
	tasks   = "stored tasks"
	models  = "models"
)

// Rule is a kind of change that breaks something.
type Rule struct {
	Name    string
	Meaning string // what has changed
	Breaks  []string
	WayOut  string
}

// Rules lists all rules, in the order of the reference.
var Rules = []Rule{
	{"tool-gone", "a tool, or a former name of it, is no longer served", []string{callers, tasks}, "keep the tool until no caller and no stored task needs it; if another tool takes its place, write `was=` there"},
	{"tool-renamed", "a tool has another name", []string{callers, tasks}, "write `was=old_name` on the tool, or pin the name with `name=`"},
	{"argument-required", "an argument is new and required, or is required now", []string{callers, tasks}, "make it optional: `omitempty` with `jsonschema:\"default=...\"`, or a default in the handler; for stored tasks alone, `onchange=run`"},
	{"argument-gone", "an argument is refused or ignored now", []string{callers, tasks}, "keep the field, and ignore it in the handler"},
	{"argument-type", "an argument has another type, or may no longer be null", []string{callers, tasks}, "add an argument of the new type under another name"},
	{"argument-values", "an argument takes fewer values", []string{callers, tasks}, "keep the old values, and map them in the handler"},
	{"argument-bounds", "a bound of an argument is narrower", []string{callers, tasks}, "keep the bound, and check the narrower one in the handler"},
	{"argument-form", "the pattern, the format or the combination of schemas of an argument has changed so that old values may not fit", []string{callers, tasks}, "check by hand whether old values fit, and allow the finding if they do"},
	{"result-gone", "a member of a result is gone, or the result is text now", []string{callers}, "keep the member until no caller reads it"},
	{"result-optional", "a member of a result may be missing now", []string{callers}, "write the member always"},
	{"result-type", "a result or a member of it has another type or format, or may be null now", []string{callers}, "add a member of the new type under another name"},
	{"result-values", "a result has new values", []string{callers}, "tell callers to expect values that they do not know, then allow the finding"},
	{"result-form", "a result has changed so that a strict reader of the old schema may refuse it", []string{callers}, "check by hand whether old readers accept it, and allow the finding if they do"},
	{"task-support", "calls that ran as a task, or without one, are refused now", []string{callers}, "set `task=optional`"},
	{"fallback-gone", "clients without tasks no longer find the fallback tools", []string{callers}, "keep `fallback=tools` and the prefix of the service"},
	{"restart-gone", "a running task whose process dies fails now, and started again before", []string{tasks}, "keep `onlost=restart` until the running tasks have ended"},
	{"limit-lower", "the ttl, deadline or attempts of a tool are lower now", []string{callers, tasks}, "keep the limit until callers and running tasks need no more"},
	{"question-gone", "a question is no longer asked", []string{callers}, "keep the type and its name until no old client answers it"},
	{"question-new", "a tool asks before its task begins, and did not before", []string{callers}, "ask while the task runs, if the caller can be asked"},
	{"question-form", "an answer to the old form of a question may not fit", []string{callers, tasks}, "make new fields optional, and keep the types and values of the others"},
	{"error-gone", "a declared error is gone", []string{callers}, "keep the error type until no caller looks for its code"},
	{"error-member", "a member of an error is gone, may be missing, or has another type", []string{callers}, "keep the member, and add another beside it"},
	{"description", "a model or an asked person reads another text; reported with `--models` only", []string{models}, "try the new text with the models that call the tool"},
}

// RuleNames returns the names of all rules.
func RuleNames() (names []string) {
	for _, r := range Rules {
		names = append(names, r.Name)
	}
	return names
}

// findRule returns the rule with a name, which exists.
func findRule(name string) Rule {
	return Rules[slices.IndexFunc(Rules, func(r Rule) bool { return r.Name == name })]
}
