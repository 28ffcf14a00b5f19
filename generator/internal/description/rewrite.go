package description

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// Names are the Go names that a text may mention, with the names that its readers know instead.
type Names map[string]string

// Tool describes a tool by the comment of its method. A tool does something, so "RunPipeline builds a branch" becomes
// "Builds a branch".
func Tool(method, name, text string, others Names) string {
	return rewrite(subject{goName: method, shown: code(name), acts: true}, text, others)
}

// Service describes a service by the comment of its interface, for readers who know it by its Go name.
func Service(name, text string, tools Names) string {
	return rewrite(subject{goName: name, shown: code(name), acts: true, noun: true}, text, tools)
}

// Field describes a property by the comment of its field. A property is a value, so "Branch is the branch to build"
// becomes "The branch to build", while "DryRun skips the upload" becomes "`dry_run` skips the upload".
func Field(goName, jsonName string, boolean bool, text string, others ...Names) string {
	return rewrite(subject{goName: goName, shown: code(jsonName), boolean: boolean}, text, others...)
}

// Type describes values by the comment of their type. Their readers do not know the type, so "RetryPolicy limits the
// tries" becomes "Retry policy limits the tries".
func Type(name, text string) string {
	return rewrite(subject{goName: name, shown: strings.Join(splitName(name), " ")}, text)
}

// Value describes a value that readers know by its name, such as the code of an error or the constant of an enum:
// "PriorityHigh goes first" becomes "Goes first".
func Value(goName, shown, text string, others Names) string {
	return rewrite(subject{goName: goName, shown: code(shown), acts: true, means: true}, text, others)
}

// Enum describes the values of an enum by the description of its type, which may name its constants.
func Enum(text string, constants Names) string { return replaceNames(text, constants.show) }

// show returns what stands for a word in a description, if it is a name of several words.
func (n Names) show(word string) (shown string, ok bool) {
	name, ok := n[word]
	return code(name), ok && isPhrase(word)
}

// subject is the tool, property, type or value that a comment describes.
type subject struct {
	goName string
	shown  string // in place of goName
	// acts is set if a sentence without the name may begin with any verb.
	acts bool
	// noun is set if the name is not a verb, so that one may follow.
	noun bool
	// means is set if "means that" and "says that" add nothing.
	means   bool
	boolean bool
}

// code quotes a name as code.
func code(name string) string {
	if name == "" || strings.Contains(name, "`") {
		return name
	}
	return "`" + name + "`"
}

// rewrite describes a subject by a text that begins with its Go name, or with anything else.
func rewrite(s subject, text string, others ...Names) string {
	show := func(word string) (shown string, ok bool) {
		if word == s.goName {
			return s.shown, true
		}
		for _, names := range others {
			if shown, ok = names.show(word); ok {
				break
			}
		}
		return shown, ok
	}
	return upperFirst(replaceNames(s.cutName(text), show))
}

// cutName removes the Go name that a text begins with, if the rest reads as a sentence.
func (s subject) cutName(text string) string {
	after, article := text, ""
	for _, a := range []string{"A ", "An ", "The "} {
		if rest, ok := strings.CutPrefix(text, a+s.goName+" "); ok {
			after, article = s.goName+" "+rest, a
		}
	}
	rest, ok := strings.CutPrefix(after, s.goName)
	if !ok || rest == "" {
		return text
	}
	for _, separator := range []string{": ", " - ", " – ", " — "} {
		if object, ok := strings.CutPrefix(rest, separator); ok {
			return object
		}
	}
	if rest, ok = strings.CutPrefix(rest, " "); !ok {
		return text
	}
	rest = strings.TrimPrefix(rest, "("+strings.Trim(s.shown, "`")+") ")
	verb, object, _ := strings.Cut(rest, " ")
	next, _, _ := strings.Cut(object, " ")
	next = strings.TrimRight(next, ".,:;\n")
	switch {
	case article != "" && verb != "is" && verb != "are":
		return text
	case object == "" || !s.impliesVerb(verb, next):
	case s.boolean && (next == "if" || next == "that"):
		return "whether" + strings.TrimPrefix(object, next)
	case s.means:
		return strings.TrimPrefix(object, "that ")
	default:
		return object
	}
	switch {
	case slices.Contains(complete, verb), s.acts && (s.noun && mayBeVerb(verb) || isVerb(s.goName, verb, object)):
		return rest
	case isPhrase(s.goName), isVerb(s.goName, verb, object):
		return s.shown + " " + rest
	}
	return text
}

// impliesVerb reports whether a sentence means the same without its verb, the first word behind its subject. The
// word after it is next.
func (s subject) impliesVerb(verb, next string) bool {
	switch {
	case verb == "is" || verb == "are":
		return true
	case s.means:
		return verb == "means" || next == "that" && slices.Contains(reporting, verb)
	case s.acts:
		return false
	case s.boolean && (next == "if" || next == "that") && slices.Contains(reporting, verb):
		return true
	case slices.Contains(questions, next) && slices.Contains(reporting, verb):
		return true
	}
	return slices.Contains(holding, verb) && next != "no" && (isPhrase(s.goName) || slices.Contains(determiners, next))
}

// isVerb reports whether a word behind a name, with the words after it, is a verb of which the name is the subject. A
// name of one word may also belong to the words, as in "Search issues of a repository".
func isVerb(name, verb, object string) bool {
	next, after, _ := strings.Cut(object, " ")
	if slices.Contains(adverbs, verb) {
		if !isPhrase(name) {
			return strings.HasSuffix(next, "s")
		}
		verb = next
		next, _, _ = strings.Cut(after, " ")
	}
	verb = strings.TrimRight(verb, ".,:;\n")
	switch {
	case next == "of" && !isPhrase(name):
		return false
	case slices.Contains(certain, verb), slices.Contains(thirdPerson(strings.ToLower(name)), verb) && !slices.Contains(prepositions, next):
		return true
	}
	return mayBeVerb(verb) && (isPhrase(name) || slices.Contains(determiners, next))
}

// mayBeVerb reports whether a word looks like a verb. Most plurals do too.
func mayBeVerb(word string) bool {
	return strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") && !slices.Contains(notVerbs, word)
}

// thirdPerson returns the forms that a verb may have after a noun.
func thirdPerson(verb string) []string {
	return []string{verb + "s", verb + "es", strings.TrimSuffix(verb, "y") + "ies"}
}

// replaceNames replaces the Go names in a text. A name of one word stays if it may be an ordinary word: in capitals, such
// as "URL", at the beginning of a sentence, or as a part of code or of a longer word.
func replaceNames(text string, show func(word string) (shown string, ok bool)) string {
	var out []byte
	line, span := false, false // whether the text is in a line or a span of code
	for i := 0; i < len(text); {
		if i == 0 || text[i-1] == '\n' {
			line, span = text[i] == '\t', false
		}
		word := text[i : i+max(1, wordLength(text[i:]))]
		i += len(word)
		shown, known := show(word)
		if !known || shown == word {
			span = span != (word == "`")
			out = append(out, word...)
			continue
		}
		switch before, after := string(out[max(0, len(out)-nearby):]), text[i:]; {
		case !isPhrase(word) && (line || span && !isWhole(before, after) || !span && isOrdinary(word, before, after)):
			out = append(out, word...)
		case line || span:
			out = append(out, strings.Trim(shown, "`")...)
		default:
			kept := receiver.ReplaceAllString(before, "")
			if isPhrase(word) {
				kept = qualifier.ReplaceAllString(kept, "")
			}
			if strings.HasSuffix(kept, "[") && strings.HasPrefix(after, "]") { // a link of Go
				kept, i = strings.TrimSuffix(kept, "["), i+1
			}
			out = append(append(out[:len(out)-len(before)], kept...), shown...)
		}
	}
	return string(out)
}

// nearby is how many bytes before a name are looked at, so that a long text costs no more than its length.
const nearby = 200

// receiver is the type before a name, as in "Options.DryRun".
var receiver = regexp.MustCompile(`\b[A-Z]\w*\.$`)

// qualifier is the package before a name, as in "ci.PriorityHigh".
var qualifier = regexp.MustCompile(`\b[a-z]\w*\.$`)

// wordLength returns the length of the word that a text begins with.
func wordLength(text string) int {
	if end := strings.IndexFunc(text, func(r rune) bool { return !isLetter(r) }); end >= 0 {
		return end
	}
	return len(text)
}

// isWhole reports whether a name between two parts of a text is a whole span of code.
func isWhole(before, after string) bool {
	return strings.HasSuffix(before, "`") && strings.HasPrefix(after, "`")
}

func isLetter(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// isOrdinary reports whether a name of one word may be an ordinary word between two parts of a text.
func isOrdinary(name, before, after string) bool {
	if isInitialism(name) || name == "A" || name == "I" {
		return true
	}
	if strings.HasSuffix(before, "-") || strings.HasSuffix(before, "/") || strings.HasPrefix(after, "-") || strings.HasPrefix(after, "/") {
		return true
	}
	start := strings.TrimRight(before, " \n\t\"(*")
	if start != "" && !strings.ContainsAny(start[len(start)-1:], ".!?:-") {
		return false
	}
	verb, object, _ := strings.Cut(strings.TrimPrefix(after, " "), " ")
	return !isVerb(name, verb, object) && !slices.Contains(complete, verb) && verb != "is" && verb != "are"
}

// isPhrase reports whether a Go name has several words, so that no English text has it by chance.
func isPhrase(name string) bool { return len(splitName(name)) > 1 }

// splitName returns the words of a Go name, in lower case but for initialisms.
func splitName(name string) []string {
	var parts []string
	runes := []rune(name)
	begin := 0
	for i := 1; i <= len(runes); i++ {
		if i < len(runes) && runes[i] != '_' && !(unicode.IsUpper(runes[i]) && words.StartsWord(runes, i)) {
			continue
		}
		if word := strings.Trim(string(runes[begin:i]), "_"); word != "" {
			if !isInitialism(word) {
				word = strings.ToLower(word)
			}
			parts = append(parts, word)
		}
		begin = i
	}
	return parts
}

// isInitialism reports whether a word is one such as "URL" or "URLs".
func isInitialism(word string) bool {
	word = strings.TrimSuffix(word, "s")
	return utf8.RuneCountInString(word) > 1 && strings.ToUpper(word) == word
}

var plainWord = regexp.MustCompile(`^\p{Ll}[\p{Ll}'’-]*(?:[.,;:]?\s|[.,;:]?$)`)

// upperFirst puts the first letter of a text in upper case, unless its first word is a name or a value.
func upperFirst(text string) string {
	word := plainWord.FindString(text)
	if word == "" || strings.TrimRight(word, ".,;: \n") == "null" {
		return text
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}
