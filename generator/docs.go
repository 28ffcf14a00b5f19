package generator

import (
	"context"
	"path/filepath"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/output"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/reference"
)

// Docs reads the packages as [Generate] does and returns the reference of their tools as Markdown. Of
// cfg.Flags it uses only Tags. Docs is safe for concurrent use.
func Docs(ctx context.Context, cfg Config) (string, error) {
	_, models, err := GenerateDeclared(ctx, cfg)
	if err != nil {
		return "", err
	}
	if len(models) == 0 {
		return "", newNothingError(cfg.Patterns, nil)
	}
	return reference.Write(models)
}

// WriteDocs writes a reference to a file if its content would change. It writes the whole file or
// nothing. It refuses to replace a file that mcptaskgen docs did not write.
func WriteDocs(path, text string) error {
	dir, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	path = diag.Absolute(dir, path)
	if err := checkReference(dir, path); err != nil {
		return err
	}
	_, err = output.Files{filepath.Base(path): []byte(text)}.Write(filepath.Dir(path))
	return err
}
