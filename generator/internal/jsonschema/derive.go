// Package jsonschema derives the schemas of tools from go/types, without running any of the user's
// code. It rebuilds the types for reflect, has invopop/jsonschema reflect one struct at a time, and
// corrects the result. See [Deriver.Derive].
package jsonschema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"reflect"
	"strconv"
	"strings"

	invopop "github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
)

// Use is the purpose of a schema.
type Use int

// The uses of a schema.
const (
	// Argument is a tool's input. It is closed, so that a model learns when it misspells an
	// argument.
	Argument Use = iota
	// Result is a tool's output. It is open, so that a server can add a field before its clients
	// do.
	Result
	// Question is what a person answers. It is flat, and open because clients add members to
	// answers.
	Question
)

// Empty is the schema of a tool without an input.
const Empty = `{
  "type": "object",
  "properties": {},
  "additionalProperties": false
}`

// Fail reports a problem with a type. The hint may be empty.
type Fail func(pos token.Pos, message, hint string)

// Deriver derives the schemas of one package's tools. It is not safe for concurrent use.
type Deriver struct {
	pkg   *types.Package
	docs  *docs
	scope func(*types.Package) (*types.Scope, error)

	derived map[derivation]string // tools share types
}

// New makes a Deriver for a package.
func New(fset *token.FileSet, pkg *load.Package) *Deriver {
	return &Deriver{pkg: pkg.Types, docs: newDocs(fset, pkg), scope: pkg.Scope, derived: map[derivation]string{}}
}

// graph holds the schemas of one root and of the types it uses, by key.
type graph struct {
	*Deriver

	use    Use
	at     token.Pos // the position of the root, for problems in other packages
	fail   Fail
	failed bool

	types map[string]types.Type
	enums map[string]*enum // nil for a type that is not an enum
	queue []string         // keys in the order of discovery
	nodes map[string]*object

	building  string            // the key of the type whose fields are being read
	enclosing map[string]string // maps the key of an unnamed struct to the key of the type around it
}

// Derive returns the formatted schema of a type, or reports why there is none. It differs from the
// result of invopop's reflector in these ways:
//   - The root is the type itself, without $schema and $id.
//   - A struct is inlined, unless it is used twice or by itself. Then it is under $defs.
//   - Fields of embedded structs follow encoding/json.
//   - A slice, map or pointer that is not omitted when empty admits null.
//   - url.URL is the object that encoding/json makes of it. json.Number and big.Int are numbers.
//     net.IP is a string without a format.
//   - The keys of integer maps may be negative.
//   - A jsonschema tag of plain text is the description.
//   - The description of a time.Duration says that it is in nanoseconds.
//   - A type with constants is an enum of them, described by their comments. See enumOf.
func (d *Deriver) Derive(t types.Type, use Use, at token.Pos, fail Fail) string {
	g := &graph{
		Deriver: d, use: use, at: at, fail: fail, types: map[string]types.Type{}, enums: map[string]*enum{}, nodes: map[string]*object{},
		enclosing: map[string]string{},
	}
	t = types.Unalias(t)
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	if text, ok := d.derived[derivation{t, use}]; ok {
		return text
	}
	rt, err := g.reflectType(t)
	if err != nil {
		g.reportProblem(at, "", err)
		return ""
	}
	root, ok := placeholderKey(rt)
	if !ok {
		r := &refusal{types.TypeString(t, types.RelativeTo(d.pkg)) + " is not an object in JSON", "use a struct with a field of this type"}
		if from, method := findMethod(t, "MarshalText"); from != nil {
			r = &refusal{fmt.Sprintf("%s, because it has the method %s of the embedded %s", r.message, method, from.Name()), unembedHint}
		}
		g.reportProblem(at, "", r)
		return ""
	}
	for i := 0; i < len(g.queue); i++ { // the queue grows as types are found
		if i >= maxTypes {
			g.reportProblem(at, "", &refusal{fmt.Sprintf("its schema has more than %d types", maxTypes), "name the file of a schema with schema= or outputschema="})
			return ""
		}
		g.building = g.queue[i]
		g.buildSchema(g.queue[i])
	}
	if g.failed {
		return ""
	}
	schema := g.assemble(root)
	if nestsDeeper(schema, maxDepth) {
		g.reportProblem(at, "", &refusal{fmt.Sprintf("the values of its schema nest deeper than %d", maxDepth), "give its inner types names"})
		return ""
	}
	sortKeywords(schema)
	if err := checkSchema(schema); err != nil {
		g.reportProblem(at, "", &refusal{"the schema is not valid: " + err.Error(), ""})
		return ""
	}
	text := formatSchema(schema)
	d.derived[derivation{t, use}] = text
	return text
}

// maxTypes is the maximum number of types in one schema. It stops types without end.
const maxTypes = 10_000

// derivation identifies a derived schema.
type derivation struct {
	t   types.Type
	use Use
}

// maxSchemaBytes is the maximum size of a hand-written schema. Models read it, and clients receive
// it with every list of tools.
const maxSchemaBytes = 1 << 20

// Parse reads and formats a hand-written schema.
func Parse(src []byte) (string, error) {
	if len(src) > maxSchemaBytes {
		return "", fmt.Errorf("it has %d bytes, more than %d", len(src), maxSchemaBytes)
	}
	value, err := decodeJSON(src)
	if err != nil {
		return "", fmt.Errorf("it is not JSON: %w", err)
	}
	schema, ok := value.(*object)
	if !ok || schema.get("type") != "object" {
		return "", errors.New(`its root has no "type": "object"`)
	}
	if err := checkSchema(schema); err != nil {
		return "", err
	}
	return formatSchema(schema), nil
}

// checkSchema checks that a schema is valid and that its references resolve.
func checkSchema(schema *object) error {
	doc, err := validator.UnmarshalJSON(strings.NewReader(compactText(schema)))
	if err != nil {
		return err
	}
	c := validator.NewCompiler()
	c.UseLoader(validator.SchemeURLLoader{}) // does not load anything
	const url = "schema:///"
	if err := c.AddResource(url, doc); err != nil {
		return err
	}
	if _, err := c.Compile(url); err != nil {
		return errors.New(strings.ReplaceAll(strings.Join(strings.Fields(err.Error()), " "), url, ""))
	}
	return nil
}

// reportProblem reports a problem at a position.
func (g *graph) reportProblem(pos token.Pos, where string, err error) {
	g.failed = true
	var r *refusal
	if !errors.As(err, &r) {
		r = &refusal{message: err.Error()}
	}
	message := r.message
	if where != "" {
		message = where + ": " + message
	}
	g.fail(pos, message, r.hint)
}

// reportField reports a problem with a field. Its position is the field if that is in this package,
// or else the root.
func (g *graph) reportField(owner string, f field, err error) {
	name := types.TypeString(g.types[owner], func(p *types.Package) string {
		if p == g.pkg {
			return ""
		}
		return p.Name()
	})
	if _, named := g.types[owner].(*types.Named); !named {
		name = "struct"
	}
	pos := g.at
	if g.docs.isOwn(f.variable) {
		pos = f.variable.Pos()
	}
	g.reportProblem(pos, name+"."+f.variable.Name(), err)
}

// buildSchema builds the schema of one type, with references to others.
func (g *graph) buildSchema(key string) {
	t := g.types[key]
	st, ok := t.Underlying().(*types.Struct)
	if !ok {
		rt, err := g.reflectType(t.Underlying())
		if err != nil {
			g.reportProblem(g.at, types.TypeString(t, types.RelativeTo(g.pkg)), err)
			return
		}
		node, err := g.reflectSchema(rt)
		if err != nil {
			g.reportProblem(g.at, "", err)
			return
		}
		g.nodes[key] = g.correctSchema(t.Underlying(), node, true)
		return
	}
	g.checkJSONTags(key, st)
	var members []field
	var tags []tag
	var fields []reflect.StructField
	for _, f := range jsonFields(st) {
		rt, tag, ok := g.readMember(key, f)
		if !ok {
			continue
		}
		members, tags = append(members, f), append(tags, tag)
		// Use our own names, because the reflector does not accept every JSON name.
		name := "F" + strconv.Itoa(len(fields))
		fields = append(fields, reflect.StructField{Name: name, Type: rt, Tag: tag.rewrite(f, name)})
	}
	node, err := g.reflectSchema(reflect.StructOf(fields))
	if err != nil {
		if !g.failed { // otherwise the cause was reported already, such as an invalid number in a tag
			g.reportProblem(g.at, "", err)
		}
		return
	}
	names := map[string]string{}
	properties, reflected := newObject(), node.get("properties").(*object)
	for i, f := range members {
		names[fields[i].Name] = f.name
		if property, ok := reflected.child(fields[i].Name); ok {
			properties.set(f.name, g.finishField(key, f, tags[i], property))
		}
	}
	node.set("properties", properties)
	renameMembers(node, names)
	if named, ok := t.(*types.Named); ok {
		if doc := g.docs.find(named.Obj()).doc; doc != "" {
			node.set("description", doc)
		}
	}
	g.nodes[key] = node
}

// renameMembers replaces the reflector's field names with JSON names.
func renameMembers(node *object, names map[string]string) {
	if required, ok := node.get("required").([]any); ok {
		for i, name := range required {
			required[i] = names[name.(string)]
		}
	}
	for _, keyword := range []string{"oneOf", "anyOf"} { // from the tags oneof_required and anyof_required
		choices, _ := node.get(keyword).([]any)
		for _, choice := range choices {
			renameMembers(choice.(*object), names)
		}
	}
}

// readMember returns the type and tag of a field for the reflector. It returns false if the schema
// omits the field.
func (g *graph) readMember(owner string, f field) (reflect.Type, tag, bool) {
	tag, err := readTag(f.tag)
	if err != nil {
		g.reportField(owner, f, err)
		return nil, tag, false
	}
	if tag.ignored {
		return nil, tag, false
	}
	rt, overridden := tag.overrideType()
	if !overridden {
		if rt, err = g.reflectType(f.variable.Type()); err != nil {
			g.reportField(owner, f, err)
			return nil, tag, false
		}
	}
	for _, r := range tag.checkParts(rt, f.quoted) {
		g.reportField(owner, f, r)
	}
	if extras, ok := f.tag.Lookup("jsonschema_extras"); ok {
		for _, word := range splitParts(extras) {
			if !strings.Contains(word, "=") {
				g.reportField(owner, f, &refusal{fmt.Sprintf("%q has no meaning in the jsonschema_extras tag", word), "write key=value"})
			}
		}
	}
	return rt, tag, true
}

// finishField corrects and describes the schema of a field.
func (g *graph) finishField(owner string, f field, tag tag, property *object) *object {
	text, _ := property.get("description").(string)
	text = cmp.Or(text, tag.description, g.docs.find(f.variable).doc)
	if _, overridden := tag.overrideType(); !overridden {
		text = g.explainField(f.variable.Type(), property, text)
		convertDefault(property)
		property = g.correctSchema(f.variable.Type(), property, f.omitted)
		if f.quoted {
			quoteChoices(property)
		}
	}
	if tag.nullable {
		property.set(nullMark, true)
	}
	if items, ok := property.child("items"); ok && g.use == Question && items.has("description") {
		// Clients show the description of the field.
		text = joinLines(text, items.get("description").(string))
		items.remove("description")
	}
	if text != "" {
		property.set("description", text)
	}
	err := checkDefault(property)
	if err == nil && g.use == Question {
		err = checkQuestionField(f, property)
	}
	if err != nil {
		g.reportField(owner, f, err)
	}
	return property
}

// explainField appends the meaning of a field's type to its text: the constants of an enum, or the
// unit of a duration.
func (g *graph) explainField(t types.Type, property *object, text string) string {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	// correctSchema reports the error of enumOf.
	if e, _ := g.enumOf(t); e != nil && !property.has("enum") {
		return e.appendMeanings(cmp.Or(text, e.about))
	}
	if !containsDuration(t) || strings.Contains(strings.ToLower(text), "nanosecond") {
		return text
	}
	if text != "" && !strings.HasSuffix(text, ".") {
		text += "."
	}
	return strings.TrimSpace(text + " In nanoseconds.")
}

// reflectSchema has the reflector derive the schema of a type that reflectType built.
func (g *graph) reflectSchema(rt reflect.Type) (node *object, err error) {
	defer func() {
		// The reflector panics on types it does not know. The known ones were refused before.
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot derive a schema: %v", r)
		}
	}()
	reflector := invopop.Reflector{
		Anonymous: true, DoNotReference: true, AllowAdditionalProperties: g.use != Argument,
		Mapper: func(t reflect.Type) *invopop.Schema {
			if key, ok := placeholderKey(t); ok {
				return &invopop.Schema{Ref: key}
			}
			return nil
		},
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(reflector.ReflectFromType(rt)); err != nil {
		return nil, err
	}
	value, err := decodeJSON(b.Bytes())
	if err != nil {
		return nil, err
	}
	node, ok := value.(*object)
	if !ok {
		return newObject(), nil // the schema is true
	}
	node.remove("$schema")
	replaceTrue(node)
	return node, nil
}

// replaceTrue replaces the schema true with {}, because some clients do not accept true.
func replaceTrue(node *object) {
	for _, key := range node.keys {
		switch key {
		case "properties", "patternProperties":
			if members, ok := node.child(key); ok {
				for _, name := range members.keys {
					if members.values[name] == true {
						members.values[name] = newObject()
					} else if member, ok := members.child(name); ok {
						replaceTrue(member)
					}
				}
			}
		case "items", "additionalProperties":
			if node.values[key] == true {
				node.values[key] = newObject()
			} else if inner, ok := node.child(key); ok {
				replaceTrue(inner)
			}
		}
	}
}
