// Package jsonschema derives the schemas of tools from go/types, without running any of the user's
// code: it rebuilds the types for reflect and has invopop/jsonschema reflect them, a struct at a
// time, then corrects what that gets wrong (see [Deriver.Derive]).
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

// Use is what a schema is for.
type Use int

// The uses of a schema.
const (
	// Argument is a tool's input. It is closed: a model that misspells an argument is told so.
	Argument Use = iota
	// Result is a tool's output. It is open: a server may grow a field before its clients.
	Result
	// Question is what a person answers: flat, and open because clients add to their answers.
	Question
)

// Empty is the schema of a tool without an input.
const Empty = `{
  "type": "object",
  "properties": {},
  "additionalProperties": false
}`

// Fail reports what is wrong with a type; the hint may be empty.
type Fail func(pos token.Pos, message, hint string)

// Deriver derives the schemas of one package's tools. It is not safe for concurrent use.
type Deriver struct {
	pkg   *types.Package
	docs  *docs
	scope func(*types.Package) (*types.Scope, error)

	derived map[derivation]string // tools share their types
}

// New makes a Deriver for a package.
func New(fset *token.FileSet, pkg *load.Package) *Deriver {
	return &Deriver{pkg: pkg.Types, docs: newDocs(fset, pkg), scope: pkg.Scope, derived: map[derivation]string{}}
}

// graph is the schemas of one root and of the types that it uses, each by its key.
type graph struct {
	*Deriver

	use    Use
	at     token.Pos // where the root is used: for problems in other packages
	fail   Fail
	failed bool

	types map[string]types.Type
	enums map[string]*enum // nil for a type that is none
	queue []string         // keys in order of discovery
	nodes map[string]*object

	building string            // the key of the type whose fields are being read
	around   map[string]string // by the key of a struct without a name, the one that it stands in
}

// Derive returns the schema of a type, laid out for people, or reports why there is none. It differs
// from what invopop's reflector says of the same type in this: the root is the type itself and
// neither $schema nor $id stand there; a struct is written out where it is used, and under $defs
// only when used twice or by itself; fields of embedded structs follow encoding/json; a slice, map
// or pointer that is not left out when empty admits null; url.URL is the object that encoding/json
// makes of it, json.Number and big.Int are numbers, net.IP a string of no format; the keys of integer maps may be negative; what a plain
// jsonschema tag says is the description, of a time.Duration also that it is in nanoseconds; and a type
// with constants is an enum of them, described by their comments (see enumOf).
func (d *Deriver) Derive(t types.Type, use Use, at token.Pos, fail Fail) string {
	g := &graph{
		Deriver: d, use: use, at: at, fail: fail, types: map[string]types.Type{}, enums: map[string]*enum{}, nodes: map[string]*object{},
		around: map[string]string{},
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
		g.refuse(at, "", err)
		return ""
	}
	root, ok := placeholderKey(rt)
	if !ok {
		r := &refusal{types.TypeString(t, types.RelativeTo(d.pkg)) + " is no object in JSON", "use a struct with it as a field"}
		if from, method := findMethod(t, "MarshalText"); from != nil {
			r = &refusal{fmt.Sprintf("%s, since it has the method %s of the embedded %s", r.message, method, from.Name()), unembed}
		}
		g.refuse(at, "", r)
		return ""
	}
	for i := 0; i < len(g.queue); i++ { // grows as types are found
		if i >= maxTypes {
			g.refuse(at, "", &refusal{fmt.Sprintf("its schema has more than %d types in it", maxTypes), "name the file of a schema with schema= or outputschema="})
			return ""
		}
		g.building = g.queue[i]
		g.build(g.queue[i])
	}
	if g.failed {
		return ""
	}
	schema := g.assemble(root)
	if deeper(schema, maxDepth) {
		g.refuse(at, "", &refusal{fmt.Sprintf("the values of its schema nest deeper than %d", maxDepth), "give the types in it names"})
		return ""
	}
	order(schema)
	if err := compile(schema); err != nil {
		g.refuse(at, "", &refusal{"the schema is not valid: " + err.Error(), ""})
		return ""
	}
	text := layout(schema)
	d.derived[derivation{t, use}] = text
	return text
}

// maxTypes is how many types one schema may hold, which keeps what has no end from all memory.
const maxTypes = 10_000

// derivation is a type whose schema was derived for a use.
type derivation struct {
	t   types.Type
	use Use
}

// longestSchema is how many bytes a schema that somebody wrote may have: a model has to read it, and so
// has every client at each list of the tools.
const longestSchema = 1 << 20

// Parse reads a schema that somebody wrote and lays it out.
func Parse(src []byte) (string, error) {
	if len(src) > longestSchema {
		return "", fmt.Errorf("it has %d bytes, more than %d", len(src), longestSchema)
	}
	value, err := decode(src)
	if err != nil {
		return "", fmt.Errorf("it is not JSON: %w", err)
	}
	schema, ok := value.(*object)
	if !ok || schema.get("type") != "object" {
		return "", errors.New(`its root has no "type": "object"`)
	}
	if err := compile(schema); err != nil {
		return "", err
	}
	return layout(schema), nil
}

// compile checks that a schema is one, and that its references lead somewhere.
func compile(schema *object) error {
	doc, err := validator.UnmarshalJSON(strings.NewReader(oneLine(schema)))
	if err != nil {
		return err
	}
	c := validator.NewCompiler()
	c.UseLoader(validator.SchemeURLLoader{}) // loads nothing
	const url = "schema:///"
	if err := c.AddResource(url, doc); err != nil {
		return err
	}
	if _, err := c.Compile(url); err != nil {
		return errors.New(strings.ReplaceAll(strings.Join(strings.Fields(err.Error()), " "), url, ""))
	}
	return nil
}

// refuse reports a problem, at what was written where it is in this package.
func (g *graph) refuse(pos token.Pos, where string, err error) {
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

// refuseField reports a problem with a field.
func (g *graph) refuseField(owner string, f field, err error) {
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
	g.refuse(pos, name+"."+f.variable.Name(), err)
}

// build makes the schema of one type, with references to the others.
func (g *graph) build(key string) {
	t := g.types[key]
	st, ok := t.Underlying().(*types.Struct)
	if !ok {
		rt, err := g.reflectType(t.Underlying())
		if err != nil {
			g.refuse(g.at, types.TypeString(t, types.RelativeTo(g.pkg)), err)
			return
		}
		node, err := g.reflect(rt)
		if err != nil {
			g.refuse(g.at, "", err)
			return
		}
		g.nodes[key] = g.correct(t.Underlying(), node, true)
		return
	}
	g.checkJSONTags(key, st)
	var members []field
	var tags []tag
	var fields []reflect.StructField
	for _, f := range jsonFields(st) {
		rt, tag, ok := g.member(key, f)
		if !ok {
			continue
		}
		members, tags = append(members, f), append(tags, tag)
		// The reflector sees names of ours: it would not take each of theirs.
		name := "F" + strconv.Itoa(len(fields))
		fields = append(fields, reflect.StructField{Name: name, Type: rt, Tag: tag.rewrite(f, name)})
	}
	node, err := g.reflect(reflect.StructOf(fields))
	if err != nil {
		if !g.failed { // else a number in a tag, say, which was refused, is no JSON
			g.refuse(g.at, "", err)
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
	rename(node, names)
	if named, ok := t.(*types.Named); ok {
		if doc := g.docs.find(named.Obj()).doc; doc != "" {
			node.set("description", doc)
		}
	}
	g.nodes[key] = node
}

// rename puts the names of members in place of those that the reflector saw.
func rename(node *object, names map[string]string) {
	if required, ok := node.get("required").([]any); ok {
		for i, name := range required {
			required[i] = names[name.(string)]
		}
	}
	for _, keyword := range []string{"oneOf", "anyOf"} { // of the tags oneof_required and anyof_required
		choices, _ := node.get(keyword).([]any)
		for _, choice := range choices {
			rename(choice.(*object), names)
		}
	}
}

// member finds how the reflector is to see a field; false where the schema leaves it out.
func (g *graph) member(owner string, f field) (reflect.Type, tag, bool) {
	tag, err := readTag(f.tag)
	if err != nil {
		g.refuseField(owner, f, err)
		return nil, tag, false
	}
	if tag.ignored {
		return nil, tag, false
	}
	rt, overridden := tag.override()
	if !overridden {
		if rt, err = g.reflectType(f.variable.Type()); err != nil {
			g.refuseField(owner, f, err)
			return nil, tag, false
		}
	}
	for _, r := range tag.check(rt, f.quoted) {
		g.refuseField(owner, f, r)
	}
	if extras, ok := f.tag.Lookup("jsonschema_extras"); ok {
		for _, word := range splitParts(extras) {
			if !strings.Contains(word, "=") {
				g.refuseField(owner, f, &refusal{fmt.Sprintf("%q means nothing in the jsonschema_extras tag", word), "write key=value"})
			}
		}
	}
	return rt, tag, true
}

// finishField corrects the schema of a field and describes it.
func (g *graph) finishField(owner string, f field, tag tag, property *object) *object {
	text, _ := property.get("description").(string)
	text = cmp.Or(text, tag.description, g.docs.find(f.variable).doc)
	if _, overridden := tag.override(); !overridden {
		text = g.explainField(f.variable.Type(), property, text)
		typedDefault(property)
		property = g.correct(f.variable.Type(), property, f.omitted)
		if f.quoted {
			quoteChoices(property)
		}
	}
	if tag.nullable {
		property.set(null, true)
	}
	if items, ok := property.child("items"); ok && g.use == Question && items.has("description") {
		// Clients show what stands at the field.
		text = joinLines(text, items.get("description").(string))
		items.remove("description")
	}
	if text != "" {
		property.set("description", text)
	}
	err := checkDefault(property)
	if err == nil && g.use == Question {
		err = flat(f, property)
	}
	if err != nil {
		g.refuseField(owner, f, err)
	}
	return property
}

// explainField appends to the text of a field what its type means: the constants of an enum, the unit
// of a duration. Who is to guess?
func (g *graph) explainField(t types.Type, property *object, text string) string {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	// An error of enumOf is reported where the schema is corrected.
	if e, _ := g.enumOf(t); e != nil && !property.has("enum") {
		return e.describe(cmp.Or(text, e.about))
	}
	if !holdsDuration(t) || strings.Contains(strings.ToLower(text), "nanosecond") {
		return text
	}
	if text != "" && !strings.HasSuffix(text, ".") {
		text += "."
	}
	return strings.TrimSpace(text + " In nanoseconds.")
}

// reflect has invopop derive the schema of a type that bridge.go made.
func (g *graph) reflect(rt reflect.Type) (node *object, err error) {
	defer func() {
		// The reflector panics on types it does not know; all that we know of are refused before.
		if r := recover(); r != nil {
			err = fmt.Errorf("no schema can be derived: %v", r)
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
	value, err := decode(b.Bytes())
	if err != nil {
		return nil, err
	}
	node, ok := value.(*object)
	if !ok {
		return newObject(), nil // the schema true
	}
	node.remove("$schema")
	openTrue(node)
	return node, nil
}

// openTrue writes {} for the schema true, which some clients do not read.
func openTrue(node *object) {
	for _, key := range node.keys {
		switch key {
		case "properties", "patternProperties":
			if members, ok := node.child(key); ok {
				for _, name := range members.keys {
					if members.values[name] == true {
						members.values[name] = newObject()
					} else if member, ok := members.child(name); ok {
						openTrue(member)
					}
				}
			}
		case "items", "additionalProperties":
			if node.values[key] == true {
				node.values[key] = newObject()
			} else if inner, ok := node.child(key); ok {
				openTrue(inner)
			}
		}
	}
}
