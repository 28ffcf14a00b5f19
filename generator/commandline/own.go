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

// lineRun is one run of the generator, for lines with the same arguments.
type lineRun struct {
	cfg  generator.Config
	line *Line // the first line; nil if the command's own flags are used
	// mustDeclare is set if a line is only for its own directory. go generate then fails if that
	// directory declares nothing.
	mustDeclare bool
}

// linePlan says what to generate for the lines of packages.
type linePlan struct {
	runs  []lineRun // the first one uses the command's flags
	lists []*Line   // lines for lists of tools
	errs  []error
}

// generateByLines generates each package as its //go:generate lines say. It uses the flags for
// packages without a line.
func (f *Flags) generateByLines(ctx context.Context, patterns []string) (generator.Output, error) {
	cfg := f.Config
	cfg.Patterns = patterns
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return generator.Output{}, err
	}
	plan := planRuns(ctx, cfg, dir)
	if len(plan.runs) == 1 && len(plan.lists) == 0 && diag.Join(plan.errs...) == nil {
		return generator.Generate(ctx, cfg)
	}
	return plan.generate(ctx, dir)
}

// planRuns finds the lines of the packages in cfg and groups the packages by configuration.
func planRuns(ctx context.Context, cfg generator.Config, dir string) linePlan {
	base := cfg
	base.Patterns = nil
	plan := linePlan{runs: []lineRun{{cfg: base}}}
	lines := Lines{Dir: dir}
	begin := time.Now()
	directories := load.Directories(ctx, load.Config{Dir: dir, Patterns: cfg.Patterns, Tags: cfg.Tags})
	if cfg.Step != nil {
		cfg.Step("find", time.Since(begin))
	}
	for _, directory := range directories {
		var own, lists []*Line
		if directory.Dir != "" {
			var err error
			if own, err = lines.For(directory.Dir, directory.Path); err == nil {
				lists, err = lines.Tools(directory.Dir)
			}
			plan.errs = append(plan.errs, err)
		}
		plan.lists = append(plan.lists, lists...)
		if len(own) == 0 {
			plan.runs = addDirectory(plan.runs, lineRun{cfg: base}, directory)
		}
		for i, line := range own {
			// If several lines write the same file, the last one wins.
			if !slices.ContainsFunc(own[i+1:], func(later *Line) bool { return later.Config.Output == line.Config.Output }) {
				plan.runs = addDirectory(plan.runs, lineRun{line.configFor(base), line, len(line.Packages) == 0}, directory)
			}
		}
	}
	return plan
}

// generate performs the runs of a plan. dir is the absolute working directory.
func (p linePlan) generate(ctx context.Context, dir string) (generator.Output, error) {
	var outputs []generator.Output
	errs := p.errs
	for _, line := range p.lists {
		out, err := line.generateList(dir)
		outputs, errs = append(outputs, out), append(errs, line.locateError(dir, err))
	}
	var nothing []error
	for _, run := range p.runs {
		if len(run.cfg.Patterns) == 0 {
			continue
		}
		out, err := generator.Generate(ctx, run.cfg)
		if run.line != nil {
			err = run.line.locateError(dir, err)
		}
		if errors.Is(err, generator.ErrNothing) && !run.mustDeclare {
			nothing = append(nothing, err) // not a mistake if another run finds something
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

// locateError adds the position of the line to an error, relative to the working directory. For
// mistakes in declarations, which have their own positions, [diag.Join] drops it again.
func (l *Line) locateError(dir string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s:%d: %w", diag.Relative(dir, l.File), l.Number, err)
}

// configFor returns the line's configuration within a run of the command.
func (l *Line) configFor(command generator.Config) generator.Config {
	cfg := l.Config
	cfg.Schemas = nil
	for _, file := range l.Config.Schemas {
		cfg.Schemas = append(cfg.Schemas, diag.Absolute(l.Config.Dir, file))
	}
	cfg.Dir, cfg.Step, cfg.Tags = command.Dir, command.Step, cmp.Or(cfg.Tags, command.Tags)
	return cfg
}

// generateList generates the client of a list of tools. dir is the working directory of the run,
// which may differ from the line's.
func (l *Line) generateList(dir string) (generator.Output, error) {
	cfg, err := l.toolsConfig(l.Packages)
	if err != nil {
		return generator.Output{}, err
	}
	cfg.File = diag.Absolute(cfg.Dir, cfg.File)
	if cfg.Out != "" {
		cfg.Out = diag.Absolute(cfg.Dir, cfg.Out)
	}
	cfg.Dir = dir
	return generator.GenerateTools(cfg)
}

// addDirectory adds a directory to the run with the same configuration as like, or to like itself if
// there is none.
func addDirectory(runs []lineRun, like lineRun, directory load.Directory) []lineRun {
	key := func(c generator.Config) generator.Config {
		c.Patterns, c.Step = nil, nil
		return c
	}
	i := slices.IndexFunc(runs, func(run lineRun) bool { return reflect.DeepEqual(key(run.cfg), key(like.cfg)) })
	if i < 0 {
		i = len(runs)
		runs = append(runs, like)
	}
	runs[i].mustDeclare = runs[i].mustDeclare || like.mustDeclare
	if !slices.Contains(runs[i].cfg.Patterns, directory.Pattern) {
		runs[i].cfg.Patterns = append(runs[i].cfg.Patterns, directory.Pattern)
	}
	return runs
}
