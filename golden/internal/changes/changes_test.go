// Package changes meets fifty changes of a declaration with what knew the declaration before: the report of mcptaskgen
// breaking, a client, stored tasks and open questions.
package changes

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/generator"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

var update = flag.Bool("update", false, "write the table again")

// changes are edits of testdata/media.go, each as pairs of old and new text.
var changes = []struct {
	name  string
	edits []string
}{
	{"nothing", nil},

	{"a method renamed", []string{"Transcode(ctx", "Convert(ctx", "// Transcode converts", "// Convert converts"}},
	{"a method renamed, with name=", []string{"Transcode(ctx", "Convert(ctx", "// Transcode converts", "// Convert converts", "//mcptask:tool onlost=restart", "//mcptask:tool onlost=restart name=transcode"}},
	{"a method renamed, with was=", []string{"Transcode(ctx", "Convert(ctx", "// Transcode converts", "// Convert converts", "//mcptask:tool onlost=restart", "//mcptask:tool onlost=restart was=transcode"}},
	{"a prefix added", []string{"//mcptask:service", "//mcptask:service prefix=media_"}},
	{"a prefix added, with was=", []string{
		"//mcptask:service", "//mcptask:service prefix=media_", "//mcptask:tool onlost=restart", "//mcptask:tool onlost=restart was=transcode",
		"//mcptask:tool task=required", "//mcptask:tool was=publish task=required", "\n\tProbe(ctx context.Context, in ProbeInput)", "\n\t//\n\t//mcptask:tool was=probe\n\tProbe(ctx context.Context, in ProbeInput)",
	}},
	{"a tool removed", []string{"\t// Probe reads the data of a film at once.\n\tProbe(ctx context.Context, in ProbeInput) (ProbeReport, error)\n", ""}},
	{"a tool with stored tasks removed", []string{"\t// Transcode converts a film.\n\t//\n\t//mcptask:tool onlost=restart\n\tTranscode(ctx context.Context, task *mcptask.Task, in TranscodeInput) (TranscodeReport, error)\n", ""}},
	{"a service renamed", []string{"type Media interface", "type Films interface", "// Media works", "// Films works", "MediaTools", "FilmsTools"}},
	{"a tool moved to a service of its own", []string{
		"\t// Probe reads the data of a film at once.\n\tProbe(ctx context.Context, in ProbeInput) (ProbeReport, error)\n}",
		"}\n\n// Reader reads films.\n//\n//mcptask:service\ntype Reader interface {\n\t// Probe reads the data of a film at once.\n\tProbe(ctx context.Context, in ProbeInput) (ProbeReport, error)\n}",
		"return MediaTools(studio{at, reached})", "both := MediaTools(studio{at, reached})\n\tboth.Tools = append(both.Tools, ReaderTools(studio{at, reached}).Tools...)\n\treturn both",
	}},

	{"an argument added", []string{"\t// Tracks are", "\t// Title is for the menu.\n\tTitle string `json:\"title,omitempty\"`\n\t// Tracks are"}},
	{"a required argument added", []string{"\t// Tracks are", "\t// Title is for the menu.\n\tTitle string `json:\"title\"`\n\t// Tracks are"}},
	{"a required argument added, with onchange=run", []string{"\t// Tracks are", "\t// Title is for the menu.\n\tTitle string `json:\"title\"`\n\t// Tracks are", "//mcptask:tool onlost=restart", "//mcptask:tool onlost=restart onchange=run"}},
	{"an argument removed", []string{"\t// Tracks are the sound tracks to keep.\n\tTracks []string `json:\"tracks,omitempty\"`\n", ""}},
	{"an argument renamed", []string{`json:"rate,omitempty"`, `json:"bitrate,omitempty"`}},
	{"a number becomes text", []string{"Rate int `json:\"rate,omitempty\" jsonschema:\"minimum=1,maximum=40,default=8\"`", "Rate string `json:\"rate,omitempty\"`"}},
	{"a number becomes text, with onchange=run", []string{"Rate int `json:\"rate,omitempty\" jsonschema:\"minimum=1,maximum=40,default=8\"`", "Rate string `json:\"rate,omitempty\"`", "//mcptask:tool onlost=restart", "//mcptask:tool onlost=restart onchange=run"}},
	{"a whole number becomes any number", []string{"Rate int `", "Rate float64 `"}},
	{"a value removed from an enum", []string{"H264 Codec = \"h264\"", "HEVC Codec = \"hevc\""}},
	{"a value added to an enum", []string{"H264 Codec = \"h264\"", "H264 Codec = \"h264\"\n\tHEVC Codec = \"hevc\""}},
	{"a bound made tighter", []string{"maximum=40", "maximum=20"}},
	{"a bound made wider", []string{"maximum=40", "maximum=80"}},
	{"an argument becomes required", []string{`json:"label,omitempty"`, `json:"label"`}},
	{"an argument becomes optional", []string{"Codec Codec `json:\"codec\"`", "Codec Codec `json:\"codec,omitempty\"`"}},
	{"a default changed", []string{"default=8", "default=4"}},
	{"a pattern added", []string{"// Film is the name of the film.\n\tFilm string `json:\"film\"`", "// Film is the name of the film.\n\tFilm string `json:\"film\" jsonschema:\"pattern=^[a-z]{4}$\"`"}},
	{"a member of a member becomes required", []string{`json:"height,omitempty"`, `json:"height"`}},
	{"the elements of a list change", []string{"Tracks []string", "Tracks []int"}},

	{"a member added to the result", []string{"\t// Frames is how many pictures it has.", "\tSeconds int `json:\"seconds\"`\n\t// Frames is how many pictures it has."}},
	{"a member of the result removed", []string{"\t// Frames is how many pictures it has.\n\tFrames int `json:\"frames\"`\n}", "}", "State: Done, Frames: 24}", "State: Done}"}},
	{"a member of the result may be missing", []string{"pictures it has.\n\tFrames int `json:\"frames\"`", "pictures it has.\n\tFrames int `json:\"frames,omitempty\"`"}},
	{"a member of the result retyped", []string{"pictures it has.\n\tFrames int `json:\"frames\"`", "pictures it has.\n\tFrames string `json:\"frames\"`", "State: Done, Frames: 24}", "State: Done, Frames: \"24\"}"}},
	{"a value added to the enum of a result", []string{"\tPartial State = \"partial\"", "\tPartial State = \"partial\"\n\tSkipped State = \"skipped\""}},
	{"the result becomes text", []string{
		"Probe(ctx context.Context, in ProbeInput) (ProbeReport, error)", "Probe(ctx context.Context, in ProbeInput) (string, error)",
		"in ProbeInput) (ProbeReport, error) {", "in ProbeInput) (string, error) {",
		"return ProbeReport{}, fmt", "return \"\", fmt", "return ProbeReport{Frames: 24}, nil", "return \"24 frames\", nil",
	}},

	{"no task any more", []string{
		"//mcptask:tool onlost=restart\n", "//mcptask:tool\n", "Transcode(ctx context.Context, task *mcptask.Task, in", "Transcode(ctx context.Context, in",
		"Transcode(ctx context.Context, _ *mcptask.Task, in", "Transcode(ctx context.Context, in",
	}},
	{"always a task", []string{"//mcptask:tool onlost=restart\n", "//mcptask:tool onlost=restart task=required\n"}},
	{"no second run any more", []string{"//mcptask:tool onlost=restart\n", "//mcptask:tool\n"}},
	{"no fallback tools any more", []string{"//mcptask:service", "//mcptask:service fallback=none"}},
	{"a shorter time to live", []string{"//mcptask:tool onlost=restart\n", "//mcptask:tool onlost=restart ttl=50ms\n"}},
	{"a deadline", []string{"//mcptask:tool onlost=restart\n", "//mcptask:tool onlost=restart deadline=50ms\n"}},
	{"fewer attempts", []string{"//mcptask:tool onlost=restart\n", "//mcptask:tool onlost=restart attempts=1\n"}},

	{"a member added to a form", []string{"\t// Seats is", "\tRoom string `json:\"room,omitempty\"`\n\t// Seats is"}},
	{"a required member added to a form", []string{"\t// Seats is", "\tPaid bool `json:\"paid\"`\n\t// Seats is"}},
	{"a member of a form retyped", []string{"Agreed bool", "Agreed string", "Published: answer.Agreed}", "Published: answer.Agreed == \"yes\"}"}},
	{"a bound of a form made tighter", []string{"maximum=100", "maximum=50"}},
	{"the text of a form changed", []string{"Publish it?", "May it go out?"}},
	{"a form renamed", []string{"Approval", "Consent"}},
	{"a question removed", []string{
		"\tanswer, err := AskApproval(ctx, task, \"approve\", \"\")\n\tif err != nil {\n\t\treturn PublishReport{}, err\n\t}\n", "\tanswer := Approval{Agreed: true}\n",
		"//mcptask:input message=\"Publish it?\"", "",
	}},
	{"a question asked before the task", []string{
		"Publish(ctx context.Context, task *mcptask.Task, in PublishInput)", "Publish(ctx context.Context, task *mcptask.Task, in PublishInput, answer Approval)",
		"\tanswer, err := AskApproval(ctx, task, \"approve\", \"\")\n\tif err != nil {\n\t\treturn PublishReport{}, err\n\t}\n", "",
	}},
	{"a step renamed", []string{`"approve"`, `"consent"`}},

	{"an error removed", []string{"//mcptask:error code=no_film\n", "\n"}},
	{"the code of an error changed", []string{"code=no_film", "code=film_missing"}},
	{"a member of an error renamed", []string{"type NoFilm struct {\n\tFilm string `json:\"film\"`", "type NoFilm struct {\n\tFilm string `json:\"name\"`"}},

	{"a description changed", []string{"// Transcode converts a film.", "// Transcode converts a film to a codec."}},
}

func TestChanges(t *testing.T) {
	t.Parallel()
	dir := writeVersions(t)
	before := t.TempDir() // has the first version in the place of each
	for i := range changes {
		writeFiles(t, before, map[string]string{
			"go.mod": readFile(t, filepath.Join(dir, "go.mod")), fmt.Sprintf("v%d/mcptask_gen.go", i): readFile(t, filepath.Join(dir, "v0", "mcptask_gen.go")),
		})
	}
	report := filepath.Join(t.TempDir(), "report.json")
	test := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-vet=off", ".", "-report", report)
	test.Dir, test.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -trimpath")
	if out, err := test.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%.6000s", err, out)
	}
	var outcomes map[string]outcome
	if err := json.Unmarshal([]byte(readFile(t, report)), &outcomes); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString(heading)
	for i, c := range changes {
		fmt.Fprintf(&table, "%s\n", c.name)
		o := outcomes[fmt.Sprint("v", i)]
		for _, line := range []struct{ what, text string }{
			{"breaking", findBreaking(t, dir, before, i)}, {"client", strings.Join(o.Client, "; ")}, {"stored task", o.Stored},
			{"open question", o.Open}, {"given answer", o.Answered},
		} {
			if line.text != "" && line.text != "as before" {
				fmt.Fprintf(&table, "\t%s: %s\n", line.what, line.text)
			}
		}
	}
	for _, limit := range []string{fmt.Sprintf("had %gh", mcptask.DefaultTTL.Hours()), fmt.Sprint("had ", mcptask.DefaultAttempts)} {
		if !strings.Contains(table.String(), limit+"\n") {
			t.Errorf("no finding %s: the generator has another default than the runtime", limit)
		}
	}
	compare(t, "testdata/table.txt", table.String())
}

// heading begins the table.
const heading = `What each change of testdata/media/media.go means: the findings of mcptaskgen breaking, what a client of before meets, and
the end of a task of before that worked, of one whose question was open, and of one whose question was answered. Where a
line is missing, all is as before. TestChanges writes this file with -update.

`

// findBreaking returns the findings for a version beside the first one.
func findBreaking(t *testing.T, dir, before string, version int) string {
	t.Helper()
	output, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{fmt.Sprint("./v", version)}})
	if err != nil {
		t.Fatal(err)
	}
	findings, _, err := output.Breaking(t.Context(), generator.BreakingConfig{Against: before, Models: true})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, f := range findings {
		texts = append(texts, fmt.Sprintf("%s: %s", f.Rule, f.Message))
	}
	return strings.Join(texts, "; ")
}

// outcome is what the driver reports of a version.
type outcome struct {
	Client                 []string
	Stored, Open, Answered string
}

// writeVersions makes a module with a package for each version of the service, and the driver that meets them. It returns
// the directory.
func writeVersions(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	const path = "github.com/mcptaskgen/mcptaskgen"
	_, requires, _ := strings.Cut(readFile(t, filepath.Join(root, "go.mod")), "\n")
	requires = regexp.MustCompile(`(?ms)^tool (\(.*?^\)|[^\n]*)`).ReplaceAllString(requires, "")
	media := readFile(t, "testdata/media/media.go")
	imports, versions := "", ""
	files := map[string]string{
		"go.mod":         "module example.com/changed\n" + requires + fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %[1]s => %q\n", path, root),
		"go.sum":         readFile(t, filepath.Join(root, "go.sum")),
		"driver_test.go": readFile(t, "testdata/driver/driver_test.go"),
	}
	for i, c := range changes {
		source := media
		for pair := range slices.Chunk(c.edits, 2) {
			if !strings.Contains(source, pair[0]) {
				t.Fatalf("%s: the service has no %q", c.name, pair[0])
			}
			source = strings.ReplaceAll(source, pair[0], pair[1])
		}
		files[fmt.Sprintf("v%d/media.go", i)] = source
		imports += fmt.Sprintf("\tv%d \"example.com/changed/v%[1]d\"\n", i)
		versions += fmt.Sprintf("\t\"v%d\": v%[1]d.Tools,\n", i)
	}
	files["versions_test.go"] = "package changed\n\nimport (\n\tmcptask \"" + path + "/runtime\"\n" + imports + ")\n\nvar versions = map[string]func(string, func()) mcptask.Tools{\n" + versions + "}\n"
	dir := t.TempDir()
	writeFiles(t, dir, files)
	output, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{"./..."}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := output.Write(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(readFile(t, name), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", name, diff)
	}
}
