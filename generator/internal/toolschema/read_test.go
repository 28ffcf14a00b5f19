package toolschema

import (
	"fmt"
	"go/types"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// readList reads a list that has no mistakes.
func readList(t *testing.T, cfg Config, text string) *model.Remote {
	t.Helper()
	var problems diag.List
	cfg.Path, cfg.Package, cfg.Service = "tools.json", "p", "S"
	remote := Read(cfg, []byte(text), &problems)
	if err := problems.Err(""); err != nil {
		t.Fatal(err)
	}
	return remote
}

// listOf returns a list of tools without arguments.
func listOf(names ...string) string {
	var tools []string
	for _, name := range names {
		tools = append(tools, fmt.Sprintf(`{"name": %q, "inputSchema": {"type": "object"}}`, name))
	}
	return "[" + strings.Join(tools, ",") + "]"
}

// TestSharedPrefix checks which prefixes method names leave out.
func TestSharedPrefix(t *testing.T) {
	for names, want := range map[string]string{
		"browser_click browser_type browser_close": "Click Type Close",
		"API-get-user API-post-page API-get-self":  "GetUser PostPage GetSelf",
		"get_user get_team get_issue":              "GetUser GetTeam GetIssue", // a verb
		"browser_click browser_type":               "BrowserClick BrowserType", // too few
		"browser_click browser_2 browser_close":    "BrowserClick Browser2 BrowserClose",
		"browser_click browser browser_close":      "BrowserClick Browser BrowserClose",
		"a_click b_type a_close":                   "AClick BType AClose",
	} {
		var got []string
		for _, tool := range readList(t, Config{}, listOf(strings.Fields(names)...)).Services[0].Tools {
			got = append(got, tool.Method)
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s are %s, want %s", names, got, want)
		}
	}
}

// TestTaskSupport checks which tools may be tasks if the list does not state it.
func TestTaskSupport(t *testing.T) {
	tools := listOf("a")
	states := strings.Replace(listOf("a", "b"), `"name": "b"`, `"name": "b", "execution": {"taskSupport": "required"}`, 1)
	session := `{"initialize": {"protocolVersion": "2025-11-25", "serverInfo": {"name": "s"}, "capabilities": {}}, "tools": ` + tools + `}`
	discovered := `{"server/discover": {"supportedVersions": ["2026-07-28"], "serverInfo": {"name": "s"}, "capabilities": %s}, "tools": ` + tools + `}`
	for _, test := range []struct {
		list     string
		revision string
		want     model.Support
		serves   bool
	}{
		{tools, "", model.Optional, false},
		{tools, "2025-11-25", model.Forbidden, false},
		{tools, "2026-07-28", model.Optional, false},
		{states, "", model.Forbidden, false},
		{session, "", model.Forbidden, false},
		{session, "2026-07-28", model.Optional, false},
		{fmt.Sprintf(discovered, "{}"), "", model.Forbidden, false},
		{fmt.Sprintf(discovered, `{"extensions": {"io.modelcontextprotocol/tasks": {}}}`), "", model.Optional, true},
	} {
		tool := readList(t, Config{Revisions: strings.Fields(test.revision)}, test.list).Services[0].Tools[0]
		if tool.Policy.Task != test.want || tool.Task != test.serves {
			t.Errorf("%s in %q: %s, served as a task: %v", test.list, test.revision, tool.Policy.Task, tool.Task)
		}
	}
}

// TestServerFaults checks which tools the runtime cannot offer, and where that is said.
func TestServerFaults(t *testing.T) {
	for members, want := range map[string]string{
		`"name": "a b", "inputSchema": {"type": "object"}`:                                          `1:2: the name "a b" is not 1 to 128 letters, digits, underscores, hyphens or dots`,
		`"name": "a", "inputSchema": {"anyOf": [{"type": "object"}]}`:                               `1:31: the inputSchema needs "type": "object"`,
		`"name": "a", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}`:         `1:67: the outputSchema needs "type": "object"`,
		`"name": "a", "inputSchema": {"type": "object"}, "outputSchema": null`:                      `1:67: the outputSchema needs "type": "object"`,
		`"name": "a", "inputSchema": {"type": "object", "maxProperties": 1e-9999999}`:               `1:67: this is no schema that values can be checked with: the number 1e-9999999 is too long or too large, or its exponent is not from -307 to 308`,
		`"name": "a", "inputSchema": {"type": "object", "properties": {"x": {"pattern": "(?!y)"}}}`: "1:82: this is no schema that values can be checked with: '(?!y)' is not valid regex: error parsing regexp: invalid or unsupported Perl syntax: `(?!`",
		`"name": "a", "inputSchema": {"type": "object", "$ref": "http://x/y"}`:                      `1:31: this is no schema that values can be checked with: failing loading "http://x/y": http://x/y is another document`,
		`"name": "a", "inputSchema": {"type": "object"}, "annotations": []`:                         `1:66: annotations is an array, not an object`,
		`"name": "a", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "yes"}`:    `1:83: readOnlyHint is a string, not a boolean`,
		`"name": "a", "inputSchema": {"type": "object"}, "execution": {"taskSupport": null}`:        ``,
	} {
		text := []byte("[{" + members + "}]")
		var problems diag.List
		Read(Config{Path: "/t", Package: "p", Service: "S", Side: model.ServerSide}, text, &problems)
		got := ""
		if err := problems.Err("/"); err != nil {
			got, _, _ = strings.Cut(err.Error(), "\n")
			got = strings.NewReplacer("t:", "", "the runtime cannot offer this tool: ", "").Replace(got)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		problems = diag.List{}
		if Read(Config{Package: "p", Service: "S", Side: model.ClientSide}, text, &problems) == nil {
			t.Errorf("%s has no client: %v", text, problems.Err(""))
		}
	}
}

// TestMergedTypes checks which types become one, and their names.
func TestMergedTypes(t *testing.T) {
	const item = `{"type": "object", "properties": {"id": {"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991}, "next": {"$ref": %q}}}`
	input := func(name, property, ref, more string) string {
		return fmt.Sprintf(`{"name": %q, "inputSchema": {"type": "object", "properties": {%q: {"type": "array", "items": `+item+`}%s}}}`, name, property, ref, more)
	}
	list := "[" + strings.Join([]string{
		input("a", "entries", "#/properties/entries/items", `, "state": {"enum": ["on", "off"]}`),
		input("b", "entries", "#/properties/entries/items", `, "state": {"enum": ["on"]}`),
		input("c", "nodes", "#/properties/nodes/items", `, "B_input": {"type": "object", "properties": {"x": {}}}`),
	}, ",") + "]"
	var got []string
	for _, d := range readList(t, Config{}, list).Types {
		text := d.Name
		for _, f := range d.Fields {
			text += fmt.Sprintf(" %s %s", f.Name, types.TypeString(f.Type, func(*types.Package) string { return "" }))
			if f.Doc != "" {
				text += " // " + f.Doc
			}
		}
		got = append(got, text)
	}
	const want = "AInput Entries []Entry State AInputState\n" +
		"Entry ID *int64 Next *Entry\n" +
		"AInputState\n" +
		"BInput Entries []Entry State BInputState\n" +
		"BInputState\n" +
		"CInput Nodes []Entry BInput *CInputBInput\n" +
		"CInputBInput X any"
	if got := strings.Join(got, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestSingular checks the names of items.
func TestSingular(t *testing.T) {
	for plural, want := range map[string]string{
		"entities": "entity", "nodes": "node", "boxes": "box", "branches": "branch", "addresses": "address", "status": "status", "statuses": "status",
		"address": "address", "news": "news", "data": "data", "ids": "ids", "URLs": "URL", "children": "children", "analysis": "analysis",
	} {
		if got := singular(plural); got != want {
			t.Errorf("one of %s is a %s, want %s", plural, got, want)
		}
	}
}
