// Command wiregen writes the runtime's own wire types, constants of the
// protocol among them, from the data in schema/. It runs in the runtime's
// folder and imports nothing of it, so it works with all its output deleted.
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
	files, err := render(surfaces)
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
		return fmt.Errorf("not up to date: %q; run go generate in the runtime's folder", stale)
	}
	return nil
}

// render returns all files, by their path in the runtime's folder. The
// surfaces are in order, the oldest first.
func render(surfaces []*schema.Surface) (output.Files, error) {
	files := output.Files{}
	all, err := collect(surfaces)
	if err != nil {
		return nil, err
	}
	if files["wire_gen.go"], err = renderFacts(all, surfaces); err != nil {
		return nil, err
	}
	for _, surface := range surfaces {
		wire, err := renderWire(surface, all)
		if err != nil {
			return nil, fmt.Errorf("revision %s: %w", surface.Revision, err)
		}
		name := wirePackage(surface.Revision)
		files["internal/dialect/"+name+"/wire_gen.go"] = wire
	}
	return files, nil
}
