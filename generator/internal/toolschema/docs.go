package toolschema

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// toolDoc documents the method of a tool.
func toolDoc(t *tool, method string) string {
	doc := []string{method + " calls the tool " + t.name + "."}
	if utf8.RuneCountInString(t.name) > longestWord {
		doc[0] = method + " calls the tool of its name."
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
	return prose(doc...)
}

// and3 joins what is said: a, b and c.
func and3(items []string) string {
	if n := len(items); n > 1 {
		return strings.Join(items[:n-1], ", ") + " and " + items[n-1]
	}
	return items[0]
}

// typeDoc documents a type.
func typeDoc(l label, s *schema) string {
	doc := []string{l.id + " is " + l.what + "."}
	if l.told {
		// Its field has the description.
	} else if text := s.text("description"); text != "" {
		doc = append(doc, text)
	} else if title := s.text("title"); strings.Contains(title, " ") {
		doc = append(doc, title)
	}
	if text := s.alternativesText(); text != "" {
		doc = append(doc, text)
	}
	if text := s.unshown(); text != "" {
		doc = append(doc, text)
	}
	return prose(doc...)
}

// constDoc documents a constant; empty where there is nothing to say.
func constDoc(id, text string) string {
	if text == "" {
		return ""
	}
	return prose(id + " is " + text)
}

// fieldDoc documents a field: what its schema says, what its type does not show, and why the type is
// no better.
func (g *goTypes) fieldDoc(p *property, f form) string {
	var doc []string
	text := p.schema.text("description")
	if title := p.schema.text("title"); text == "" && strings.Contains(title, " ") && identifier(title, fieldLimit) != identifier(p.name, fieldLimit) {
		text = title
	}
	if text != "" {
		doc = append(doc, text)
	}
	if limits := p.schema.limits(); limits != "" {
		doc = append(doc, limits)
	}
	if f.why != "" {
		doc = append(doc, "The "+f.open+" open: "+f.why+".")
	}
	return prose(doc...)
}

// restDoc documents the field for the properties without one.
func restDoc(name string, unfit []string, value form) string {
	doc := name + " are the properties that have no field."
	if len(unfit) > 0 {
		doc += " Among them " + and3(unfit) + ": the name cannot stand in a tag."
	}
	if value.why != "" {
		doc += " The values are open: " + value.why + "."
	}
	return prose(doc)
}

// limits says what a schema demands beyond its type.
func (s *schema) limits() string {
	var said []string
	say := func(before, keyword, after string) {
		if n := s.first(keyword); n != nil && !n.is(nil) {
			if n.line() == "1" {
				after = strings.TrimSuffix(after, "s")
			}
			said = append(said, before+" "+n.line()+after+".")
		}
	}
	if values, limited := s.values(); limited && len(values) > 0 && !values[0].isOf("string") {
		lines := make([]string, len(values))
		for i, v := range values {
			lines[i] = v.line()
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
	if s.first("uniqueItems").is(true) {
		said = append(said, "No item twice.")
	}
	if s.first("deprecated").is(true) {
		said = append(said, "The server advises against it.")
	}
	if text := s.unshown(); text != "" && len(s.unions) == 0 && s.first("properties") == nil {
		said = append(said, text)
	}
	return strings.Join(said, " ")
}

// unshown names the keywords that types cannot show.
func (s *schema) unshown() string {
	var found []string
	for _, keyword := range []string{"not", "if", "dependentRequired", "dependentSchemas", "dependencies", "contains", "propertyNames"} {
		if s.first(keyword) != nil {
			found = append(found, keyword)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return "Its schema limits it further, by " + and3(found) + "."
}

// alternativesText lists the alternatives of a union by what they are called or have.
func (s *schema) alternativesText() string {
	if len(s.unions) != 1 {
		return ""
	}
	var lines []string
	for _, alternative := range s.unions[0] {
		name := alternative.defName
		if name == "" {
			name = alternative.text("title")
		}
		var required []string
		for _, part := range alternative.parts {
			if n := part.get("required"); n != nil {
				for _, item := range n.items {
					if text, ok := item.text(); ok {
						required = append(required, text)
					}
				}
			}
		}
		switch {
		case len(required) == 0:
		case name == "":
			name = "with " + and3(required)
		default:
			name += ", with " + and3(required)
		}
		if name == "" {
			return ""
		}
		lines = append(lines, "- "+name)
	}
	return "It is one of:\n\n" + strings.Join(lines, "\n")
}

// longestWord is what fits on a line of a comment; longer words are cut.
const longestWord = 80

var bullet = regexp.MustCompile(`^([-*+•]|\d{1,3}[.)])\s+`)

// prose makes Go's doc comments of texts of others, paragraph by paragraph: lists stay lists, and
// nothing in them is taken for code, a heading, a link or a directive.
func prose(texts ...string) string {
	var b strings.Builder
	list, gap := false, false
	stop := func() { // a line without would be a heading
		if last := lastRune(b.String()); !list && (unicode.IsLetter(last) || unicode.IsDigit(last) || strings.ContainsRune("\")]}\"'`", last)) {
			b.WriteByte('.')
		}
	}
	for _, text := range texts {
		gap = true
		for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r", "\n"), "\n") {
			line = strings.Join(cutWords(strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })), " ")
			line = strings.TrimLeft(line, "#= ")
			if line == "" || strings.HasPrefix(line, "```") {
				gap = true
				continue
			}
			mark := bullet.FindString(line)
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
			case strings.HasPrefix(line, "["): // or it may define a link
				line = strings.Replace(line, "]:", "] :", 1)
			}
			list, gap = mark != "", false
			b.WriteString(strings.ReplaceAll(line, "+build", "+ build"))
		}
	}
	stop()
	return b.String()
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}

// cutWords breaks words that fit no line.
func cutWords(words []string) []string {
	var cut []string
	for _, word := range words {
		for runes := []rune(word); ; runes = runes[longestWord:] {
			if len(runes) <= longestWord {
				cut = append(cut, string(runes))
				break
			}
			cut = append(cut, string(runes[:longestWord]))
		}
	}
	return cut
}
