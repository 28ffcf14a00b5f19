package commandline

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
)

// generateOwn generates packages, each as its lines for go generate say, or as the flags do where it
// has none.
func (f *Flags) generateOwn(ctx context.Context, patterns []string) (generator.Output, error) {
	cfg := f.Config
	cfg.Patterns = patterns
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return generator.Output{}, err
	}
	folders := load.Folders(ctx, load.Config{Dir: dir, Patterns: patterns, Tags: cfg.Tags})
	plain := cfg
	plain.Patterns = nil
	runs := []generator.Config{plain} // those of the flags are the first
	var tools []*Line
	var lines Lines
	for _, folder := range folders {
		if folder.Dir == "" {
			runs = addFolder(runs, plain, folder)
			continue
		}
		own, err := lines.For(folder.Dir, folder.Path)
		if err != nil {
			return generator.Output{}, err
		}
		if len(own) == 0 {
			runs = addFolder(runs, plain, folder)
		}
		for _, line := range own {
			runs = addFolder(runs, line.under(plain), folder)
		}
		lists, err := lines.Tools(folder.Dir)
		if err != nil {
			return generator.Output{}, err
		}
		tools = append(tools, lists...)
	}
	if len(runs) == 1 && len(tools) == 0 { // which is most often so, and patterns are shorter than what they match
		return generator.Generate(ctx, cfg)
	}
	var outputs []generator.Output
	var errs []error
	for i, run := range runs {
		if len(run.Patterns) == 0 {
			continue
		}
		out, err := generator.Generate(ctx, run)
		if i == 0 && errors.Is(err, generator.ErrNothing) {
			continue // the others' lines say that they declare something
		}
		outputs, errs = append(outputs, out), append(errs, err)
	}
	for _, line := range tools {
		out, err := line.generateTools(line.Packages)
		outputs, errs = append(outputs, out), append(errs, err)
	}
	if err := diag.Join(errs...); err != nil {
		return generator.Output{}, err
	}
	return generator.Merge(dir, outputs), nil
}

// under is the configuration of a line in a run of the command.
func (l *Line) under(command generator.Config) generator.Config {
	cfg := l.Config
	for i, file := range cfg.Schemas {
		if !filepath.IsAbs(file) {
			cfg.Schemas[i] = filepath.Join(cfg.Dir, file)
		}
	}
	cfg.Dir, cfg.Step, cfg.Tags = command.Dir, command.Step, cmp.Or(cfg.Tags, command.Tags)
	return cfg
}

// addFolder adds a folder to the run of a configuration.
func addFolder(runs []generator.Config, cfg generator.Config, folder load.Folder) []generator.Config {
	key := func(c generator.Config) generator.Config {
		c.Patterns, c.Step = nil, nil
		return c
	}
	i := slices.IndexFunc(runs, func(run generator.Config) bool { return reflect.DeepEqual(key(run), key(cfg)) })
	if i < 0 {
		i = len(runs)
		runs = append(runs, cfg)
	}
	if !slices.Contains(runs[i].Patterns, folder.Pattern) {
		runs[i].Patterns = append(runs[i].Patterns, folder.Pattern)
	}
	return runs
}
