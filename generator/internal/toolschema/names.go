package toolschema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// initialisms are the words that linters want in capitals.
var initialisms = strings.Fields("ACL API ASCII CPU CSS DNS EOF GUID HTML HTTP HTTPS ID IP JSON QPS RAM RPC SLA SMTP SQL SSH " +
	"TCP TLS TTL UDP UI GID UID UUID URI URL VM XML XMPP XSRF XSS SIP RTP AMQP DB TS")

// symbolWords are the words for symbols with a meaning. Other symbols separate words.
var symbolWords = map[rune]string{
	'+': "Plus", '#': "Sharp", '*': "Star", '<': "Less", '>': "Greater", '=': "Equal", '!': "Not", '&': "And", '|': "Or",
	'%': "Percent", '@': "At", '$': "Dollar", '^': "Caret", '~': "Tilde", '?': "Question",
}

// separatorWords are the words for separators. They are used only if a name has nothing else.
var separatorWords = map[rune]string{
	' ': "Space", '-': "Minus", '_': "Underscore", '.': "Dot", '/': "Slash", ':': "Colon", ',': "Comma", ';': "Semicolon",
	'"': "Quote", '\'': "Apostrophe", '`': "Backtick", '\\': "Backslash", '(': "Open", ')': "Close", '[': "Open", ']': "Close",
	'{': "Open", '}': "Close", '\n': "Newline", '\t': "Tab",
}

// exportedName returns an exported Go identifier for any text: UserID for user_id, CPlusPlus for
// c++, X1Point5 for 1.5. The identifier has at most limit characters.
func exportedName(text string, limit int) string {
	name := camelCase(text, limit)
	if first := []rune(name)[0]; !unicode.IsUpper(first) {
		return "X" + name
	}
	return name
}

// camelCase is like exportedName for text that follows a name, so its first character may be any.
func camelCase(text string, limit int) string {
	var b strings.Builder
	length := 0
	for _, word := range splitWords(text) {
		word = capitalize(word)
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

// capitalize returns a word as it appears within a name.
func capitalize(word string) string {
	if upper := strings.ToUpper(word); slices.Contains(initialisms, upper) {
		return upper
	}
	return words.UpperFirst(word)
}

// splitWords splits text at separators, before capitals and around digits. It returns at least one
// word.
func splitWords(text string) []string {
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
		case symbolWords[r] != "":
			end()
			found = append(found, symbolWords[r])
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
		if separatorWords[r] != "" {
			found = append(found, separatorWords[r])
		} else {
			found = append(found, fmt.Sprintf("U%X", r))
		}
	}
	if len(found) == 0 {
		return []string{"Empty"}
	}
	return found
}

// startsWord reports whether the capital at index i starts a word. It does after a lowercase
// letter, or as the last of several capitals.
func startsWord(runes []rune, i int) bool {
	if !unicode.IsUpper(runes[i]) || !unicode.IsLetter(runes[i-1]) {
		return false
	}
	return !unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])
}

// namingOrder returns a sort key for texts that would get the same name: lowercase first,
// separators last.
func namingOrder(text string) string {
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

// takenNames is a set of identifiers in use.
type takenNames map[string]bool

// takeUnique reserves an identifier. If it is in use, takeUnique adds a number: Name, Name2, Name3.
func (n takenNames) takeUnique(base string) string {
	return n.takeUniqueSet(base, func(id string) []string { return []string{id} })
}

// takeUniqueSet is like takeUnique for an identifier that implies others. All of them must be free.
func (n takenNames) takeUniqueSet(base string, brings func(id string) []string) string {
	id, numbered := base, base
	if unicode.IsDigit(rune(base[len(base)-1])) {
		numbered += "N" // keep a second Version1 distinct from Version12
	}
	for i := 2; slices.ContainsFunc(brings(id), func(other string) bool { return n[other] }); i++ {
		id = numbered + strconv.Itoa(i)
	}
	for _, other := range brings(id) {
		n[other] = true
	}
	return id
}
