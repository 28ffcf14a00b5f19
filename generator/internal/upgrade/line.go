package upgrade

import (
	"regexp"
	"strconv"
	"strings"
)

// word matches one word of a line, which may be quoted.
var word = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[^\s"]+`)

// nameRevisions returns a line with other revisions after --revision. They take the place of the first
// --revision or --schema. All others of these flags are removed.
func nameRevisions(line string, revisions []string) string {
	var out strings.Builder
	end, first := 0, true
	words := word.FindAllStringIndex(line, -1)
	for i := 0; i < len(words); i++ {
		from, to := words[i][0], words[i][1]
		flag, _, joined := strings.Cut(unquote(line[from:to]), "=")
		if flag != "--revision" && flag != "--schema" || !joined && i+1 == len(words) {
			continue
		}
		value := "--revision=" + strings.Join(revisions, ",")
		if !joined {
			i++
			value, to = "--revision"+line[to:words[i][0]]+quoteLike(line[words[i][0]:words[i][1]], revisions), words[i][1]
		}
		if first {
			out.WriteString(line[end:from] + value)
		} else {
			out.WriteString(strings.TrimRight(line[end:from], " \t"))
		}
		end, first = to, false
	}
	return out.String() + line[end:]
}

// quoteLike returns the revisions joined by commas, quoted if the old value was quoted.
func quoteLike(old string, revisions []string) string {
	text := strings.Join(revisions, ",")
	if strings.HasPrefix(old, `"`) {
		return strconv.Quote(text)
	}
	return text
}

func unquote(text string) string {
	if plain, err := strconv.Unquote(text); err == nil {
		return plain
	}
	return text
}

// RewriteLine returns the text of a file with other revisions in one line.
func RewriteLine(src string, number int, revisions []string) string {
	var out strings.Builder
	for text := range strings.Lines(src) {
		if number--; number == 0 {
			text = nameRevisions(text, revisions)
		}
		out.WriteString(text)
	}
	return out.String()
}
