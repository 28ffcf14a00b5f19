package toolschema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// schema is a parsed JSON Schema with references and allOf resolved. A valid value satisfies all
// parts and one alternative of each union.
type schema struct {
	parts  []*jsontree.Node // outermost first
	unions [][]*schema
	never  bool // no value is valid
	null   bool // null is a valid alternative
	// gathered means that the schema is that of one property in several alternatives of its object.
	gathered bool
	// def is the node that the type is named after, if the schema is nothing but a reference to it.
	def     *jsontree.Node
	defName string
}

// annotations are the keywords that do not restrict values.
var annotations = map[string]bool{
	"$schema": true, "$id": true, "$comment": true, "$defs": true, "definitions": true, "$anchor": true,
	"title": true, "description": true, "default": true, "examples": true, "example": true,
	"deprecated": true, "readOnly": true, "writeOnly": true,
}

// hasOnlyAnnotations reports whether a part restricts values only by the given keywords.
func hasOnlyAnnotations(part *jsontree.Node, beside ...string) bool {
	return !slices.ContainsFunc(part.Members, func(m jsontree.Member) bool {
		return !annotations[m.Name] && !strings.HasPrefix(m.Name, "x-") && !slices.Contains(beside, m.Name)
	})
}

// resolver resolves the schemas under one root.
type resolver struct {
	*toolList

	root *jsontree.Node
	// busy holds the schemas being resolved.
	busy map[*jsontree.Node]bool
	// steps counts resolved schemas, because a few lines can expand to millions.
	steps int
	// reported holds the nodes with a reported problem, because a target is read at each reference.
	reported map[*jsontree.Node]bool
}

// maxSteps is far more than real schemas need.
const maxSteps = 20_000

// reportOnce reports a problem, unless one was reported for the same node.
func (r *resolver) reportOnce(at *jsontree.Node, message, hint string) {
	if !r.reported[at] {
		r.reported[at] = true
		r.addProblem(at, message, hint)
	}
}

// resolve resolves a schema.
func (r *resolver) resolve(n *jsontree.Node) *schema {
	s := &schema{}
	r.addPart(s, n)
	r.simplifyUnions(s)
	if s.def == nil {
		s.def, s.defName = r.findName(n)
	}
	return s
}

// findName returns the target and name of a schema that is nothing but a reference.
func (r *resolver) findName(n *jsontree.Node) (def *jsontree.Node, name string) {
	if n == r.root {
		return n, ""
	}
	for range jsontree.MaxDepth {
		if items := n.Get("allOf"); items != nil && len(items.Items) == 1 && hasOnlyAnnotations(n, "allOf") {
			n = items.Items[0]
			continue
		}
		text, ok := n.Get("$ref").Text()
		target := r.root.Follow(text)
		if !ok || target == nil || !hasOnlyAnnotations(n, "$ref") {
			break
		}
		def, name = target, jsontree.UnescapeStep(text[strings.LastIndexAny(text, "#/")+1:])
		n = target
	}
	return def, name
}

// addPart adds the restrictions of n to a schema.
func (r *resolver) addPart(s *schema, n *jsontree.Node) {
	if n.Kind != jsontree.Object {
		if n.Is(false) {
			s.never = true
		} else if !n.Is(true) {
			r.reportOnce(n, "a schema must be an object or a boolean, not "+n.Kind.String(), "")
		}
		return
	}
	if r.busy[n] {
		r.reportOnce(n, "this schema refers to itself endlessly", "no value can satisfy it; remove the reference")
		s.never = true
		return
	}
	if r.steps++; r.steps > maxSteps {
		r.reportOnce(r.root, fmt.Sprintf("this schema has more than %d parts, including its references", maxSteps), "make its unions smaller")
		s.never = true
		return
	}
	r.busy[n] = true
	defer delete(r.busy, n)
	r.checkKeywords(n)
	s.parts = append(s.parts, n)
	if ref := n.Get("$ref"); ref != nil {
		r.addReference(s, ref)
	}
	for _, item := range r.schemaList(n, "allOf") {
		r.addPart(s, item)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if n.Get(keyword) == nil {
			continue
		}
		var union []*schema
		for _, item := range r.schemaList(n, keyword) {
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

func (r *resolver) addReference(s *schema, ref *jsontree.Node) {
	text, ok := ref.Text()
	if !ok {
		r.reportOnce(ref, "$ref must be a string, not "+ref.Kind.String(), "")
		return
	}
	fragment, local := strings.CutPrefix(text, "#")
	if !local || fragment != "" && fragment[0] != '/' {
		return // another document or an anchor; see foreignReference
	}
	target := r.root.Follow(text)
	if target == nil {
		r.reportOnce(ref, "$ref "+words.QuoteJSON(text)+" does not lead to a schema", suggestReference(fragment, r.root))
		return
	}
	r.addPart(s, target)
}

// foreignReference returns a reference that leads out of the file, or "".
func (s *schema) foreignReference() string {
	for _, part := range s.parts {
		if text, ok := part.Get("$ref").Text(); ok && text != "#" && !strings.HasPrefix(text, "#/") {
			return text
		}
		for _, keyword := range []string{"$dynamicRef", "$recursiveRef"} {
			if text, ok := part.Get(keyword).Text(); ok {
				return text
			}
		}
	}
	return ""
}

func suggestReference(fragment string, root *jsontree.Node) string {
	for _, keyword := range []string{"$defs", "definitions"} {
		name, ok := strings.CutPrefix(fragment, "/"+keyword+"/")
		if !ok || root.Get(keyword) == nil {
			continue
		}
		var there []string
		for _, m := range root.Get(keyword).Members {
			there = append(there, m.Name)
		}
		if near := diag.Nearest(name, there); near != "" {
			return "did you mean #/" + keyword + "/" + near + "?"
		}
	}
	return "a $ref starts at the schema of the input or output that contains it"
}

// simplifyUnions removes null from unions, and turns a union of one alternative into a part.
func (r *resolver) simplifyUnions(s *schema) {
	admits, forbids := s.checkNull()
	unions := s.unions
	s.unions = nil
	for _, union := range unions {
		var rest []*schema
		null := false
		for _, alternative := range flattenUnion(union) {
			if null = null || alternative.null || alternative.acceptsOnlyNull(); !alternative.acceptsOnlyNull() {
				rest = append(rest, alternative)
			}
		}
		admits, forbids = admits || null, forbids || !null
		if len(rest) != 1 {
			if len(rest) > 0 {
				s.unions = append(s.unions, rest)
			} else if null {
				s.parts = append(s.parts, typePart("null"))
			}
			continue
		}
		only := rest[0]
		if s.isOnlyUnions() {
			s.def, s.defName = only.def, only.defName
		}
		s.parts = append(s.parts, only.parts...)
		s.unions = append(s.unions, only.unions...)
	}
	s.null = s.null || admits && !forbids
}

// checkNull reports whether a part lists null as valid, and whether a part excludes it.
func (s *schema) checkNull() (admits, forbids bool) {
	for _, part := range s.parts {
		for _, keyword := range []string{"type", "enum", "const"} {
			value := part.Get(keyword)
			if value == nil {
				continue
			}
			isNull := func(n *jsontree.Node) bool { return n.Is(nil) || keyword == "type" && n.Is("null") }
			if isNull(value) || keyword != "const" && slices.ContainsFunc(value.Items, isNull) {
				admits = true
			} else {
				forbids = true
			}
		}
	}
	return admits, forbids
}

// flattenUnion replaces an alternative that is only a union with its alternatives.
func flattenUnion(union []*schema) []*schema {
	var flat []*schema
	for _, s := range union {
		if len(s.unions) == 1 && s.isOnlyUnions() {
			if s.null {
				flat = append(flat, &schema{null: true, parts: []*jsontree.Node{typePart("null")}})
			}
			flat = append(flat, s.unions[0]...)
			continue
		}
		flat = append(flat, s)
	}
	return flat
}

// isOnlyUnions reports whether an unnamed schema restricts values only by its unions.
func (s *schema) isOnlyUnions() bool {
	return s.def == nil && !slices.ContainsFunc(s.parts, func(p *jsontree.Node) bool { return !hasOnlyAnnotations(p, "anyOf", "oneOf") })
}

// typePart returns a schema that only has a type.
func typePart(kind string) *jsontree.Node {
	return jsontree.NewObject(jsontree.Member{Name: "type", Value: jsontree.NewString(kind)})
}

// acceptsOnlyNull reports whether null is the only valid value.
func (s *schema) acceptsOnlyNull() bool {
	return slices.ContainsFunc(s.parts, func(p *jsontree.Node) bool {
		if p.Get("type").Is("null") {
			return true
		}
		if c := p.Get("const"); c != nil && c.Is(nil) {
			return true
		}
		enum := p.Get("enum")
		return enum != nil && len(enum.Items) == 1 && enum.Items[0].Is(nil)
	})
}

// firstValue returns the value of a keyword in the outermost part that has it.
func (s *schema) firstValue(keyword string) *jsontree.Node {
	for _, part := range s.parts {
		if value := part.Get(keyword); value != nil {
			return value
		}
	}
	return nil
}

func (s *schema) text(keyword string) string {
	text, _ := s.firstValue(keyword).Text()
	return text
}

// intersect returns the schema of values that satisfy both.
func intersect(a, b *schema) *schema {
	if b.isUnconstrained() {
		return a
	}
	if a.isUnconstrained() {
		return b
	}
	return &schema{
		parts: slices.Concat(a.parts, b.parts), unions: slices.Concat(a.unions, b.unions),
		never: a.never || b.never, null: a.null && b.null, gathered: a.gathered || b.gathered,
	}
}

// isUnconstrained reports whether every value is valid.
func (s *schema) isUnconstrained() bool { return len(s.parts) == 0 && len(s.unions) == 0 && !s.never }

// locatedAt returns the schema with its node, for references that lead there.
func (s *schema) locatedAt(n *jsontree.Node) *schema {
	if s.def != nil {
		return s
	}
	located := *s
	located.def = n
	return &located
}

// canonicalText returns the restrictions of a schema as text, to compare schemas.
func (s *schema) canonicalText() string {
	var b strings.Builder
	for _, part := range s.parts {
		for _, m := range part.Members {
			if !annotations[m.Name] {
				b.WriteString(m.Name + m.Value.Compact() + ";")
			}
		}
	}
	if s.null {
		b.WriteString("null")
	}
	return b.String()
}

// schemaList returns the value of a keyword that holds a list of schemas.
func (r *resolver) schemaList(n *jsontree.Node, keyword string) []*jsontree.Node {
	value := n.Get(keyword)
	if value == nil {
		return nil
	}
	if value.Kind != jsontree.Array {
		r.reportOnce(value, keyword+" must be a list of schemas, not "+value.Kind.String(), "")
	} else if len(value.Items) == 0 {
		r.reportOnce(value, keyword+" is empty", "remove it")
	}
	return value.Items
}

func sortedBy[T any](items []T, key func(T) string) []T {
	return slices.SortedStableFunc(slices.Values(items), func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}
