package toolschema

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

// schema is a JSON Schema taken apart: what all of its parts say holds, and of each of its unions one
// alternative. References and allOf are resolved.
type schema struct {
	parts  []*node // objects, the outermost first
	unions [][]*schema
	never  bool // nothing is valid
	null   bool // an alternative is null
	// def is what the schema is called by: the target of the reference that it is, without more.
	def     *node
	defName string
}

// annotations say nothing about what is valid.
var annotations = map[string]bool{
	"$schema": true, "$id": true, "$comment": true, "$defs": true, "definitions": true, "$anchor": true,
	"title": true, "description": true, "default": true, "examples": true, "example": true,
	"deprecated": true, "readOnly": true, "writeOnly": true,
}

// plain tells whether a part says nothing about what is valid, beside the keywords given.
func plain(part *node, beside ...string) bool {
	return !slices.ContainsFunc(part.members, func(m member) bool {
		return !annotations[m.name] && !strings.HasPrefix(m.name, "x-") && !slices.Contains(beside, m.name)
	})
}

// resolver takes schemas apart that stand below one root.
type resolver struct {
	*listing

	root *node
	// busy are the schemas that are being taken apart.
	busy map[*node]bool
	// steps counts the schemas that were taken apart, since a few lines can unfold to millions.
	steps int
	// reported are the nodes that something was wrong with already: a target is read at each reference.
	reported map[*node]bool
}

// maxSteps is far from what real schemas need.
const maxSteps = 20_000

// once reports a problem, unless there was one with the same node.
func (r *resolver) once(at *node, message, hint string) {
	if !r.reported[at] {
		r.reported[at] = true
		r.problem(at, message, hint)
	}
}

// resolve takes a schema apart.
func (r *resolver) resolve(n *node) *schema {
	s := &schema{}
	r.add(s, n)
	r.simplify(s)
	if s.def == nil {
		s.def, s.defName = r.called(n)
	}
	return s
}

// called is what a schema is called after where it is a reference and no more than that.
func (r *resolver) called(n *node) (def *node, name string) {
	if n == r.root {
		return n, ""
	}
	for range maxDepth {
		if items := n.get("allOf"); items != nil && len(items.items) == 1 && plain(n, "allOf") {
			n = items.items[0]
			continue
		}
		text, ok := n.get("$ref").text()
		fragment, local := strings.CutPrefix(text, "#")
		target, found := r.follow(fragment)
		if !ok || !local || !found || !plain(n, "$ref") {
			break
		}
		def, name = target, unescape(fragment[strings.LastIndexByte(fragment, '/')+1:])
		n = target
	}
	return def, name
}

// add makes a schema say what n says too.
func (r *resolver) add(s *schema, n *node) {
	if n.kind != object {
		if n.is(false) {
			s.never = true
		} else if !n.is(true) {
			r.once(n, "a schema is an object or a boolean, not "+n.what(), "")
		}
		return
	}
	if r.busy[n] {
		r.once(n, "this schema refers to itself without end", "no value can satisfy it; leave the reference out")
		s.never = true
		return
	}
	if r.steps++; r.steps > maxSteps {
		r.once(r.root, fmt.Sprintf("this schema has more than %d parts, those of its references included", maxSteps), "make its unions smaller")
		s.never = true
		return
	}
	r.busy[n] = true
	defer delete(r.busy, n)
	r.check(n)
	s.parts = append(s.parts, n)
	if ref := n.get("$ref"); ref != nil {
		r.reference(s, ref)
	}
	for _, item := range r.list(n, "allOf") {
		r.add(s, item)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if n.get(keyword) == nil {
			continue
		}
		var union []*schema
		for _, item := range r.list(n, keyword) {
			if alternative := r.resolve(item); !alternative.never {
				union = append(union, alternative)
			}
		}
		if len(union) == 0 {
			s.never = true
		}
		s.unions = append(s.unions, union)
	}
}

func (r *resolver) reference(s *schema, ref *node) {
	text, ok := ref.text()
	if !ok {
		r.once(ref, "$ref is a text, not "+ref.what(), "")
		return
	}
	fragment, local := strings.CutPrefix(text, "#")
	if !local || fragment != "" && fragment[0] != '/' {
		return // of another document, or an anchor: foreign says so
	}
	target, ok := r.follow(fragment)
	if !ok {
		r.once(ref, "$ref "+quote(text)+" leads nowhere", hintRef(fragment, r.root))
		return
	}
	r.add(s, target)
}

// foreign is a reference that cannot be followed within the file; empty where there is none.
func (s *schema) foreign() string {
	for _, part := range s.parts {
		if text, ok := part.get("$ref").text(); ok && text != "#" && !strings.HasPrefix(text, "#/") {
			return text
		}
		for _, keyword := range []string{"$dynamicRef", "$recursiveRef"} {
			if text, ok := part.get(keyword).text(); ok {
				return text
			}
		}
	}
	return ""
}

// follow finds what a JSON pointer leads to.
func (r *resolver) follow(pointer string) (*node, bool) {
	n := r.root
	if pointer == "" {
		return n, true
	}
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		step = unescape(step)
		switch n.kind {
		case object:
			n = n.get(step)
		case array:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(n.items) {
				return nil, false
			}
			n = n.items[i]
		default:
			return nil, false
		}
		if n == nil {
			return nil, false
		}
	}
	return n, true
}

func unescape(step string) string {
	if plain, err := url.PathUnescape(step); err == nil {
		step = plain
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
}

func hintRef(fragment string, root *node) string {
	for _, keyword := range []string{"$defs", "definitions"} {
		name, ok := strings.CutPrefix(fragment, "/"+keyword+"/")
		if !ok || root.get(keyword) == nil {
			continue
		}
		var there []string
		for _, m := range root.get(keyword).members {
			there = append(there, m.name)
		}
		if near := diag.Nearest(name, there); near != "" {
			return "did you mean #/" + keyword + "/" + near + "?"
		}
	}
	return "it starts at the schema of the input or output that it stands in"
}

// simplify takes null out of the unions, and makes those of one alternative a part.
func (r *resolver) simplify(s *schema) {
	admits, forbids := s.nullable()
	unions := s.unions
	s.unions = nil
	for _, union := range unions {
		var rest []*schema
		null := false
		for _, alternative := range unwrap(union) {
			if null = null || alternative.null || alternative.isNull(); !alternative.isNull() {
				rest = append(rest, alternative)
			}
		}
		admits, forbids = admits || null, forbids || !null
		if len(rest) != 1 {
			if len(rest) > 0 {
				s.unions = append(s.unions, rest)
			} else if null {
				s.parts = append(s.parts, nullPart)
			}
			continue
		}
		only := rest[0]
		if s.def == nil && !slices.ContainsFunc(s.parts, func(p *node) bool { return !plain(p, "anyOf", "oneOf") }) {
			s.def, s.defName = only.def, only.defName
		}
		s.parts = append(s.parts, only.parts...)
		s.unions = append(s.unions, only.unions...)
	}
	s.null = s.null || admits && !forbids
}

// nullable says whether a part names null as valid, and whether one leaves it out.
func (s *schema) nullable() (admits, forbids bool) {
	for _, part := range s.parts {
		for _, keyword := range []string{"type", "enum", "const"} {
			value := part.get(keyword)
			if value == nil {
				continue
			}
			isNull := func(n *node) bool { return n.is(nil) || keyword == "type" && n.is("null") }
			if isNull(value) || keyword != "const" && slices.ContainsFunc(value.items, isNull) {
				admits = true
			} else {
				forbids = true
			}
		}
	}
	return admits, forbids
}

// unwrap puts the alternatives of an alternative that is nothing but a union in its place.
func unwrap(union []*schema) []*schema {
	var flat []*schema
	for _, s := range union {
		if len(s.unions) == 1 && s.def == nil && !slices.ContainsFunc(s.parts, func(p *node) bool { return !plain(p, "anyOf", "oneOf") }) {
			if s.null {
				flat = append(flat, &schema{null: true, parts: []*node{nullPart}})
			}
			flat = append(flat, s.unions[0]...)
			continue
		}
		flat = append(flat, s)
	}
	return flat
}

// nullPart is {"type": "null"}.
var nullPart = &node{kind: object, members: []member{{"type", &node{value: "null"}}}}

// isNull tells whether nothing but null is valid.
func (s *schema) isNull() bool {
	return slices.ContainsFunc(s.parts, func(p *node) bool {
		if p.get("type").is("null") {
			return true
		}
		if c := p.get("const"); c != nil && c.is(nil) {
			return true
		}
		enum := p.get("enum")
		return enum != nil && len(enum.items) == 1 && enum.items[0].is(nil)
	})
}

// first is the first of a keyword's values, that of the outermost part.
func (s *schema) first(keyword string) *node {
	for _, part := range s.parts {
		if value := part.get(keyword); value != nil {
			return value
		}
	}
	return nil
}

func (s *schema) text(keyword string) string {
	text, _ := s.first(keyword).text()
	return text
}

// and is the schema whose values satisfy both.
func and(a, b *schema) *schema {
	if b.unbound() {
		return a
	}
	if a.unbound() {
		return b
	}
	return &schema{
		parts: slices.Concat(a.parts, b.parts), unions: slices.Concat(a.unions, b.unions),
		never: a.never || b.never, null: a.null && b.null,
	}
}

// unbound tells whether a schema says nothing.
func (s *schema) unbound() bool { return len(s.parts) == 0 && len(s.unions) == 0 && !s.never }

// at is a schema with the node that it stands at, for references that lead there.
func (s *schema) at(n *node) *schema {
	if s.def != nil {
		return s
	}
	located := *s
	located.def = n
	return &located
}

// canonical is what a schema says about what is valid, to compare schemas by.
func (s *schema) canonical() string {
	var b strings.Builder
	for _, part := range s.parts {
		for _, m := range part.members {
			if !annotations[m.name] {
				b.WriteString(m.name + m.value.line() + ";")
			}
		}
	}
	if s.null {
		b.WriteString("null")
	}
	return b.String()
}

// list is a keyword's value that is a list of schemas.
func (r *resolver) list(n *node, keyword string) []*node {
	value := n.get(keyword)
	if value == nil {
		return nil
	}
	if value.kind != array {
		r.once(value, keyword+" is a list of schemas, not "+value.what(), "")
	} else if len(value.items) == 0 {
		r.once(value, keyword+" is empty", "leave it out")
	}
	return value.items
}

func sortedBy[T any](items []T, key func(T) string) []T {
	return slices.SortedStableFunc(slices.Values(items), func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}
