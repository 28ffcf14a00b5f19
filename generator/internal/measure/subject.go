//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// module is the module of mcptaskgen.
const module = "github.com/mcptaskgen/mcptaskgen"

// subject is the package that both tools read.
type subject struct {
	dir      string
	ours     []string // the command and its arguments
	stringer []string
	large    []string // ours on the large package
}

// prepareSubject builds both tools and copies the package into a new module, all under dir, so that
// the checkout stays unchanged. The module has the checkout's requirements because it links the
// runtime.
func prepareSubject(ctx context.Context, dir string) (subject, error) {
	bin := filepath.Join(dir, "bin")
	s := subject{
		dir:      filepath.Join(dir, "deploy"),
		ours:     []string{filepath.Join(bin, "mcptaskgen"), "--verbose"},
		stringer: []string{filepath.Join(bin, "stringer"), "-type=State"},
		large:    []string{filepath.Join(bin, "mcptaskgen"), "./large"},
	}
	root, err := runCommand(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		return s, err
	}
	if _, err := runCommand(ctx, root, "go", "build", "-o", bin+"/", "./cmd/mcptaskgen", "golang.org/x/tools/cmd/stringer"); err != nil {
		return s, err
	}
	if err := os.CopyFS(s.dir, os.DirFS(filepath.Join(root, "generator", "internal", "measure", "testdata", "deploy"))); err != nil {
		return s, err
	}
	if err := writeLarge(s.dir); err != nil {
		return s, err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return s, err
		}
		if err := os.WriteFile(filepath.Join(s.dir, name), text, 0o644); err != nil {
			return s, err
		}
	}
	_, err = runCommand(ctx, s.dir, "go", "mod", "edit", "-module=example.com/deploy",
		"-require="+module+"@v0.0.0", "-replace="+module+"="+root)
	return s, err
}

// runCommand runs a command and returns its output without the final newline.
func runCommand(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return strings.TrimSuffix(string(text), "\n"), nil
}
