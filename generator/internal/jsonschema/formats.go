package jsonschema

import (
	"cmp"
	"fmt"
	"go/types"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

// checkedFormats are the formats that the runtime checks in arguments and answers.
var checkedFormats = []string{
	"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "iri", "iri-reference", "json-pointer", "period",
	"regex", "relative-json-pointer", "semver", "time", "uri", "uri-reference", "uri-template", "uuid",
}

// describedFormats are registered formats that nothing checks. They tell a client how to show or read a text.
var describedFormats = []string{"binary", "byte", "idn-email", "idn-hostname", "password"}

// noteFormats notes each unknown format among the parts of a tag or of a directive. An unknown format is not an error,
// because JSON Schema lets anybody define formats. what names the field or the type.
func (g *graph) noteFormats(obj types.Object, what string, parts []part) {
	for _, p := range parts {
		if p.key != "format" || slices.Contains(checkedFormats, p.value) || slices.Contains(describedFormats, p.value) || !g.docs.isOwn(obj) {
			continue
		}
		way := cmp.Or(diag.DidYouMean(p.value, checkedFormats), "the formats that are checked are "+strings.Join(checkedFormats, ", "))
		g.note(obj.Pos(), fmt.Sprintf("%s has the format %q, which nothing checks; %s", what, p.value, way))
	}
}

// textFormats has the formats of types that encode themselves as text. A format admits every text that the type writes. It
// may refuse other texts that the type also reads.
var textFormats = map[string]string{
	"github.com/google/uuid.UUID":   "uuid",
	"github.com/gofrs/uuid.UUID":    "uuid",
	"github.com/gofrs/uuid/v3.UUID": "uuid",
	"github.com/gofrs/uuid/v5.UUID": "uuid",
}

// textFormat returns the format of a type that encodes itself as text, or "". A question has only the formats for
// which clients have a form.
func (g *graph) textFormat(t types.Type) string {
	format := textFormats[qualifiedName(t)]
	if g.use == Question && !slices.Contains(questionFormats, format) {
		return ""
	}
	return format
}

// form says how the values of a type are written, if no keyword of JSON Schema does.
type form struct {
	sentence string
	word     string // in lower case; a description that has it needs no sentence
}

// forms has the types whose values a caller can write only with a description.
var forms = map[string]form{
	"time.Duration":      {"In nanoseconds.", "nanosecond"},
	"net.IP":             {"An IP address such as 192.0.2.1 or 2001:db8::1.", "ip address"},
	"net/netip.Addr":     {"An IP address such as 192.0.2.1 or 2001:db8::1.", "ip address"},
	"net/netip.AddrPort": {"An IP address with a port such as 192.0.2.1:80 or [2001:db8::1]:80.", "ip address"},
	"net/netip.Prefix":   {"An IP network in CIDR form such as 192.0.2.0/24 or 2001:db8::/32.", "cidr"},
	"regexp.Regexp":      {"A regular expression in the syntax of Go.", "regular expression"},
}

// addForm appends the form of a type's values to a description. Lists and maps have the form of their values.
func addForm(t types.Type, text string) string {
	f := findForm(t)
	if f.sentence == "" || strings.Contains(strings.ToLower(text), f.word) {
		return text
	}
	if text != "" && !strings.HasSuffix(text, ".") {
		text += "."
	}
	return strings.TrimSpace(text + " " + f.sentence)
}

// findForm returns the form of a type, or that of the values of a list or map.
func findForm(t types.Type) form {
	for seen := map[types.Type]bool{}; t != nil && !seen[t]; t = elemOf(t) { // until it contains itself
		if f, ok := forms[qualifiedName(t)]; ok {
			return f
		}
		seen[t] = true
	}
	return form{}
}
