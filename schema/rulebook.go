package schema

import (
	"fmt"
	"regexp"
	"strings"
)

// Rule is an observable requirement of a revision.
type Rule struct {
	// ID is the rule's number, such as "C-17". The letter identifies the revision.
	ID string
	// Level is the keyword of the source: MUST, MUST NOT, SHOULD, SHOULD NOT or MAY. RULE is a
	// statement without a keyword.
	Level string
	// Actor is the party it binds: client, server, requestor, receiver, host or both.
	Actor string
	// Text states the rule in one sentence.
	Text string
	// NotObservable is the reason why no test can check the rule. It is empty if a test can.
	NotObservable string
}

// Mandatory reports whether the rule is a MUST or MUST NOT.
func (r Rule) Mandatory() bool { return strings.HasPrefix(r.Level, "MUST") }

var ruleLine = regexp.MustCompile(`^([A-Z]-[0-9]{2,3}) (MUST NOT|MUST|SHOULD NOT|SHOULD|MAY|RULE) (client|server|requestor|receiver|host|both): (.+?)(?: \[not observable: (.+)\])?$`)

// Rules reads the rule book of a revision, rules.txt, with one rule per line, numbered without
// gaps.
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
			return nil, fmt.Errorf("schema: %s:%d: found rule %s, want %s", name, i+1, m[1], want)
		}
		if len(rules) > 0 && m[1][0] != rules[0].ID[0] {
			return nil, fmt.Errorf("schema: %s:%d: the rule %s belongs to another revision", name, i+1, m[1])
		}
		rules = append(rules, Rule{ID: m[1], Level: m[2], Actor: m[3], Text: m[4], NotObservable: m[5]})
	}
	return rules, nil
}
