package commandline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
)

// ownRun is one run of the generator, for what lines say alike.
type ownRun struct {
	cfg  generator.Config
	line *Line // the first; nil where the flags of the command say it
	// alone tells that a line is for its folder alone: go generate fails where that declares nothing.
	alone bool
}

// generateOwn generates packages, each as its lines for go generate say, or as the flags do where it
// has none.
func (f *Flags) generateOwn(ctx context.Context, patterns []string) (generator.Output, error) {
	cfg := f.Config
	cfg.Patterns = patterns
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return generator.Output{}, err
	}
	plain := cfg
	plain.Patterns = nil
	runs := []ownRun{{cfg: plain}} // that of the flags is the first
	var outputs []generator.Output
	var errs []error
	lines := Lines{Dir: dir}
	begin := time.Now()
	folders := load.Folders(ctx, load.Config{Dir: dir, Patterns: patterns, Tags: cfg.Tags})
	if cfg.Step != nil {
		cfg.Step("find", time.Since(begin))
	}
	for _, folder := range folders {
		var own, lists []*Line
		if folder.Dir != "" {
			if own, err = lines.For(folder.Dir, folder.Path); err == nil {
				lists, err = lines.Tools(folder.Dir)
			}
			errs = append(errs, err)
		}
		if len(own) == 0 {
			runs = addFolder(runs, ownRun{cfg: plain}, folder)
		}
		for i, line := range own {
			// Of lines that make the same file, the last has its way.
			if !slices.ContainsFunc(own[i+1:], func(later *Line) bool { return later.Config.Output == line.Config.Output }) {
				runs = addFolder(runs, ownRun{line.under(plain), line, len(line.Packages) == 0}, folder)
			}
		}
		for _, line := range lists {
			out, err := line.generateList(dir)
			outputs, errs = append(outputs, out), append(errs, line.place(dir, err))
		}
	}
	if len(runs) == 1 && len(outputs) == 0 && diag.Join(errs...) == nil { // which is most often so, and patterns are shorter than what they match
		return generator.Generate(ctx, cfg)
	}
	var nothing []error
	for _, run := range runs {
		if len(run.cfg.Patterns) == 0 {
			continue
		}
		out, err := generator.Generate(ctx, run.cfg)
		if run.line != nil {
			err = run.line.place(dir, err)
		}
		if errors.Is(err, generator.ErrNothing) && !run.alone {
			nothing = append(nothing, err) // which is no mistake where other runs find something
			continue
		}
		outputs, errs = append(outputs, out), append(errs, err)
	}
	if len(outputs) == 0 {
		errs = append(errs, nothing...)
	}
	if err := diag.Join(errs...); err != nil {
		return generator.Output{}, err
	}
	return generator.Merge(dir, outputs), nil
}

// place says in an error of a line where that stands, as seen from the working directory. Of
// declarations, which have places of their own, [diag.Join] keeps these alone.
func (l *Line) place(dir string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s:%d: %w", diag.Relative(dir, l.File), l.Number, err)
}

// under is the configuration of a line in a run of the command.
func (l *Line) under(command generator.Config) generator.Config {
	cfg := l.Config
	cfg.Schemas = nil
	for _, file := range l.Config.Schemas {
		cfg.Schemas = append(cfg.Schemas, absolute(l.Config.Dir, file))
	}
	cfg.Dir, cfg.Step, cfg.Tags = command.Dir, command.Step, cmp.Or(cfg.Tags, command.Tags)
	return cfg
}

// generateList makes what a line makes of a list of tools, in a run in another folder.
func (l *Line) generateList(dir string) (generator.Output, error) {
	cfg, err := l.toolsConfig(l.Packages)
	if err != nil {
		return generator.Output{}, err
	}
	cfg.File = absolute(cfg.Dir, cfg.File)
	if cfg.Out != "" {
		cfg.Out = absolute(cfg.Dir, cfg.Out)
	}
	cfg.Dir = dir
	return generator.GenerateTools(cfg)
}

// addFolder adds a folder to the run that is like another one, or to that itself where there is none.
func addFolder(runs []ownRun, like ownRun, folder load.Folder) []ownRun {
	key := func(c generator.Config) generator.Config {
		c.Patterns, c.Step = nil, nil
		return c
	}
	i := slices.IndexFunc(runs, func(run ownRun) bool { return reflect.DeepEqual(key(run.cfg), key(like.cfg)) })
	if i < 0 {
		i = len(runs)
		runs = append(runs, like)
	}
	runs[i].alone = runs[i].alone || like.alone
	if !slices.Contains(runs[i].cfg.Patterns, folder.Pattern) {
		runs[i].cfg.Patterns = append(runs[i].cfg.Patterns, folder.Pattern)
	}
	return runs
}
