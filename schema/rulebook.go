package schema

import (
	"fmt"
	"regexp"
	"strings"
)

// Rule is one requirement of a revision that somebody outside can observe.
type Rule struct {
	// ID is its number, such as "C-17". The letter names the revision.
	ID string
	// Level is the source's own keyword: MUST, MUST NOT, SHOULD, SHOULD NOT or
	// MAY; RULE is what the source states without one.
	Level string
	// Actor is whom it binds: client, server, requestor, receiver, host or both.
	Actor string
	// Text says it in one sentence.
	Text string
	// NotObservable is why no test can see whether it is kept; "" means that one can.
	NotObservable string
}

// Mandatory says whether the rule is a MUST or a MUST NOT.
func (r Rule) Mandatory() bool { return strings.HasPrefix(r.Level, "MUST") }

var ruleLine = regexp.MustCompile(`^([A-Z]-[0-9]{2,3}) (MUST NOT|MUST|SHOULD NOT|SHOULD|MAY|RULE) (client|server|requestor|receiver|host|both): (.+?)(?: \[not observable: (.+)\])?$`)

// Rules reads the rule book of a revision: rules.txt beside its schema, one
// rule a line, numbered without a gap.
func Rules(revision string) ([]Rule, error) {
	name := revision + "/rules.txt"
	data, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return parseRules(name, string(data))
}

func parseRules(name, text string) ([]Rule, error) {
	var rules []Rule
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		m := ruleLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("schema: %s:%d: %q is not of the form \"C-01 MUST server: text [not observable: reason]\"", name, i+1, line)
		}
		if want := fmt.Sprintf("%c-%02d", m[1][0], i+1); m[1] != want {
			return nil, fmt.Errorf("schema: %s:%d: the rule %s stands where %s belongs", name, i+1, m[1], want)
		}
		if len(rules) > 0 && m[1][0] != rules[0].ID[0] {
			return nil, fmt.Errorf("schema: %s:%d: the rule %s belongs to another revision", name, i+1, m[1])
		}
		rules = append(rules, Rule{ID: m[1], Level: m[2], Actor: m[3], Text: m[4], NotObservable: m[5]})
	}
	return rules, nil
}
