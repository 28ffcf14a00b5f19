package generator

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/output"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/reference"
)

// Docs reads the packages as [Generate] does and returns the reference of their tools as Markdown.
// Config.Output names the generated file, as for Generate. Docs is safe for concurrent use.
func Docs(ctx context.Context, cfg Config) (string, error) {
	in, err := readDeclarations(ctx, cfg)
	if err != nil {
		return "", err
	}
	if len(in.models) == 0 {
		return "", fmt.Errorf("no //mcptask:service in %s; put the directive into the doc comment of an interface", strings.Join(cfg.Patterns, " "))
	}
	defer cfg.startStep("render")()
	return reference.Write(in.models)
}

// WriteDocs writes a reference to a file if its content would change. It writes the whole file or
// nothing. It refuses to replace a file that mcptaskgen docs did not write.
func WriteDocs(path, text string) error {
	dir, name := filepath.Dir(path), filepath.Base(path)
	old, err := output.Read(dir, name)
	if err != nil {
		return err
	}
	if old != nil && !strings.HasPrefix(string(old), reference.Header+"\n") {
		return fmt.Errorf("%s was not written by mcptaskgen docs; remove it, or choose another --out", diag.Relative(".", path))
	}
	_, err = output.Files{name: []byte(text)}.Write(dir)
	return err
}
