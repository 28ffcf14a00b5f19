package toolschema

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// toolDoc returns the doc comment of a tool's method.
func toolDoc(t *tool, method string, side model.Side) string {
	does := method + " calls "
	if !side.Calls() {
		does = method + " handles calls of "
	}
	doc := []string{does + "the tool " + t.name + "."}
	if utf8.RuneCountInString(t.name) > longestWord {
		doc[0] = does + "the tool of the same name."
	}
	if t.description != "" {
		doc = append(doc, t.description)
	} else if t.title != "" {
		doc = append(doc, t.title)
	}
	var said []string
	if len(t.hints) > 0 {
		said = append(said, "Hints: "+strings.Join(t.hints, ", ")+".")
	}
	if t.support != "" {
		said = append(said, "Task support: "+string(t.support)+".")
	}
	doc = append(doc, strings.Join(said, " "))
	return formatProse(doc...)
}

// constDoc returns the doc comment of a constant, or "" if it needs none.
func constDoc(id, text string) string {
	if text == "" {
		return ""
	}
	return formatProse(id + " is " + text)
}

// fieldDoc returns the doc comment of a field: its description, limits that its type does not show,
// and the reason if the type is open.
func (g *goTypes) fieldDoc(p *property, f form) string {
	var doc []string
	text := p.schema.text("description")
	if title := p.schema.text("title"); text == "" && strings.Contains(title, " ") && exportedName(title, nameLimit) != exportedName(p.name, nameLimit) {
		text = title
	}
	if text != "" {
		doc = append(doc, text)
	}
	if limits := p.schema.describeLimits(); limits != "" {
		doc = append(doc, limits)
	}
	if f.also != "" {
		doc = append(doc, "The server also accepts "+f.also+".")
	}
	if f.why != "" {
		doc = append(doc, "The "+f.open+" open: "+f.why+".")
	}
	return formatProse(doc...)
}

// restDoc returns the doc comment of the field for additional properties.
func restDoc(name string, unfit []string, value form) string {
	doc := name + " holds the properties that have no field."
	if len(unfit) > 0 {
		doc += " They include " + words.Join(unfit) + ", because a struct tag cannot hold the name."
	}
	if value.why != "" {
		doc += " The values are open: " + value.why + "."
	}
	return formatProse(doc)
}

// describeLimits describes restrictions that the type does not show.
func (s *schema) describeLimits() string {
	var said []string
	say := func(before, keyword, after string) {
		if n := s.firstValue(keyword); n != nil && !n.Is(nil) && !isSafeIntegerBound(n) {
			if n.Compact() == "1" {
				after = strings.TrimSuffix(after, "s")
			}
			said = append(said, before+" "+n.Compact()+after+".")
		}
	}
	if values, limited := s.enumValues(); limited && len(values) > 0 && !hasKind(values[0], "string") {
		lines := make([]string, len(values))
		for i, v := range values {
			lines[i] = v.Compact()
		}
		if len(lines) == 1 {
			said = append(said, "Always "+lines[0]+".")
		} else {
			said = append(said, "One of "+strings.Join(lines, ", ")+".")
		}
	}
	say("Default:", "default", "")
	say("At least", "minimum", "")
	say("More than", "exclusiveMinimum", "")
	say("At most", "maximum", "")
	say("Less than", "exclusiveMaximum", "")
	say("A multiple of", "multipleOf", "")
	say("At least", "minLength", " characters")
	say("At most", "maxLength", " characters")
	say("At least", "minItems", " items")
	say("At most", "maxItems", " items")
	say("Pattern:", "pattern", "")
	say("Encoding:", "contentEncoding", "")
	if format := s.text("format"); format != "" && format != "date-time" {
		said = append(said, "Format: "+format+".")
	}
	if s.firstValue("uniqueItems").Is(true) {
		said = append(said, "Items are unique.")
	}
	if s.firstValue("deprecated").Is(true) {
		said = append(said, "The server marks it as deprecated.")
	}
	if text := s.describeHiddenKeywords(); text != "" && len(s.unions) == 0 && s.firstValue("properties") == nil {
		said = append(said, text)
	}
	return strings.Join(said, " ")
}

// isSafeIntegerBound reports whether a bound is that of JavaScript's exact integers. Libraries add it
// to every integer.
func isSafeIntegerBound(n *jsontree.Node) bool {
	return n.Is(json.Number("9007199254740991")) || n.Is(json.Number("-9007199254740991"))
}

// describeHiddenKeywords names the keywords that types cannot show.
func (s *schema) describeHiddenKeywords() string {
	var found []string
	for _, keyword := range []string{"not", "if", "dependentRequired", "dependentSchemas", "dependencies", "contains", "propertyNames"} {
		if s.firstValue(keyword) != nil {
			found = append(found, keyword)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return "Its schema also restricts it with " + words.Join(found) + "."
}

// describeAlternatives lists the alternatives of a union by their name or their required
// properties.
func (s *schema) describeAlternatives() string {
	if len(s.unions) != 1 {
		return ""
	}
	var lines []string
	for _, alternative := range s.unions[0] {
		name := alternative.defName
		if name == "" {
			name = alternative.text("title")
		}
		switch required := alternative.requiredNames(); {
		case len(required) == 0:
		case name == "":
			name = "with " + words.Join(required)
		default:
			name += ", with " + words.Join(required)
		}
		if name == "" {
			return ""
		}
		lines = append(lines, "- "+name)
	}
	return "It is one of:\n\n" + strings.Join(lines, "\n")
}

// longestWord is the number of characters that fit on a comment line. Longer words are split.
const longestWord = 80

var bulletMark = regexp.MustCompile(`^([-*+•]|\d{1,3}[.)])\s+`)

// formatProse turns text from a server into a Go doc comment, paragraph by paragraph. Lists stay
// lists. The result contains no code blocks, headings, links or directives.
func formatProse(texts ...string) string {
	var b strings.Builder
	list, gap := false, false
	stop := func() { // a paragraph without a final period could become a heading
		if last, _ := utf8.DecodeLastRuneInString(b.String()); !list && (unicode.IsLetter(last) || unicode.IsDigit(last) || strings.ContainsRune("\")]}\"'`", last)) {
			b.WriteByte('.')
		}
	}
	for _, text := range texts {
		gap = true
		for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r", "\n"), "\n") {
			line = strings.Join(splitLongWords(strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })), " ")
			line = strings.TrimLeft(line, "#= ")
			if line == "" || strings.HasPrefix(line, "```") {
				gap = true
				continue
			}
			mark := bulletMark.FindString(line)
			if line = line[len(mark):]; line == "" {
				continue
			}
			if b.Len() > 0 {
				if gap || (mark != "") != list {
					stop()
					b.WriteByte('\n')
				}
				b.WriteByte('\n')
			}
			switch {
			case mark != "":
				b.WriteString("  - ")
			case strings.HasPrefix(line, "["): // could define a link
				line = strings.Replace(line, "]:", "] :", 1)
			}
			list, gap = mark != "", false
			b.WriteString(strings.ReplaceAll(line, "+build", "+ build"))
		}
	}
	stop()
	return b.String()
}

// splitLongWords splits words that do not fit on a line.
func splitLongWords(words []string) (cut []string) {
	for _, word := range words {
		for part := range slices.Chunk([]rune(word), longestWord) {
			cut = append(cut, string(part))
		}
	}
	return cut
}
