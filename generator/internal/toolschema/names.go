package toolschema

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// initialisms are the words that Go writes in capitals, as linters have them.
var initialisms = func() map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq("ACL API ASCII CPU CSS DNS EOF GUID HTML HTTP HTTPS ID IP JSON QPS RAM RPC SLA SMTP SQL SSH " +
		"TCP TLS TTL UDP UI GID UID UUID URI URL VM XML XMPP XSRF XSS SIP RTP AMQP DB TS") {
		words[word] = true
	}
	return words
}()

// spoken are the characters that mean something in a name; all others separate words.
var spoken = map[rune]string{
	'+': "Plus", '#': "Sharp", '*': "Star", '<': "Less", '>': "Greater", '=': "Equal", '!': "Not", '&': "And", '|': "Or",
	'%': "Percent", '@': "At", '$': "Dollar", '^': "Caret", '~': "Tilde", '?': "Question",
}

// separators have a word only where a name has nothing else.
var separators = map[rune]string{
	' ': "Space", '-': "Minus", '_': "Underscore", '.': "Dot", '/': "Slash", ':': "Colon", ',': "Comma", ';': "Semicolon",
	'"': "Quote", '\'': "Apostrophe", '`': "Backtick", '\\': "Backslash", '(': "Open", ')': "Close", '[': "Open", ']': "Close",
	'{': "Open", '}': "Close", '\n': "Newline", '\t': "Tab",
}

// identifier makes an exported Go identifier of any text: user_id is UserID, c++ is CPlusPlus, 1.5 is
// X1Point5. It has at most limit characters.
func identifier(text string, limit int) string {
	name := camel(text, limit)
	if first := []rune(name)[0]; !unicode.IsUpper(first) {
		return "X" + name
	}
	return name
}

// camel is identifier without the care for its first character, for what follows a name.
func camel(text string, limit int) string {
	var b strings.Builder
	length := 0
	for _, word := range words(text) {
		word = capital(word)
		if runes := []rune(word); length == 0 && len(runes) > limit {
			word = string(runes[:limit])
		}
		n := len([]rune(word))
		if length > 0 && length+n > limit {
			break
		}
		b.WriteString(word)
		length += n
	}
	return b.String()
}

// capital writes a word as it stands within a name.
func capital(word string) string {
	if upper := strings.ToUpper(word); initialisms[upper] {
		return upper
	}
	runes := []rune(word)
	runes[0] = unicode.ToUpper(runes[0])
	return string(runes)
}

// words cuts a text where its words end: at a separator, before a capital and beside digits. There is
// at least one.
func words(text string) []string {
	var found []string
	runes := []rune(text)
	shouts := !strings.ContainsFunc(text, unicode.IsLower)
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			found = append(found, word.String())
			word.Reset()
		}
	}
	for i, r := range runes {
		digitAt := func(j int) bool { return j >= 0 && j < len(runes) && unicode.IsDigit(runes[j]) }
		switch {
		case unicode.IsLetter(r):
			if i > 0 && (digitAt(i-1) || !shouts && startsWord(runes, i)) {
				end()
			}
			if shouts {
				r = unicode.ToLower(r)
			}
			word.WriteRune(r)
		case unicode.IsDigit(r):
			if !digitAt(i - 1) {
				end()
			}
			word.WriteRune(r)
		case spoken[r] != "":
			end()
			found = append(found, spoken[r])
		case r == '.' && digitAt(i-1) && digitAt(i+1):
			end()
			found = append(found, "Point")
		case r == '-' && i == 0 && digitAt(1):
			found = append(found, "Minus")
		default:
			end()
		}
	}
	end()
	if len(found) > 0 {
		return found
	}
	for _, r := range runes {
		if separators[r] != "" {
			found = append(found, separators[r])
		} else {
			found = append(found, fmt.Sprintf("U%X", r))
		}
	}
	if len(found) == 0 {
		return []string{"Empty"}
	}
	return found
}

// startsWord tells whether the capital at i starts a word: after a small letter, or as the last of
// several capitals.
func startsWord(runes []rune, i int) bool {
	if !unicode.IsUpper(runes[i]) || !unicode.IsLetter(runes[i-1]) {
		return false
	}
	return !unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])
}

// preference orders texts that would have the same name: small letters first, separators last.
func preference(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLower(r):
			return unicode.ToUpper(r)
		case unicode.IsUpper(r):
			return unicode.ToLower(r)
		case unicode.IsDigit(r):
			return r
		}
		return '~'
	}, text) + text
}

// names are identifiers that are taken.
type names map[string]bool

// unique takes an identifier, with a number behind it where it is taken: Name, Name2, Name3.
func (n names) unique(base string) string {
	return n.uniqueFor(base, func(id string) []string { return []string{id} })
}

// uniqueFor is unique for an identifier that brings others with it: all have to be free.
func (n names) uniqueFor(base string, brings func(id string) []string) string {
	for i := 1; ; i++ {
		id := base
		if i > 1 {
			if unicode.IsDigit(rune(base[len(base)-1])) {
				id += "N" // Version1 and its double are no Version12
			}
			id += strconv.Itoa(i)
		}
		free := true
		for _, other := range brings(id) {
			free = free && !n[other]
		}
		if !free {
			continue
		}
		for _, other := range brings(id) {
			n[other] = true
		}
		return id
	}
}
