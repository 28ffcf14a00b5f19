//go:build long

package generator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLarge checks inputs that are larger than anyone writes. They give a result or an error, and the memory is
// proportional to their size.
func TestLarge(t *testing.T) {
	w := newWorkshop(t)
	declare := func(tool, in string) string {
		return "package p\n\nimport \"context\"\n\n//mcptask:service\ntype S interface {\n\t//mcptask:tool " + tool +
			"\n\tRun(ctx context.Context, in In) error\n}\n\n" + in + "\n"
	}
	const plain = "type In struct{}"
	var constants, schema strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&constants, "const K%d K = \"v%[1]d\"\n", i)
		fmt.Fprintf(&schema, `,"p%d":{"description":"%s"}`, i, strings.Repeat("word ", 20))
	}
	file := func(name, text string) string {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return declare("schema="+name, plain)
	}
	nested := func(n int) string {
		return `{"type":"object","properties":{"a":` + strings.Repeat(`{"items":`, n) + `{}` + strings.Repeat(`}`, n) + `}}`
	}
	for name, source := range map[string]string{
		"a long word":         declare("title="+strings.Repeat("w", 1<<18), plain),
		"a long text":         declare(`title="`+strings.Repeat("word ", 1<<15)+`"`, plain),
		"a long mistake":      declare(strings.Repeat("w", 1<<18)+strings.Repeat(" x,", 1<<14)+strings.Repeat(" k= ", 1<<12), plain),
		"many directives":     declare("title=x"+strings.Repeat("\n\t//mcptask:tool title=x", 2000), plain),
		"many constants":      declare("", "type In struct{ A K }\n\ntype K string\n\n"+constants.String()),
		"deep structs":        declare("", "type In struct{ A "+strings.Repeat("struct{ A ", 400)+"int"+strings.Repeat(" }", 400)+" }"),
		"deep slices":         declare("", "type In struct{ A "+strings.Repeat("[]", 1000)+"int }"),
		"a deep schema":       file("deep.json", nested(10_000)),
		"a schema just right": file("right.json", nested(200)),
		"many properties":     file("many.json", `{"type":"object","properties":{"a":{}`+schema.String()+`}}`),
		"a large schema":      file("large.json", `{"type":"object","description":"`+strings.Repeat("w", 2<<20)+`"}`),
	} {
		t.Run(name, func(t *testing.T) { w.checkDeclaration(t, []byte(source)) })
	}

	var values, more, consts strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&values, `,"v%d"`, i)
		fmt.Fprintf(&more, `,"w%d"`, i)
		fmt.Fprintf(&consts, `,{"const":"v%d"}`, i)
	}
	property := func(schema string) string {
		return string(listOf([]byte(`{"type":"object","properties":{"a":` + schema + `}}`)))
	}
	tools := strings.Builder{}
	for i := range 200 {
		fmt.Fprintf(&tools, `,{"name":"tool_%d","description":"%s","inputSchema":{"type":"object","properties":{"a":{"type":"string"},"B":{"enum":["c"]}}}}`,
			i, strings.Repeat("word ", 50))
	}
	for name, list := range map[string]string{
		"many tools":       `[{"name":"tool","inputSchema":{"type":"object"}}` + tools.String() + `]`,
		"a deep list":      strings.Repeat(`[`, 100_000),
		"a deep schema":    property(nested(10_000)),
		"values of none":   property(`{"enum":["x"` + values.String() + `],"allOf":[{"enum":["x"` + more.String() + `]}]}`),
		"many constants":   property(`{"oneOf":[{"const":"x"}` + consts.String() + `]}`),
		"many references":  property(`{"anyOf":[` + strings.Repeat(`{"$ref":"#/$defs/a"},`, 5000) + `{"type":"string"}]}`),
		"a long name":      `[{"name":"` + strings.Repeat("n", 1<<18) + `","inputSchema":{"type":"object"}}]`,
		"a long text":      `[{"name":"a","description":"` + strings.Repeat("w", 1<<18) + strings.Repeat(" w", 1<<16) + `","inputSchema":{"type":"object"}}]`,
		"a number of bits": property(`{"type":"integer","minimum":1e999999999,"maximum":` + strings.Repeat("9", 100_000) + `}`),
	} {
		t.Run("list "+name, func(t *testing.T) { w.checkList(t, "p", "S", []byte(list)) })
	}
}
