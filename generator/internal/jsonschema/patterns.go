package jsonschema

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// checkPattern refuses a pattern that Go and JavaScript do not both accept.
// JSON Schema asks for the expressions of JavaScript, and a client in TypeScript refuses the whole
// list of tools for one that it cannot compile. Its validators set the flag u, which forbids
// escapes without a meaning.
func checkPattern(pattern string) error {
	if _, err := regexp.Compile(pattern); err != nil {
		return &refusal{message: "is not a valid Go regular expression"}
	}
	p := patternReader{rest: pattern}
	for p.rest != "" {
		if r := p.next(); r != nil {
			return &refusal{fmt.Sprintf("has %s, which is not in every dialect of regular expressions", r.message), r.hint}
		}
	}
	return nil
}

// patternReader reads a valid Go expression up to the first thing that JavaScript reads otherwise.
type patternReader struct {
	rest    string
	inClass bool
	// position says that what was read last matches a position, not text.
	position bool
}

// next reads one element.
func (p *patternReader) next() *refusal {
	if p.inClass {
		return p.nextInClass()
	}
	before := p.position
	p.position = false
	switch c := p.rest[0]; c {
	case '\\':
		return p.escape()
	case '[':
		return p.openClass()
	case '(':
		return p.group()
	case '^', '$':
		p.position = true
	case '*', '+', '?':
		if before {
			return &refusal{fmt.Sprintf("%c after a position", c), "remove it"}
		}
	case '{':
		repeat := repetition.FindString(p.rest)
		if repeat == "" {
			return &refusal{"{ for itself", `write \{`}
		}
		if before {
			return &refusal{repeat + " after a position", "remove it"}
		}
		p.rest = p.rest[len(repeat):]
		return nil
	case '}', ']':
		return &refusal{fmt.Sprintf("%c for itself", c), fmt.Sprintf(`write \%c`, c)}
	}
	p.skip(p.rest)
	return nil
}

var repetition = regexp.MustCompile(`^\{[0-9]+(,[0-9]*)?\}`)

// skip reads the first character of a text.
func (p *patternReader) skip(text string) {
	_, size := utf8.DecodeRuneInString(text)
	p.rest = text[size:]
}

func (p *patternReader) openClass() *refusal {
	p.inClass = true
	p.rest = strings.TrimPrefix(p.rest[1:], "^")
	if strings.HasPrefix(p.rest, "]") {
		return &refusal{"] for itself", `write \]`}
	}
	return nil
}

// nextInClass reads one element of [...].
func (p *patternReader) nextInClass() *refusal {
	switch {
	case p.rest[0] == ']':
		p.inClass = false
		p.rest = p.rest[1:]
		return nil
	case strings.HasPrefix(p.rest, "[:"):
		name, _, _ := strings.Cut(p.rest[2:], ":]")
		hint := posixClasses[name]
		if hint == "" {
			hint = "list its characters"
		}
		return &refusal{"[:" + name + ":]", "write " + hint}
	case p.rest[0] != '\\':
		p.skip(p.rest)
		return nil
	}
	many := len(p.rest) > 1 && strings.IndexByte("dDsSwWpP", p.rest[1]) >= 0
	if r := p.escape(); r != nil {
		return r
	}
	if many && strings.HasPrefix(p.rest, "-") && !strings.HasPrefix(p.rest, "-]") {
		return &refusal{"- after a class of characters", `write \-`}
	}
	return nil
}

// posixClasses has what to write in place of the classes that only Go knows.
var posixClasses = map[string]string{
	"alnum": "0-9A-Za-z", "alpha": "A-Za-z", "digit": "0-9", "lower": "a-z", "upper": "A-Z", "word": "0-9A-Za-z_",
	"xdigit": "0-9A-Fa-f", "space": `\s`, "blank": `\t and a space`,
}

// escape reads a backslash and what belongs to it.
func (p *patternReader) escape() *refusal {
	c := p.rest[1]
	after := p.rest[2:]
	escaped := p.rest[:2]
	switch {
	case strings.IndexByte(`dDsSwWtnrfv^$\.*+?()[]{}|/`, c) >= 0, c == '-' && p.inClass:
		p.rest = after
		return nil
	case c == 'b' || c == 'B':
		p.position = true
		p.rest = after
		return nil
	case c == 'x' && !strings.HasPrefix(after, "{"):
		p.rest = after[2:]
		return nil
	case c == 'p' || c == 'P':
		name, rest, braced := strings.Cut(strings.TrimPrefix(after, "{"), "}")
		braced = braced && strings.HasPrefix(after, "{")
		switch {
		case !braced:
			return &refusal{escaped + after[:1], fmt.Sprintf(`write %s{%s}`, escaped, after[:1])}
		case strings.HasPrefix(name, "^"):
			return &refusal{escaped + "{" + name + "}", `write \P and \p without ^`}
		case !slices.Contains(generalCategories, name):
			return &refusal{escaped + "{" + name + "}", "use a general category such as L or Nd, or list the characters"}
		}
		p.rest = rest
		return nil
	}
	hint := "write " + string(c)
	switch c {
	case 'A':
		hint = "write ^"
	case 'z':
		hint = "write $"
	case 'Q':
		hint = "write a backslash before each special character"
	case 'a':
		hint = `write \x07`
	case 'x':
		hint = "write the character itself"
	case '0', '1', '2', '3', '4', '5', '6', '7':
		hint = `write \x and two digits`
	}
	return &refusal{escaped, hint}
}

// generalCategories are the classes of Unicode that both dialects know by the same names.
var generalCategories = strings.Fields("L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs C Cc Cf Co Cs")

// group reads the start of a group.
func (p *patternReader) group() *refusal {
	rest, special := strings.CutPrefix(p.rest, "(?")
	if !special {
		p.rest = p.rest[1:]
		return nil
	}
	end := strings.IndexAny(rest, ":)>")
	name := rest[:end]
	switch {
	case strings.HasPrefix(rest, ":"):
	case strings.HasPrefix(rest, "P<"):
		return &refusal{"(?" + name + ">", "write (?" + name[1:] + ">, or (?: for a group without a name"}
	case strings.HasPrefix(rest, "<") && (name[1] < '0' || name[1] > '9'):
	case strings.HasPrefix(rest, "<"):
		return &refusal{"a group whose name starts with a digit", "write (?: for a group without a name"}
	case strings.HasPrefix(rest, "i"):
		return &refusal{"(?" + name + rest[end:end+1], "write both cases, such as [Aa]"}
	case strings.HasPrefix(rest, "s"):
		return &refusal{"(?" + name + rest[end:end+1], `write [\s\S] in place of the dot`}
	default:
		return &refusal{"(?" + name + rest[end:end+1], "write the expression without flags"}
	}
	p.rest = rest[end+1:]
	return nil
}
