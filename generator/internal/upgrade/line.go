package upgrade

import (
	"regexp"
	"strconv"
	"strings"
)

// revisionFlag matches a flag that names revisions, with the space before it.
var revisionFlag = regexp.MustCompile(`(\s--)(?:revision|schema)(=|\s+)("(?:[^"\\]|\\.)*"|\S+)`)

// nameRevisions returns a line with other revisions after --revision. They take the place of the first
// --revision or --schema. All others of these flags are removed.
func nameRevisions(line string, revisions []string) string {
	first := true
	return revisionFlag.ReplaceAllStringFunc(line, func(flag string) string {
		if !first {
			return ""
		}
		first = false
		parts, value := revisionFlag.FindStringSubmatch(flag), strings.Join(revisions, ",")
		if strings.HasPrefix(parts[3], `"`) {
			value = strconv.Quote(value)
		}
		return parts[1] + "revision" + parts[2] + value
	})
}

// RewriteLine returns the text of a file with other revisions in one line. It reports whether the line has a
// flag that names revisions.
func RewriteLine(src string, number int, revisions []string) (rewritten string, ok bool) {
	var out strings.Builder
	for text := range strings.Lines(src) {
		if number--; number == 0 {
			ok = revisionFlag.MatchString(text)
			text = nameRevisions(text, revisions)
		}
		out.WriteString(text)
	}
	return out.String(), ok
}
