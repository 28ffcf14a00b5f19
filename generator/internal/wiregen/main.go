// Command wiregen generates the runtime's wire types and protocol constants from the data in
// schema/. Run it in the runtime's directory. It does not import the runtime, so it works even if
// all its output is deleted.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/output"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

func main() {
	check := flag.Bool("check", false, "write nothing; exit with 1 and name the files that are not up to date")
	flag.Parse()
	if err := run(".", *check); err != nil {
		fmt.Fprintln(os.Stderr, "wiregen:", err)
		os.Exit(1)
	}
}

// run brings the files under dir up to date, or checks that they are.
func run(dir string, check bool) error {
	var surfaces []*schema.Surface
	for _, revision := range schema.Revisions() {
		surface, err := schema.Load(revision)
		if err != nil {
			return err
		}
		surfaces = append(surfaces, surface)
	}
	files, err := renderFiles(surfaces)
	if err != nil {
		return err
	}
	if !check {
		_, err = files.Write(dir)
		return err
	}
	stale, err := files.Diff(dir)
	if err != nil {
		return err
	}
	if len(stale) > 0 {
		return fmt.Errorf("not up to date: %q; run go generate in the runtime's directory", stale)
	}
	return nil
}

// renderFiles returns all files by their path in the runtime's directory. The surfaces are in
// order, oldest first.
func renderFiles(surfaces []*schema.Surface) (output.Files, error) {
	files := output.Files{}
	all, err := collectFacts(surfaces)
	if err != nil {
		return nil, err
	}
	if files["wire_gen.go"], err = renderFacts(all, surfaces); err != nil {
		return nil, err
	}
	if files["internal/spec/wire_gen.go"], err = renderSpec(all); err != nil {
		return nil, err
	}
	for _, surface := range surfaces {
		wire, err := renderWire(surface, all)
		if err != nil {
			return nil, fmt.Errorf("revision %s: %w", surface.Revision, err)
		}
		files[wireDirectory(surface)+"/wire_gen.go"] = wire
	}
	return files, nil
}
