package jsonschema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// checkPattern refuses a pattern that Go and JavaScript do not both accept.
// JSON Schema asks for the expressions of JavaScript, and a client in TypeScript refuses the whole
// list of tools for one that it cannot compile. Its validators set the flag u, which forbids
// escapes without a meaning.
func checkPattern(pattern string) error {
	if _, err := regexp.Compile(pattern); err != nil {
		r := &refusal{message: "is not a valid Go regular expression"}
		var invalid *syntax.Error
		if errors.As(err, &invalid) {
			r.message += fmt.Sprintf(": %s in %s", invalid.Code, invalid.Expr)
			if invalid.Code == syntax.ErrInvalidRepeatSize {
				r.hint = "write the smaller count first; the largest is 1000"
			}
		}
		return r
	}
	p := patternReader{names: map[string]bool{}}
	for rest := pattern; rest != ""; {
		element := outsideClass
		if p.inClass {
			element = insideClass
		}
		text := element.FindString(rest)
		rest = rest[len(text):]
		if fault, hint := p.read(text, rest); fault != "" {
			return &refusal{fmt.Sprintf("has %s, which is not in every dialect of regular expressions", fault), hint}
		}
	}
	return nil
}

// The elements of a valid Go expression, outside and inside of [...].
var (
	outsideClass = regexp.MustCompile(`(?s)^(` + escapes + `|\(\?[^:)>]*[:)>]|\{[0-9]+(,[0-9]*)?\}|\[\^?\]?|.)`)
	insideClass  = regexp.MustCompile(`(?s)^(` + escapes + `|\[:[^]]*:\]|.)`)
)

const escapes = `\\[pP]\{[^}]*\}|\\[pP].|\\x[^{].|\\.`

// patternReader finds the elements that JavaScript reads otherwise than Go.
type patternReader struct {
	inClass  bool
	position bool            // the last element matches a position, not text
	names    map[string]bool // of groups
}

// read reads one element. If it is not in every dialect, read returns its name and a hint.
func (p *patternReader) read(text, rest string) (fault, hint string) {
	afterPosition := p.position
	p.position = false
	switch {
	case text[0] == '\\':
		return p.readEscape(text, rest)
	case p.inClass && strings.HasPrefix(text, "[:"):
		if same := posixClasses[strings.Trim(text, "[:]")]; same != "" {
			return text, "write " + same
		}
		return text, "list its characters"
	case p.inClass:
		p.inClass = text != "]"
	case text[0] == '[':
		if p.inClass = true; strings.HasSuffix(text, "]") {
			return "] for itself", `write \]`
		}
	case strings.HasPrefix(text, "(?"):
		return p.readGroup(text)
	case text == "{" || text == "}" || text == "]":
		return text + " for itself", `write \` + text
	case afterPosition && strings.Contains("*+?{", text[:1]):
		return text + " after a position", "remove it"
	case text == "^" || text == "$":
		p.position = true
	}
	return "", ""
}

// posixClasses has the characters to write in place of the classes that only Go knows.
var posixClasses = map[string]string{
	"alnum": "0-9A-Za-z", "alpha": "A-Za-z", "digit": "0-9", "lower": "a-z", "upper": "A-Z", "word": "0-9A-Za-z_",
	"xdigit": "0-9A-Fa-f", "space": `\s`, "blank": `\t and a space`,
}

// readEscape reads a backslash with its characters.
func (p *patternReader) readEscape(text, rest string) (fault, hint string) {
	kind := text[1:2]
	many := strings.Contains("dDsSwWpP", kind)
	switch {
	case kind == "b" || kind == "B":
		p.position = true
		return "", ""
	case kind == "p" || kind == "P":
		switch name := strings.Trim(text[2:], "{}"); {
		case text[2] != '{':
			return text, fmt.Sprintf(`write \%s{%s}`, kind, name)
		case name[0] == '^':
			return text, `write \P and \p without ^`
		case !slices.Contains(generalCategories, name):
			return text, "use a general category such as L or Nd, or list the characters"
		}
	case many, strings.Contains(`tnrfv^$\.*+?()[]{}|/`, kind), kind == "-" && p.inClass, kind == "x" && len(text) > 2:
	case strings.Contains("01234567", kind):
		return text, `write \x and two digits`
	case escapeHints[kind] != "":
		return text, escapeHints[kind]
	default:
		return text, "write " + kind
	}
	if p.inClass && many && strings.HasPrefix(rest, "-") && !strings.HasPrefix(rest, "-]") {
		return "- after a class of characters", `write \-`
	}
	return "", ""
}

// generalCategories are the classes of Unicode that both dialects know by the same names.
var generalCategories = strings.Fields("L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs C Cc Cf Co Cs")

var escapeHints = map[string]string{
	"A": "write ^", "z": "write $", "Q": "write a backslash before each special character", "a": `write \x07`,
	"x": "write the character itself",
}

// readGroup reads the start of a group that begins with "(?".
func (p *patternReader) readGroup(text string) (fault, hint string) {
	_, name, _ := strings.Cut(strings.TrimSuffix(text, ">"), "<")
	switch {
	case text == "(?:":
	case strings.HasPrefix(text, "(?P<"):
		return text, fmt.Sprintf("write (?<%s>, or (?: for a group without a name", name)
	case text[2] == '<' && '0' <= name[0] && name[0] <= '9':
		return "a group whose name starts with a digit", "write (?: for a group without a name"
	case text[2] == '<' && p.names[name]:
		return "two groups with the name " + name, "give one of them another name"
	case text[2] == '<':
		p.names[name] = true
	case text[2] == 'i':
		return text, "write both cases, such as [Aa]"
	case text[2] == 's':
		return text, `write [\s\S] in place of the dot`
	default:
		return text, "write the expression without flags"
	}
	return "", ""
}
