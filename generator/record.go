package generator

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/output"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/record"
)

// RecordConfig names the server whose list of tools is recorded. Either URL or Command is set.
type RecordConfig struct {
	URL     string
	Header  http.Header // of the requests to URL
	Command []string    // a program and its arguments
	// Stderr gets the program's standard error. nil drops it.
	Stderr io.Writer
	// Revision is the revision to speak. Empty means 2025-11-25, or 2026-07-28 if the server does
	// not speak that.
	Revision string
}

// RecordTools asks a server for its list of tools. It returns the list as [Generate] reads it:
// indented JSON with the tools of all pages, and with the name and the capabilities of the server.
// The header is not part of it. It starts the command or makes requests to the URL, follows no
// redirects, and ends with the context.
func RecordTools(ctx context.Context, cfg RecordConfig) ([]byte, error) {
	if known := record.Revisions(); cfg.Revision != "" && !slices.Contains(known, cfg.Revision) {
		return nil, fmt.Errorf("a list of tools is recorded in revision %s, not in %q", strings.Join(known, " or "), cfg.Revision)
	}
	return record.Tools(ctx, record.Config(cfg))
}

// WriteTools writes a recorded list to a file if its content would change. It writes the whole file
// or nothing. It refuses to replace a file that holds anything but a list of tools.
func WriteTools(path string, list []byte) error {
	dir, name := filepath.Dir(path), filepath.Base(path)
	old, err := output.Read(dir, name)
	if err != nil {
		return err
	}
	if before, err := jsontree.Parse(old); len(old) > 0 && (err != nil || before.Get("tools") == nil) {
		return fmt.Errorf("%s holds no list of tools; remove it, or choose another --out", diag.Relative(".", path))
	}
	_, err = output.Files{name: list}.Write(dir)
	return err
}
