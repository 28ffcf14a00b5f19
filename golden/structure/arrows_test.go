package structure_test

import (
	"slices"
	"strings"
	"testing"
)

// arrow lists the packages that those of a directory may import.
type arrow struct {
	// from is a package of this module. With "/..." it means the package and all below it that
	// have no arrow of their own.
	from string
	// imports are packages of this module, or other modules. "/..." means all below as well. The
	// standard library and packages of the same arrow are always allowed.
	imports []string
	// tests are packages that their tests may import as well.
	tests []string
}

// arrows is the structure of the module: the command uses the generator, the generator the schemas
// and templates, and generated code the runtime. In the runtime, the glue to the two SDKs uses the
// gateway, the gateway the protocol, the protocol package taskserver, that package taskstore, that package mcptask,
// and that only its leaves.
//
// The runtime never imports the generator, nor the libraries that derive schemas or write code. The
// generator never imports the runtime, not even in tests.
var arrows = []arrow{
	// The command.
	{"cmd/internal/scripts", []string{"github.com/rogpeppe/go-internal/testscript"}, nil},
	{"cmd/internal/target", []string{"github.com/spf13/pflag"}, nil},
	{"cmd/internal/build", nil, nil},
	{"cmd/mcptaskgen", []string{"cmd/internal/build", "cmd/internal/target", "generator/...", "schema", "github.com/spf13/pflag"}, slices.Concat(testLibraries, []string{
		"cmd/internal/scripts",
	})},
	{"cmd/mcptask", []string{
		"cmd/internal/build", "cmd/internal/target", "internal/indent", "internal/terminal", "runtime", "runtime/gosdk", "schema", "github.com/spf13/pflag", "golang.org/x/term",
	}, slices.Concat(testLibraries, []string{
		"cmd/internal/scripts", "golden/ptytest", "runtime/mcptasktest/bubble", "runtime/taskserver", "schema/wirecheck", "github.com/modelcontextprotocol/go-sdk/mcp",
	})},
	{"cmd/...", []string{"generator/...", "schema", "github.com/spf13/pflag", "golang.org/x/tools/..."}, testLibraries},

	// Packages that the commands, the generator and the runtime share. They import nothing.
	{"internal/indent", nil, []string{"pgregory.net/rapid"}},
	{"internal/form", nil, nil},
	{"internal/nearest", nil, nil},

	// The screen of a person, for mcptask and for an example.
	{"internal/terminal", []string{
		"internal/form", "internal/indent", "internal/nearest", "runtime", "golang.org/x/term", "golang.org/x/text/width", "golang.org/x/sys/...",
	}, []string{"golden/ptytest"}},

	// The generator.
	{"generator/...", []string{
		"internal/indent", "internal/nearest", "schema", "templates", "github.com/dave/jennifer/...", "github.com/invopop/jsonschema", "github.com/santhosh-tekuri/jsonschema/v6",
		"github.com/pb33f/ordered-map/v2", "github.com/spf13/pflag", "golang.org/x/text/...", "golang.org/x/tools/...",
		"github.com/rogpeppe/go-internal/...",
	}, testLibraries},
	{"templates", nil, nil},
	{"schema", nil, slices.Concat(testLibraries, []string{"schema/rules", "github.com/santhosh-tekuri/jsonschema/v6"})},
	{"schema/rules/...", []string{"schema"}, testLibraries},
	{"schema/wirecheck", []string{"schema", "github.com/santhosh-tekuri/jsonschema/v6"}, testLibraries},

	// The runtime: package mcptask and its leaves, which know nothing of tasks.
	{"runtime", leaves, runtimeTests},
	{"runtime/taskstore", []string{"runtime", "runtime/internal/account", "runtime/internal/feed", "runtime/internal/index", "runtime/internal/steady"}, slices.Concat(runtimeTests, []string{"runtime/storetest"})},
	{"runtime/taskserver", slices.Concat(leaves, engineLeaves, []string{"runtime", "runtime/taskstore"}), slices.Concat(runtimeTests, []string{"runtime/storetest", "runtime/executortest", "runtime/internal/memengine"})},
	{"runtime/internal/account", nil, nil},
	{"runtime/internal/cause", nil, nil},
	{"runtime/internal/spec", nil, nil},
	{"runtime/internal/value", []string{"runtime/internal/text", "runtime/internal/validate"}, nil},
	{"runtime/internal/guard", nil, nil},
	{"runtime/internal/origin", nil, nil},
	{"runtime/internal/hook", []string{"runtime/internal/guard"}, nil},
	{"runtime/internal/text", nil, nil},
	{"runtime/internal/tuning", nil, nil},
	{"runtime/internal/index", nil, runtimeTests},
	{"runtime/internal/feed", nil, runtimeTests},
	{"runtime/internal/steady", nil, nil},
	{"runtime/internal/pace", []string{"runtime/internal/guard"}, runtimeTests},
	{"runtime/internal/limit", []string{"runtime/internal/guard", "runtime/internal/text", "golang.org/x/time/rate"}, runtimeTests},
	{"runtime/internal/pool", []string{"runtime/internal/guard"}, runtimeTests},
	{"runtime/internal/validate", []string{"runtime/internal/text", "github.com/santhosh-tekuri/jsonschema/v6"}, nil},

	// The way of a request, from the SDK inwards.
	{"runtime/gosdk", []string{
		"runtime", "runtime/taskserver", "runtime/taskstore", "runtime/internal/spec", "runtime/gateway", "runtime/internal/protocol", "runtime/internal/protocol/unofficial", "runtime/internal/wire", "internal/form", "internal/nearest", "runtime/internal/guard", "runtime/internal/hook",
		"runtime/internal/text", "runtime/internal/validate",
		"github.com/modelcontextprotocol/go-sdk/...", "github.com/google/jsonschema-go/...",
	}, runtimeTests},
	{"runtime/gosdk/internal/...", []string{"runtime/..."}, slices.Concat(runtimeTests, []string{"github.com/modelcontextprotocol/go-sdk/..."})},
	{"runtime/oteltask", []string{"runtime", "runtime/taskserver", "runtime/taskstore", "runtime/internal/guard", "runtime/internal/text", "go.opentelemetry.io/otel/..."}, slices.Concat(runtimeTests, []string{
		"go.opentelemetry.io/otel/...", "github.com/modelcontextprotocol/go-sdk/mcp",
	})},
	{"runtime/console", []string{"internal/indent", "runtime", "runtime/taskserver", "runtime/taskstore", "internal/form", "runtime/internal/spec", "runtime/internal/guard", "runtime/internal/limit", "runtime/internal/text"}, slices.Concat(runtimeTests, []string{"github.com/chromedp/..."})},
	{"runtime/mcpgo", []string{"runtime", "runtime/taskserver", "runtime/taskstore", "runtime/gateway", "runtime/internal/guard", "github.com/mark3labs/mcp-go/..."}, runtimeTests},
	{"runtime/gateway/...", []string{
		"runtime", "runtime/taskserver", "runtime/taskstore", "runtime/internal/spec", "runtime/internal/protocol", "runtime/internal/protocol/unofficial", "runtime/internal/fallback", "runtime/internal/wire", "runtime/internal/guard",
		"runtime/internal/limit", "runtime/internal/origin", "runtime/internal/text", "runtime/internal/validate",
	},
		slices.Concat(runtimeTests, []string{"runtime/storetest", "github.com/modelcontextprotocol/go-sdk/jsonrpc"})},
	{"runtime/internal/fallback", []string{"runtime", "runtime/taskserver", "runtime/taskstore", "runtime/internal/protocol", "runtime/internal/wire", "runtime/internal/guard", "runtime/internal/text"},
		slices.Concat(runtimeTests, []string{"github.com/santhosh-tekuri/jsonschema/v6"})},
	{"runtime/internal/protocol/...", []string{"runtime", "runtime/taskserver", "runtime/taskstore", "runtime/internal/spec", "runtime/internal/wire", "runtime/internal/text"}, runtimeTests},
	{"runtime/internal/protocol/unofficial/...", []string{"runtime", "runtime/taskserver", "runtime/taskstore", "runtime/internal/protocol"}, runtimeTests},
	{"runtime/gateway/internal/edgetest", nil, wireTests},
	{"runtime/gateway/internal/pushtest", nil, wireTests},
	{"runtime/gateway/internal/hostiletest", nil, wireTests},
	{"runtime/internal/protocol/officialtest", nil, wireTests},
	{"runtime/internal/protocol/unofficial/unofficialtest", nil, wireTests},
	{"runtime/internal/wire/...", []string{"runtime", "runtime/taskserver", "runtime/taskstore", "runtime/internal/text"}, runtimeTests},

	// The stores in databases.
	{"runtime/internal/durable", []string{"runtime", "runtime/taskstore", "runtime/internal/guard"}, runtimeTests},
	{"runtime/sqlite", []string{"runtime", "runtime/taskstore", "runtime/internal/durable", "runtime/internal/feed", "runtime/internal/guard", "runtime/internal/steady", "github.com/gofrs/flock", "modernc.org/sqlite/..."},
		slices.Concat(runtimeTests, []string{"runtime/storetest", "runtime/internal/durable/durabletest"})},
	{"runtime/postgres", []string{"runtime", "runtime/taskstore", "runtime/internal/durable", "runtime/internal/feed", "runtime/internal/guard", "github.com/jackc/pgx/v5/..."},
		slices.Concat(runtimeTests, []string{"runtime/storetest", "runtime/internal/durable/durabletest", "runtime/internal/pgtest"})},

	// For tests: users' own, and the runtime's.
	{"runtime/mcptasktest", []string{"runtime", "runtime/taskserver", "runtime/taskstore", "runtime/gosdk", "runtime/internal/guard", "runtime/internal/origin", "runtime/internal/text", "runtime/internal/tuning", "github.com/modelcontextprotocol/go-sdk/mcp"}, runtimeTests},
	{"runtime/mcptasktest/bubble", nil, nil},
	{"runtime/storetest", []string{"runtime", "runtime/taskstore", "github.com/google/go-cmp/...", "pgregory.net/rapid"}, runtimeTests},
	{"runtime/executortest", []string{"runtime", "runtime/taskserver", "runtime/taskstore", "runtime/internal/guard", "runtime/internal/tuning"}, slices.Concat(runtimeTests, []string{"runtime/internal/memengine"})},
	{"runtime/internal/memengine", []string{"runtime", "runtime/taskserver", "runtime/taskstore", "runtime/internal/guard"}, nil},
	{"runtime/internal/chaos", nil, slices.Concat(runtimeTests, []string{
		"runtime/internal/tuning", "runtime/internal/pgtest", "runtime/sqlite", "runtime/postgres", "github.com/jackc/pgx/v5/...", "github.com/modelcontextprotocol/go-sdk/...",
	})},
	{"runtime/internal/durable/durabletest", []string{"runtime", "runtime/taskserver", "runtime/taskstore", "runtime/console"}, nil},
	{"runtime/internal/leak", nil, nil},
	{"runtime/internal/pgtest", nil, nil},
	{"runtime/internal/memnet", nil, runtimeTests},
	{"runtime/internal/wiretest", slices.Concat(runtimeTests, []string{"github.com/modelcontextprotocol/go-sdk/..."}), runtimeTests},
	{"runtime/internal/passthrough", []string{"runtime", "runtime/internal/guard"}, nil},

	// For tests of the documents, of the code and of a person's screen, in this module and in those below it.
	{"golden/pages", nil, nil},
	{"golden/structure", []string{"golang.org/x/tools/go/packages"}, nil},
	{"golden/ptytest", []string{"golang.org/x/sys/unix"}, nil},

	// Generated code, and whole programs that may use any library.
	{"golden/...", []string{"runtime/...", "schema/...", anyLibrary}, []string{"generator/...", "golden/pages"}},
	{"examples/...", []string{"internal/terminal", "runtime/...", "golden/...", "schema/...", anyLibrary}, []string{"generator/..."}},
}

// anyLibrary means all packages of other modules.
const anyLibrary = "*"

// leaves are the packages that package mcptask uses.
var leaves = []string{
	"runtime/internal/cause", "runtime/internal/guard", "runtime/internal/pace", "runtime/internal/spec", "runtime/internal/text", "runtime/internal/validate", "runtime/internal/value",
}

// engineLeaves are the packages that the engine uses beside them.
var engineLeaves = []string{
	"runtime/internal/account", "runtime/internal/hook", "runtime/internal/limit", "runtime/internal/pool", "runtime/internal/steady", "runtime/internal/tuning",
}

// testLibraries are libraries for tests.
var testLibraries = []string{"github.com/google/go-cmp/...", "golang.org/x/tools/...", "github.com/rogpeppe/go-internal/..."}

// runtimeTests are the packages that tests of the runtime may import, its own kits and the numbered
// rules among them. They do not import the generator.
var runtimeTests = []string{
	"golden/...", "schema/rules", "schema/wirecheck", "runtime", "runtime/taskserver", "runtime/taskstore", "runtime/internal/cause", "runtime/internal/spec", "runtime/gateway", "runtime/gosdk/...", "runtime/mcptasktest/...", "runtime/internal/leak",
	"runtime/internal/memnet", "runtime/internal/passthrough", "runtime/internal/wiretest", "github.com/google/go-cmp/...", "github.com/santhosh-tekuri/jsonschema/v6", "pgregory.net/rapid",
}

// wireTests are the packages that tests of the wire may import. These tests see the gateway and the
// protocol from the outside, through gosdk.
var wireTests = slices.Concat(runtimeTests, []string{"github.com/modelcontextprotocol/go-sdk/..."})

// covers reports whether a pattern means the package at path.
func covers(pattern, path string) bool {
	if pattern == anyLibrary {
		first, _, _ := strings.Cut(path, "/")
		return strings.Contains(first, ".")
	}
	directory, below := strings.CutSuffix(pattern, "/...")
	return path == directory || below && strings.HasPrefix(path, directory+"/")
}

// findArrow returns the arrow of a package: the longest that covers it.
func findArrow(path string) (found arrow) {
	for _, a := range arrows {
		if covers(a.from, path) && len(a.from) > len(found.from) {
			found = a
		}
	}
	return found
}

// TestArrows checks that each package imports only the packages that its arrow allows.
func TestArrows(t *testing.T) {
	listed, checked := listPackages(t), 0
	for path, p := range listed {
		path, ours := strings.CutPrefix(path, module)
		if !ours {
			continue
		}
		a := findArrow(path)
		if a.from == "" {
			t.Errorf("%s has no arrow: add one to the table in arrows_test.go", path)
			continue
		}
		checked++
		check := func(imports []string, allowed []string, where string) {
			for _, imported := range imports {
				short := strings.TrimPrefix(imported, module)
				isCovered := slices.ContainsFunc(allowed, func(pattern string) bool { return covers(pattern, short) })
				isStandard := !covers(anyLibrary, imported)
				if !isStandard && !covers(a.from, short) && !isCovered {
					t.Errorf("%s imports %s%s, which its arrow %s in arrows_test.go does not allow", path, short, where, a.from)
				}
			}
		}
		check(p.Imports, a.imports, "")
		check(slices.Concat(p.TestImports, p.XTestImports), slices.Concat(a.imports, a.tests), " in a test")
	}
	if checked < 50 {
		t.Errorf("only %d packages were listed", checked)
	}
}

// TestLinksLittle checks that a program that imports package mcptask links the leaves and few
// libraries: no HTTP, no SDK, no driver and no generator.
func TestLinksLittle(t *testing.T) {
	allowed := []string{
		"runtime", "github.com/santhosh-tekuri/jsonschema/v6/...", "golang.org/x/text/...",
	}
	allowed = append(allowed, leaves...)
	// Packages of the standard library that a program has only if it imports them for itself.
	refused := []string{"net", "net/http/...", "net/rpc/...", "database/sql/...", "os/exec", "os/user", "testing/...", "plugin", "html/template"}
	listed := listPackages(t)
	linked := findLinked(listed, module+"runtime")
	if len(linked) < 50 {
		t.Fatalf("go list tells too little: %v", linked)
	}
	for path := range linked {
		short := strings.TrimPrefix(path, module)
		means := func(pattern string) bool { return covers(pattern, short) }
		if listed[path].Standard && slices.ContainsFunc(refused, means) || !listed[path].Standard && !slices.ContainsFunc(allowed, means) {
			t.Errorf("package mcptask links %s", short)
		}
	}
}

// TestServerLinksLittle checks that a server on the SDK links only the packages of the SDK and of
// package mcptask beside the adapter's own. No package of the standard library that it adds is one
// that makes programs large.
func TestServerLinksLittle(t *testing.T) {
	heavy := []string{"text/template/...", "html/template", "net/http/pprof", "expvar", "testing/...", "go/...", "database/sql/...", "plugin"}
	listed := listPackages(t)
	expected := findLinked(listed, module+"runtime", "github.com/modelcontextprotocol/go-sdk/mcp")
	for path := range findLinked(listed, module+"runtime/gosdk") {
		if expected[path] || strings.HasPrefix(path, module+"runtime/") || path == module+"internal/form" || path == module+"internal/nearest" {
			continue
		}
		if !listed[path].Standard || slices.ContainsFunc(heavy, func(pattern string) bool { return covers(pattern, path) }) {
			t.Errorf("a server on the SDK links %s", path)
		}
	}
}

// TestLinksNoDriver checks that a program links the driver of a database only if it imports the
// store that uses it.
func TestLinksNoDriver(t *testing.T) {
	drivers := map[string]string{"runtime/sqlite": "modernc.org/...", "runtime/postgres": "github.com/jackc/..."}
	links := func(driver string, packages ...string) bool {
		for path := range findLinked(listPackages(t), packages...) {
			if covers(driver, path) {
				return true
			}
		}
		return false
	}
	for store, driver := range drivers {
		if links(driver, module+"runtime/gosdk", module+"runtime/mcpgo", module+"runtime/mcptasktest", module+"runtime/storetest") {
			t.Errorf("a server in memory links %s", driver)
		}
		for other := range drivers {
			if links(driver, module+other) != (other == store) {
				t.Errorf("%s links %s: %v", other, driver, other != store)
			}
		}
	}
}

// TestCommandsLinkLittle checks that the command that generates links nothing of the runtime, and that the command for a person
// links the client, with no driver, no adapter of another SDK and no generator.
func TestCommandsLinkLittle(t *testing.T) {
	listed := listPackages(t)
	for command, refused := range map[string][]string{
		"cmd/mcptaskgen": {"runtime/...", "internal/terminal", "github.com/modelcontextprotocol/..."},
		"cmd/mcptaskvet": {"runtime/...", "internal/terminal", "github.com/modelcontextprotocol/..."},
		"cmd/mcptask": {
			"generator/...", "runtime/console", "runtime/mcpgo", "runtime/oteltask", "runtime/sqlite", "runtime/postgres", "runtime/internal/durable", "runtime/mcptasktest/...",
			"modernc.org/...", "github.com/jackc/...", "go.opentelemetry.io/...", "github.com/mark3labs/...", "github.com/dave/...", "github.com/invopop/...", "golang.org/x/tools/...",
		},
	} {
		linked := findLinked(listed, module+command)
		if len(linked) < 50 {
			t.Fatalf("go list tells too little of %s: %v", command, linked)
		}
		for path := range linked {
			short := strings.TrimPrefix(path, module)
			if !listed[path].Standard && slices.ContainsFunc(refused, func(pattern string) bool { return covers(pattern, short) }) {
				t.Errorf("%s links %s", command, short)
			}
		}
	}
}
