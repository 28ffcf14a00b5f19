//go:build linux

// Package bench measures whole runs of mcptaskgen. It is small because the kernel counts the memory of the
// process that starts another to the peak of the other.
package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkGenerate runs the program on a package that declares a service and imports the Go SDK. The
// floor is stringer on the same package.
func BenchmarkGenerate(b *testing.B) {
	dir, bin := newSubject(b)
	ours, stringer := filepath.Join(bin, "mcptaskgen"), filepath.Join(bin, "stringer")
	for range 2 { // the output of each changes the go command's cache for the other
		runProcess(b, dir, ours)
		runProcess(b, dir, stringer, "-type=State")
	}
	var took, floor, afterLoading time.Duration
	var peak float64
	for b.Loop() {
		p := runProcess(b, dir, ours, "--verbose")
		took += p.wall
		peak = max(peak, p.peak)
		afterLoading += p.afterLoading(b)
		floor += runProcess(b, dir, stringer, "-type=State").wall
	}
	b.ReportMetric(took.Seconds()*1e9/float64(b.N), "ns/op")
	b.ReportMetric(floor.Seconds()/took.Seconds(), "of-floor")
	b.ReportMetric(afterLoading.Seconds()*1e3/float64(b.N), "ms-after-loading")
	b.ReportMetric(peak/1e6, "MB-peak")
}

// BenchmarkGenerateLarge runs the program on a package of 200 tools over 12 types.
func BenchmarkGenerateLarge(b *testing.B) {
	dir, bin := newSubject(b)
	large := filepath.Join(dir, "large")
	if err := os.Mkdir(large, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(large, "large.go"), largeSource(200, 12), 0o600); err != nil {
		b.Fatal(err)
	}
	ours := filepath.Join(bin, "mcptaskgen")
	runProcess(b, large, ours) // fill the caches
	for b.Loop() {
		runProcess(b, large, ours)
	}
	text, err := os.ReadFile(filepath.Join(large, "mcptask_gen.go"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(bytes.Count(text, []byte("\n"))), "lines")
}

// BenchmarkBreakingLarge compares a package of 200 tools over 12 types with a commit in which each type had a field less.
func BenchmarkBreakingLarge(b *testing.B) {
	dir, bin := newSubject(b)
	large := filepath.Join(dir, "large")
	if err := os.Mkdir(large, 0o755); err != nil {
		b.Fatal(err)
	}
	source := largeSource(200, 12)
	write := func(source []byte) {
		if err := os.WriteFile(filepath.Join(large, "large.go"), source, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	write(source)
	ours := filepath.Join(bin, "mcptaskgen")
	runProcess(b, large, ours)
	runProcess(b, dir, "git", "init", "-q")
	runProcess(b, dir, "git", "add", ".")
	runProcess(b, dir, "git", "-c", "user.name=b", "-c", "user.email=b@example.com", "commit", "-q", "-m", "old")
	write(bytes.ReplaceAll(source, []byte(" struct {\n"), []byte(" struct {\n\tAdded string `json:\"added,omitempty\"`\n")))
	steps := map[string]time.Duration{}
	for b.Loop() {
		p := runProcess(b, large, ours, "breaking", "--against", "git:HEAD", "--verbose")
		for _, step := range breakingStep.FindAllStringSubmatch(p.stderr, -1) {
			took, err := time.ParseDuration(step[2])
			if err != nil {
				b.Fatal(err)
			}
			steps[step[1]] += took
		}
	}
	for step, took := range steps {
		b.ReportMetric(took.Seconds()*1e3/float64(b.N), "ms-"+step)
	}
}

var breakingStep = regexp.MustCompile(`(?m)^mcptaskgen: (\w+) +(\S+)$`)

// newSubject builds both programs into bin and copies the package into a module of its own. The
// module has the checkout's requirements, because the package links the runtime.
func newSubject(b *testing.B) (dir, bin string) {
	b.Helper()
	const module = "github.com/mcptaskgen/mcptaskgen"
	dir, bin = filepath.Join(b.TempDir(), "deploy"), b.TempDir()
	root, err := filepath.Abs("../../..")
	if err != nil {
		b.Fatal(err)
	}
	runProcess(b, root, "go", "build", "-o", bin+"/", "./cmd/mcptaskgen", "golang.org/x/tools/cmd/stringer")
	if err := os.CopyFS(dir, os.DirFS("testdata/deploy")); err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	runProcess(b, dir, "go", "mod", "edit", "-module=example.com/deploy", "-require="+module+"@v0.0.0", "-replace="+module+"="+root)
	return dir, bin
}

// process has the measurements of one run of a program.
type process struct {
	wall   time.Duration
	peak   float64 // memory in bytes of the program or of the go command that it runs, whichever is larger
	stderr string
}

func runProcess(b *testing.B, dir, name string, args ...string) process {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), name, args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatalf("%s: %v\n%s", cmd, err, &stderr)
	}
	wall := time.Since(begin)
	return process{wall, float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) * 1024, stderr.String()}
}

var verboseStep = regexp.MustCompile(`(?m)^mcptaskgen: (generate|write) +(\S+)$`)

// afterLoading adds up the times that --verbose prints, except for the loading of packages.
func (p process) afterLoading(b *testing.B) (sum time.Duration) {
	b.Helper()
	steps := verboseStep.FindAllStringSubmatch(p.stderr, -1)
	if len(steps) != 2 {
		b.Fatalf("--verbose does not say how long each step took:\n%s", p.stderr)
	}
	for _, step := range steps {
		took, err := time.ParseDuration(step[2])
		if err != nil {
			b.Fatal(err)
		}
		sum += took
	}
	return sum
}

// largeSource declares tools over fewer types. Half of the tools may run as tasks.
func largeSource(tools, types int) []byte {
	var source bytes.Buffer
	source.WriteString("package large\n\nimport (\n\t\"context\"\n\t\"time\"\n\n\tmcptask \"github.com/mcptaskgen/mcptaskgen/runtime\"\n)\n\n" +
		"// Large has many tools.\n//\n//mcptask:service\ntype Large interface {\n")
	for i := range tools {
		task := ""
		if i%2 == 1 {
			task = "task *mcptask.Task, "
		}
		fmt.Fprintf(&source, "\t// Tool%d does the work on what it is given, and says how it went.\n"+
			"\tTool%[1]d(ctx context.Context, %[2]sin T%[3]d) (T%[4]d, error)\n", i, task, i%types, (i*7+3)%types)
	}
	source.WriteString("}\n")
	for i := range types {
		fmt.Fprintf(&source, `
// T%d is what the tools work on.
type T%[1]d struct {
	// Name is its name.
	Name string %[2]cjson:"name" jsonschema:"minLength=1,maxLength=100"%[2]c
	// Count is how many there are.
	Count int %[2]cjson:"count,omitempty" jsonschema:"minimum=0"%[2]c
	// Since is when it began.
	Since time.Time %[2]cjson:"since"%[2]c
	// Parts are its parts.
	Parts []Part%[1]d %[2]cjson:"parts,omitempty"%[2]c
}

// Part%[1]d is a part.
type Part%[1]d struct {
	ID     int64   %[2]cjson:"id"%[2]c
	Weight float64 %[2]cjson:"weight"%[2]c
}
`, i, '`')
	}
	return source.Bytes()
}
