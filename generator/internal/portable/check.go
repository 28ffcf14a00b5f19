package portable

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// Tool is a tool as a server lists it.
type Tool struct {
	Name, Description string
	Input, Output     *jsontree.Node // the schemas; nil if there is none
}

// Finding is a construct that a tool has.
type Finding struct {
	Row *Row
	// At is the place in the schema. It is nil if the finding is about the tool's name or description.
	At *jsontree.Node
	// Path are the keywords and names from the root of the schema to the place. It goes through references.
	Path   []string
	Output bool   // the place is in the output schema
	Detail string // such as the types of a list; may be empty
}

// Check finds the constructs of a tool that hosts and providers refuse, in the order of its parts.
func Check(t Tool) []Finding {
	c := &checker{}
	c.checkName(t.Name)
	if length := utf8.RuneCountInString(t.Description); length > maxDescription {
		c.add(descriptionLength, nil, nil, fmt.Sprint(length))
	}
	if t.Input != nil {
		c.root, c.seen = t.Input, map[*jsontree.Node]bool{}
		c.checkRoot()
		c.checkSchema(t.Input, nil, 1)
	}
	if t.Output != nil {
		c.checkOutput(t.Output)
	}
	return c.findings
}

// CheckCount finds out whether a server has too many tools.
func CheckCount(count int) []Finding {
	if count <= maxTools {
		return nil
	}
	return []Finding{{Row: toolCount, Detail: fmt.Sprint(count)}}
}

// checker collects the findings of one tool.
type checker struct {
	findings []Finding
	root     *jsontree.Node
	seen     map[*jsontree.Node]bool // schemas, so that a recursive one ends
}

func (c *checker) add(row *Row, at *jsontree.Node, path []string, detail string) {
	c.findings = append(c.findings, Finding{Row: row, At: at, Path: slices.Clone(path), Detail: detail})
}

var (
	plainName      = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	nameStart      = regexp.MustCompile(`^[a-zA-Z_]`)
	plainKey       = regexp.MustCompile(fmt.Sprintf(`^[a-zA-Z0-9_.-]{1,%d}$`, maxProperty))
	refusedPattern = regexp.MustCompile(`\(\?<?[=!]|\\[pP]\{`)
)

func (c *checker) checkName(name string) {
	switch length := utf8.RuneCountInString(name); {
	case length > maxName:
		c.add(toolNameLength, nil, nil, fmt.Sprint(length))
	case length > maxPrefixedName:
		c.add(toolNamePrefixed, nil, nil, fmt.Sprint(length))
	}
	if !plainName.MatchString(name) {
		c.add(toolNameCharacters, nil, nil, "")
	}
	if !nameStart.MatchString(name) {
		c.add(toolNameStart, nil, nil, "")
	}
}

// checkRoot checks the rules for the root of an input.
func (c *checker) checkRoot() {
	if !c.root.Get("type").Is("object") {
		c.add(rootType, c.root, nil, "")
	} else if c.root.Get("properties") == nil {
		c.add(rootProperties, c.root, nil, "")
	}
	for _, keyword := range []string{"oneOf", "anyOf", "allOf", "not", "enum", "const"} {
		if value := c.root.Get(keyword); value != nil {
			c.add(rootCombination, value, nil, keyword)
		}
	}
	for _, property := range c.root.MembersOf("properties") {
		if !plainKey.MatchString(property.Name) {
			c.add(propertyName, property.Value, []string{"properties", property.Name}, words.QuoteJSON(property.Name))
		}
	}
}

// checkOutput checks an output schema. Models do not get it, but clients read it.
func (c *checker) checkOutput(output *jsontree.Node) {
	before := len(c.findings)
	if dialect, ok := output.Get("$schema").Text(); ok && !strings.Contains(dialect, "2020-12") {
		c.add(outputDialect, output.Get("$schema"), nil, dialect)
	}
	for _, property := range output.MembersOf("properties") {
		if property.Value.Kind == jsontree.Boolean {
			c.add(booleanSchema, property.Value, []string{"properties", property.Name}, property.Value.Compact())
		}
	}
	for i := range c.findings[before:] {
		c.findings[before+i].Output = true
	}
}

// checkSchema checks a schema at any depth of an input, and those in it.
func (c *checker) checkSchema(n *jsontree.Node, path []string, level int) {
	switch {
	case n.Kind == jsontree.Boolean:
		c.add(booleanSchema, n, path, n.Compact())
		return
	case n.Kind != jsontree.Object || c.seen[n]:
		return
	}
	c.seen[n] = true
	c.checkType(n, path)
	c.checkEnum(n, path)
	if text, ok := n.Get("pattern").Text(); ok && refusedPattern.MatchString(text) {
		c.add(pattern, n.Get("pattern"), path, text)
	}
	if level == maxDepth+1 {
		c.add(depth, n, path, "")
	}
	if text, ok := n.Get("$ref").Text(); ok {
		c.add(reference, n.Get("$ref"), path, "")
		if target := c.root.Follow(text); target != nil {
			c.checkSchema(target, path, level)
		}
	}
	c.checkParts(n, path, level+1)
}

// checkTyped checks that a schema says of which type its values are, itself or through others.
func (c *checker) checkTyped(n *jsontree.Node, path []string) {
	says := func(keyword string) bool { return n.Get(keyword) != nil }
	if n.Kind == jsontree.Object && !slices.ContainsFunc([]string{"type", "$ref", "anyOf", "oneOf", "allOf"}, says) {
		c.add(noType, n, path, "")
	}
}

func (c *checker) checkType(n *jsontree.Node, path []string) {
	isArray := n.Get("type").Is("array")
	if list := n.Get("type"); list != nil && list.Kind == jsontree.Array {
		c.add(typeList, list, path, joinCompact(list.Items))
		isArray = slices.ContainsFunc(list.Items, func(item *jsontree.Node) bool { return item.Is("array") })
	}
	switch items := n.Get("items"); {
	case items != nil && items.Kind == jsontree.Array:
		c.add(itemsList, items, path, "")
	case isArray && items == nil:
		c.add(arrayItems, n, path, "")
	}
}

func (c *checker) checkEnum(n *jsontree.Node, path []string) {
	enum := n.Get("enum")
	var numbers []*jsontree.Node
	empty, null := false, false
	for _, value := range n.ItemsOf("enum") {
		if value.Kind == jsontree.Number || value.Kind == jsontree.Boolean {
			numbers = append(numbers, value)
		}
		empty, null = empty || value.Is(""), null || value.Kind == jsontree.Null
	}
	if numbers != nil {
		c.add(enumNumbers, enum, path, joinCompact(numbers))
	}
	if empty {
		c.add(enumEmpty, enum, path, "")
	}
	if null {
		c.add(enumNull, enum, path, "")
	}
}

// checkParts checks the schemas in a schema. Definitions are checked where they are used. A host whose
// provider does not know propertyNames drops it, so it is left out.
func (c *checker) checkParts(n *jsontree.Node, path []string, level int) {
	for _, m := range n.Members {
		switch m.Name {
		case "properties", "patternProperties", "dependentSchemas":
			for _, part := range m.Value.Members {
				at := slices.Concat(path, []string{m.Name, part.Name})
				if m.Name == "properties" {
					c.checkTyped(part.Value, at)
				}
				c.checkSchema(part.Value, at, level)
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			for i, part := range m.Value.Items {
				c.checkSchema(part, slices.Concat(path, []string{m.Name, fmt.Sprint(i)}), level)
			}
		case "additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems":
			if m.Value.Kind != jsontree.Boolean { // hosts know true and false here
				c.checkSchema(m.Value, slices.Concat(path, []string{m.Name}), level)
			}
		case "items":
			c.checkTyped(m.Value, slices.Concat(path, []string{m.Name}))
			c.checkSchema(m.Value, slices.Concat(path, []string{m.Name}), level)
		case "not", "contains", "if", "then", "else":
			c.checkSchema(m.Value, slices.Concat(path, []string{m.Name}), level)
		}
	}
}

// joinCompact returns values as JSON, with commas between them. It leaves out those after the fifth.
func joinCompact(values []*jsontree.Node) string {
	var texts []string
	for i, value := range values {
		if i == 5 {
			texts = append(texts, "…")
			break
		}
		texts = append(texts, value.Compact())
	}
	return strings.Join(texts, ", ")
}
