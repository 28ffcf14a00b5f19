package structure

import (
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// CheckAPI compares the exported names of a package with a file. If update is set, it writes the file instead. The
// command is the one that does so.
func CheckAPI(t *testing.T, p *packages.Package, file string, update bool, command string) {
	t.Helper()
	now := describeAPI(p.Types)
	if update {
		if err := os.WriteFile(file, []byte(strings.Join(now, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	}
	before := strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })
	var changes strings.Builder
	for _, line := range before {
		if !slices.Contains(now, line) {
			fmt.Fprintln(&changes, "-", line)
		}
	}
	removed := changes.Len() > 0
	for _, line := range now {
		if !slices.Contains(before, line) {
			fmt.Fprintln(&changes, "+", line)
		}
	}
	if changes.Len() == 0 {
		return
	}
	advice := "New names stay forever."
	if removed {
		advice = "A name that is removed or changed breaks the programs that use it: keep it, and mark it as deprecated."
	}
	t.Errorf("the exported names of %s have changed:\n%s%s If this is meant, run\n\t%s", p.PkgPath, &changes, advice, command)
}

// describeAPI returns a line for each exported name of a package, sorted: constants, variables,
// functions, types, and the fields and methods of types. It leaves the names of parameters out.
func describeAPI(p *types.Package) (lines []string) {
	qualify := types.RelativeTo(p)
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, name := range p.Scope().Names() {
		if !ast.IsExported(name) {
			continue
		}
		switch o := p.Scope().Lookup(name).(type) {
		case *types.Const:
			add("const %s %s = %s", name, types.TypeString(o.Type(), qualify), o.Val().ExactString())
		case *types.Var:
			add("var %s %s", name, types.TypeString(o.Type(), qualify))
		case *types.Func:
			add("func %s%s", name, describeSignature(o.Signature(), qualify))
		case *types.TypeName:
			describeType(o, qualify, add)
		}
	}
	slices.Sort(lines)
	return lines
}

// describeType adds the lines of a type.
func describeType(o *types.TypeName, qualify types.Qualifier, add func(string, ...any)) {
	if o.IsAlias() {
		add("type %s = %s", o.Name(), types.TypeString(types.Unalias(o.Type()), qualify))
		return
	}
	named := o.Type().(*types.Named)
	name := types.TypeString(named, qualify)
	switch u := named.Underlying().(type) {
	case *types.Struct:
		add("type %s struct", name)
		for field := range u.Fields() {
			if field.Exported() {
				add("type %s struct, %s %s", name, field.Name(), types.TypeString(field.Type(), qualify))
			}
		}
	case *types.Interface:
		add("type %s interface", name)
		for method := range u.Methods() {
			add("type %s interface, %s%s", name, method.Name(), describeSignature(method.Signature(), qualify))
		}
	default:
		add("type %s %s", name, types.TypeString(u, qualify))
	}
	for method := range named.Methods() {
		if method.Exported() {
			add("method (%s) %s%s", types.TypeString(method.Signature().Recv().Type(), qualify), method.Name(), describeSignature(method.Signature(), qualify))
		}
	}
}

// describeSignature writes a signature without the names of its parameters.
func describeSignature(s *types.Signature, qualify types.Qualifier) string {
	unnamed := func(tuple *types.Tuple) *types.Tuple {
		var vars []*types.Var
		for v := range tuple.Variables() {
			vars = append(vars, types.NewParam(0, nil, "", v.Type()))
		}
		return types.NewTuple(vars...)
	}
	var typeParams []string
	for p := range s.TypeParams().TypeParams() {
		typeParams = append(typeParams, p.Obj().Name()+" "+types.TypeString(p.Constraint(), qualify))
	}
	text := strings.TrimPrefix(types.TypeString(types.NewSignatureType(nil, nil, nil, unnamed(s.Params()), unnamed(s.Results()), s.Variadic()), qualify), "func")
	if typeParams != nil {
		text = "[" + strings.Join(typeParams, ", ") + "]" + text
	}
	return text
}
