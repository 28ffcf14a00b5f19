package generator

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// FuzzDirectives checks any text in the directives of a service, a tool and an input.
func FuzzDirectives(f *testing.F) {
	for _, seed := range [][3]string{
		{"fallback=tools prefix=a_ wait=10s", `title="A tool" grace=200ms immediate="x\ty"`, `message="Ship it?"`},
		{"task=required ttl=24h\n//mcptask:service readonly", "name=x readonly=false destructive idempotent openworld", "message=`a b`"},
		{"onlost=restart deadline=1h", `title="\x00\u2028\"\\" immediate="` + strings.Repeat("long ", 50) + `"`, `message="*/ // \n"`},
		{"onlost=restart attempts=3", "attempts=1000", ""},
		{"concurrency=4", "concurrency=99999999999999999999 task=forbidden", ""},
		{"onleave=keep", "onleave=stop", ""},
		{"fallback=none prefix=a_", "onleave=keep name=a_x", ""},
		{"attempts=-1", "onlost=restart attempts=99999999999999999999", ""},
		{"ttl=1ns poll=9999999h", "ttl=-1h name=" + strings.Repeat("n", 128), "message"},
		{"wait=1.5h grace=1µs\r", "schema=none.json outputschema=../x.json", "mesage=\"\x1b[31m\""},
		{"fallback=tools", "task=forbidden", "message=a b c\n//\n//mcptask:input"},
		{"onlost=fail attempts=7", "workflow=Run concurrency=2", `message="Go?"`},
		{"", `workflow="# [In]: https://e.org */ 'a' \"b\" ` + strings.Repeat("long ", 50) + `" attempts=2 onlost=restart`, `message="Go?"`},
		{"workflow=a", `workflow="\x00\xff\u2028" onlost=fail`, "workflow=b"},
		{"", "workflow=" + strings.Repeat("n", 1001), ""},
		{"", "name=task_status title='x", "\n\n// mcptask:tool\n/*mcptask:tool*/"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	w := newWorkshop(f)
	f.Fuzz(func(t *testing.T, service, tool, input string) {
		w.checkDeclaration(t, fmt.Appendf(nil, `package p

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// S does.
//
//mcptask:service %s
type S interface {
	// Run runs.
	//
	//mcptask:tool %s
	Run(ctx context.Context, task *mcptask.Task, in In, ok Ask) (Out, error)
	Ping(ctx context.Context) error
}

//mcptask:input %s
type Ask struct{ Yes bool }

type In struct {
	A string
}

type Out struct{ B []int }
`, service, tool, input))
	})
}

// FuzzDeclarations checks any Go file.
func FuzzDeclarations(f *testing.F) {
	sources, err := filepath.Glob("../golden/*/*.go")
	if err != nil || len(sources) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range sources {
		if source, err := os.ReadFile(path); err == nil && bytes.Contains(source, []byte("\n//mcptask:")) {
			f.Add(source)
		}
	}
	archives, err := filepath.Glob("../golden/errors/*.txtar")
	if err != nil || len(archives) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if filepath.Ext(file.Name) == ".go" {
				f.Add(file.Data)
			}
		}
	}
	w := newWorkshop(f)
	f.Fuzz(func(t *testing.T, source []byte) { w.checkDeclaration(t, source) })
}
