package golden_test

import (
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/golden/internal/diffs"
)

// edits are changes of the pipeline's declaration, whose effect on the generated file and on the reference is pinned.
var edits = []struct {
	name, from, to string
}{
	{"rename-field", "\tBranch string `json:\"branch,omitempty\"`", "\tRef string `json:\"ref,omitempty\"`"},
	{"rename-go-field", "\tVersion  string    `json:\"version\"`", "\tRelease  string    `json:\"version\"`"},
	{"add-field", "\tLine    int ", "\tColumn  int    `json:\"column\"`\n\tLine    int "},
	{"change-tool-doc", "LintFile checks one file and returns what it found.", "LintFile checks one file and waits for it."},
	{"change-field-doc", "Branch is the branch to build", "Branch is what to build"},
	{"change-service-doc", "CI runs continuous-integration jobs.", "CI runs jobs."},
	{"change-policy", "poll=2s", "poll=5s"},
	{"make-workflow", "onlost=restart", "workflow=RunPipeline"},
	{"change-tag", "jsonschema:\"minLength=1\"", "jsonschema:\"minLength=2\""},
	{"remove-omitempty", "`json:\"summary,omitempty\"`", "`json:\"summary\"`"},
	{"add-tool", "\t// LintFile checks", "\t// Rollback takes a deployment back.\n\tRollback(ctx context.Context, in LintInput) error\n\n\t// LintFile checks"},
	{"add-tool-last", "in LintInput) (LintReport, error)\n", "in LintInput) (LintReport, error)\n\n\t// Ping answers.\n\tPing(ctx context.Context) (string, error)\n"},
	{"rename-parameter", "LintFile(ctx context.Context, in LintInput)", "LintFile(ctx context.Context, input LintInput)"},
	{"move-type", "// Step is one step of a pipeline.", "// Extra is not used.\ntype Extra struct{}\n\n// Step is one step of a pipeline."},
	{"rename-type", "LintReport", "Findings"},
	{"add-input-field", "\tVersion string `json:\"version,omitempty\"`", "\tVersion string `json:\"version,omitempty\"`\n\t// Canary says whether to ship to one machine first.\n\tCanary bool `json:\"canary,omitempty\"`"},
	{"add-enum", "// the problem, in a sentence\n}", "// the problem, in a sentence\n\tLevel   Level  `json:\"level\"`\n}\n\n" +
		"// Level is how bad a finding is.\n//\n//mcptask:enum\ntype Level string\n\nconst (\n\tWarning Level = \"warning\"\n\tFailure Level = \"failure\"\n)"},
	{"add-enum/add-enum-constant", "\tFailure Level = ", "\tNotice  Level = \"notice\"\n\tFailure Level = "},
	{"add-service", "// Approval is what", "// Audit says what happened.\n//\n//mcptask:service prefix=audit_\ntype Audit interface {\n" +
		"\t// ListDeployments lists what was shipped.\n\tListDeployments(ctx context.Context) (Deployments, error)\n}\n\n" +
		"// Deployments are what was shipped.\ntype Deployments struct {\n\tDeployed []DeployReport `json:\"deployed\"`\n}\n\n// Approval is what"},
	{"reuse-type", "\t// LintFile checks", "\t// Rollback takes a deployment back.\n\tRollback(ctx context.Context, in DeployInput) (DeployReport, error)\n\n\t// LintFile checks"},
	{"remove-tool", "\n\n\t// LintFile checks one file and returns what it found.\n\tLintFile(ctx context.Context, in LintInput) (LintReport, error)\n", "\n"},
}

// applyEdit makes the edit with that name. One named BASE/NAME begins with the result of BASE.
func applyEdit(t *testing.T, declaration, name string) string {
	t.Helper()
	if base := path.Dir(name); base != "." {
		declaration = applyEdit(t, declaration, base)
	}
	for _, edit := range edits {
		if edit.name == name {
			if !strings.Contains(declaration, edit.from) {
				t.Errorf("%s: the declaration does not say %q", name, edit.from)
			}
			return strings.ReplaceAll(declaration, edit.from, edit.to)
		}
	}
	t.Fatalf("there is no edit %s", name)
	return ""
}

// TestDiffs edits the declaration of the pipeline. A reviewer of the generated file reads only the changes: the unified
// diff after each edit is the one in diffs. An edit without a diff there changes nothing.
func TestDiffs(t *testing.T) {
	declaration := readFile(t, "pipeline/pipeline.go")
	root := t.TempDir()
	writeStub(t, root)
	// The files come from one run, since each run lists packages with the go command.
	dir := filepath.Join(root, "edited")
	writeModule(t, dir, modulePath+"/golden")
	writeFile(t, filepath.Join(dir, "unedited", "pipeline.go"), declaration)
	for _, edit := range edits {
		writeFile(t, filepath.Join(dir, edit.name, "pipeline.go"), applyEdit(t, declaration, edit.name))
	}
	out, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{"./..."}})
	if err != nil {
		t.Fatal(err)
	}
	set := diffs.New(t, "diffs", *update)
	for _, edit := range edits {
		t.Run(edit.name, func(t *testing.T) {
			base := path.Dir(edit.name)
			if base == "." {
				base = "unedited"
			}
			before, after := string(out.Files[base+"/"+generator.OutputName]), string(out.Files[edit.name+"/"+generator.OutputName])
			diffs.CheckLayout(t, edit.name, after)
			set.Check(t, path.Base(edit.name), generator.OutputName, before, after)
		})
	}
}
