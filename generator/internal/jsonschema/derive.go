// Package jsonschema derives the schemas of tools from go/types, without running any of the user's
// code. The schemas are those of invopop/jsonschema, whose tags it reads. See [Deriver.Derive].
package jsonschema

import (
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"slices"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
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
	// Question is a form that a person answers. It is flat, and open because clients add members to
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
	// ServerOnly says that no client is generated, so that values of a tool's types go in one direction.
	ServerOnly bool

	pkg       *types.Package
	docs      *docs
	scope     func(*types.Package) (*types.Scope, error)
	isForeign func(*types.Package) bool // in a module that this run's user does not edit
	note      func(pos token.Pos, message string)

	derived     map[derivation]string              // tools share types
	nils        map[types.Type]bool                // the arguments for which encoding/json writes null where their schema has none
	enums       map[string]*enum                   // nil for a type that is not an enum
	guesses     map[string]guess                   // about the types in enums, by the same names
	guessed     map[Guess]bool                     // to be noted at the declarations of types
	imported    map[string]*types.TypeName         // types under //mcptask:enum strings of other packages, which schemas use
	notedDigits bool                               // see noteDigits
	fields      map[*types.Struct]map[string]field // by their names in JSON, for Locate
}

// New makes a Deriver for a package. It calls note with each decision, except for those in [Deriver.Guesses].
func New(fset *token.FileSet, pkg *load.Package, note func(pos token.Pos, message string)) *Deriver {
	return &Deriver{
		pkg: pkg.Types, docs: newDocs(fset, pkg), scope: pkg.Scope, note: note,
		isForeign: pkg.IsForeign, derived: map[derivation]string{}, nils: map[types.Type]bool{}, enums: map[string]*enum{},
		guesses: map[string]guess{}, guessed: map[Guess]bool{}, imported: map[string]*types.TypeName{},
		fields: map[*types.Struct]map[string]field{},
	}
}

// graph holds the schemas of one root and of the types it uses.
type graph struct {
	*Deriver

	use    Use
	at     token.Pos // the position of the root, for problems in other packages
	fail   Fail
	failed bool

	definitions map[string]*definition
	queue       []*definition // in the order of discovery
	order       []string      // of the names under $defs

	references map[*schema]*definition // schemas that another one replaces
	nullable   map[*schema]bool        // schemas that also admit null
	writesNull bool                    // encoding/json writes null for values that are nil
	enumOf     map[*schema]*enum       // schemas of types that are enums

	building  *definition            // whose fields are being read
	reading   *fieldBeingRead        // nil for the root
	enclosing map[string]*definition // the type around an unnamed struct, by its key
}

// Derive returns the formatted schema of a type, or reports why there is none. It differs from the
// result of invopop's reflector in these ways:
//   - The root is the type itself, without $schema and $id.
//   - A struct is inlined, unless it contains itself or the schema would get too large. Then it is under $defs.
//   - Fields of embedded structs follow encoding/json.
//   - A pointer in a result that is not omitted when empty admits null. In arguments it is not required.
//   - Integers of 8, 16 and 32 bits and unsigned ones have their bounds. A number in a string has a
//     pattern.
//   - json.Number and big.Int are numbers. net.IP is a string without a format.
//   - The keys of integer maps may be negative. Those of 8 and 16 bits are within the bounds of their type.
//   - A UUID of a well-known package has the format uuid.
//   - A jsonschema tag of plain text is the description. In other tags, keywords that do not
//     describe a list describe the values at the end: type=string on a []Dec is the type of Dec.
//   - The description of a time.Duration says that it is in nanoseconds. Those of IP addresses and of
//     regular expressions say how they are written.
//   - A type with constants is an enum of them, described by their comments. See findEnum.
//   - A type may have a schema of its own. See declaredSchema.
func (d *Deriver) Derive(t types.Type, use Use, at token.Pos, fail Fail) string {
	t = pointee(types.Unalias(t))
	if text, ok := d.derived[derivation{t, use}]; ok {
		return text
	}
	g := d.newGraph(use, at, fail)
	text, err := g.derive(t)
	if err != nil {
		g.reportProblem(at, "", err)
	}
	if !g.failed {
		d.derived[derivation{t, use}] = text
		d.nils[t] = d.nils[t] || use == Argument && g.writesNull
	}
	return text
}

// WritesNull reports whether encoding/json writes null for nil values in arguments of a type, whose schema has no null.
func (d *Deriver) WritesNull(t types.Type) bool { return d.nils[pointee(types.Unalias(t))] }

func (d *Deriver) newGraph(use Use, at token.Pos, fail Fail) *graph {
	return &graph{
		Deriver: d, use: use, at: at, fail: fail, definitions: map[string]*definition{}, references: map[*schema]*definition{},
		nullable: map[*schema]bool{}, enumOf: map[*schema]*enum{}, enclosing: map[string]*definition{},
	}
}

// maxTypes is the maximum number of types in one schema. It stops types without end.
const maxTypes = 10_000

// derivation identifies a derived schema.
type derivation struct {
	t   types.Type
	use Use
}

// derive returns the formatted schema of a root. Problems with its fields are reported.
func (g *graph) derive(t types.Type) (string, error) {
	s, err := g.typeOf(t, true, nil)
	if err != nil {
		return "", err
	}
	notObject := &refusal{g.typeName(t) + " is not an object in JSON", "use a struct with a field of this type"}
	root := g.references[s]
	if root == nil {
		if from, method := findMethod(t, "MarshalText", "MarshalJSON"); from != nil {
			return "", &refusal{fmt.Sprintf("%s, because it has the method %s of the embedded %s", notObject.message, method, from.Name()), unembedHint}
		}
		return "", notObject
	}
	for i := 0; i < len(g.queue); i++ { // the queue grows as types are found
		if i >= maxTypes {
			return "", &refusal{fmt.Sprintf("its schema has more than %d types", maxTypes), byHandHint}
		}
		g.building = g.queue[i]
		g.buildDefinition(g.queue[i])
	}
	if g.failed {
		return "", nil
	}
	if root.schema.Properties == nil {
		return "", notObject
	}
	text, err := Parse([]byte(toNode(g.assemble(root), g.order).Compact()))
	if err != nil {
		return "", &refusal{"its schema cannot be used: " + err.Error(), byHandHint}
	}
	return text, nil
}

// byHandHint is the way out for a type whose schema cannot be derived.
const byHandHint = "write the schema by hand and name its file with schema= or outputschema="

// maxSchemaBytes is the maximum size of a schema. Models read it, and clients receive it with every
// list of tools.
const maxSchemaBytes = 1 << 20

// Parse reads, checks and formats a schema.
func Parse(src []byte) (string, error) {
	if len(src) > maxSchemaBytes {
		return "", fmt.Errorf("it has %d bytes, more than %d", len(src), maxSchemaBytes)
	}
	schema, err := jsontree.Parse(src)
	if err != nil {
		return "", err
	}
	if schema.Kind != jsontree.Object || !schema.Get("type").Is("object") {
		return "", errors.New(`its root has no "type": "object"`)
	}
	if _, err := schema.CompileSchema(); err != nil {
		return "", err
	}
	if err := checkPatterns(schema); err != nil {
		return "", err
	}
	return formatSchema(schema), nil
}

// PlaceOf returns the line and the column that an error of [Parse] is about, such as ":3:4", or "" if
// it is about the whole schema.
func PlaceOf(src []byte, err error) string {
	var syntax *jsontree.Error
	var invalid *jsontree.SchemaError
	var at token.Position
	switch {
	case errors.As(err, &syntax):
		at = syntax.Pos
	case errors.As(err, &invalid) && invalid.At.Offset > 0:
		lines := diag.IndexLines("", src)
		at = lines.Position(lines.Pos(invalid.At.Offset))
	default:
		return ""
	}
	return fmt.Sprintf(":%d:%d", at.Line, at.Column)
}

// checkPatterns checks the patterns of a schema.
func checkPatterns(n *jsontree.Node) error {
	var patterns []string
	inner := slices.Clone(n.Items)
	for _, m := range n.Members {
		switch pattern, ok := m.Value.Text(); {
		case m.Name == "pattern" && ok:
			patterns = append(patterns, pattern)
		case m.Name == "patternProperties":
			for _, property := range m.Value.Members {
				patterns = append(patterns, property.Name)
			}
		}
		if !slices.Contains([]string{"default", "enum", "const", "examples"}, m.Name) { // these have values, not schemas
			inner = append(inner, m.Value)
		}
	}
	for _, pattern := range patterns {
		if err := checkPattern(pattern); err != nil {
			hint := asRefusal(err).hint
			if hint != "" {
				hint = "; " + hint
			}
			return fmt.Errorf("its pattern %q %w%s", pattern, err, hint)
		}
	}
	for _, n := range inner {
		if err := checkPatterns(n); err != nil {
			return err
		}
	}
	return nil
}

// reportProblem reports a problem at a position.
func (g *graph) reportProblem(pos token.Pos, where string, err error) {
	if g.failed = true; errors.Is(err, errReported) {
		return
	}
	r := asRefusal(err)
	message := r.message
	if where != "" {
		message = where + ": " + message
	}
	g.fail(pos, message, r.hint)
}

// refuse reports problems with a field of the type that is being built, and returns nil. Their
// position is the field if that is in this package, or else the root.
func (g *graph) refuse(f field, problems ...error) *schema {
	for _, err := range problems {
		g.reportProblem(g.posOf(f.variable), g.fieldName(f), err)
	}
	return nil
}

func (g *graph) noteField(f field, message string) {
	g.note(g.posOf(f.variable), g.fieldName(f)+" "+message)
}

// fieldName names a field of the type that is being built.
func (g *graph) fieldName(f field) string {
	if _, named := g.building.t.(*types.Named); !named {
		return "struct." + f.variable.Name()
	}
	return g.typeName(g.building.t) + "." + f.variable.Name()
}

// posOf returns the position of an object that is in this package, or else that of the root.
func (g *graph) posOf(obj types.Object) token.Pos {
	if g.docs.isOwn(obj) {
		return obj.Pos()
	}
	return g.at
}
