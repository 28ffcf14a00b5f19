package contract

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// State is another state of the files in a directory.
type State struct {
	// Files holds the generated files, sorted by path. Paths are absolute and slash-separated, and are those that the files
	// have, or would have, in the directory.
	Files []*File
	// Modules holds the directories with a go.mod.
	Modules []string
}

// ErrNoFiles means that a state has nothing to compare with.
var ErrNoFiles = errors.New("there are no generated files of these packages")

// source reads the files of a state by their absolute slash-separated path.
type source interface {
	// list returns the files that may be generated files, and those named go.mod.
	list() ([]string, error)
	read(path string) ([]byte, error)
}

// ReadState reads the generated files of a state that keep accepts: git:REF is a commit of the repository that dir is in,
// and anything else is a directory with another checkout. Of git it only reads objects: it fetches nothing, and runs nothing
// of the repository.
func ReadState(ctx context.Context, dir, against string, keep func(modules []string, path string) bool) (*State, error) {
	src, stop, err := openSource(ctx, dir, against)
	if err != nil {
		return nil, err
	}
	defer stop()
	paths, err := src.list()
	if err != nil {
		return nil, err
	}
	s := &State{}
	for _, p := range paths {
		if path.Base(p) == "go.mod" {
			s.Modules = append(s.Modules, path.Dir(p))
		}
	}
	for _, p := range paths {
		if path.Ext(p) != ".go" || strings.HasSuffix(p, "_test.go") || !keep(s.Modules, p) {
			continue
		}
		text, err := src.read(p)
		if err != nil {
			return nil, err
		}
		if !IsGenerated(text) {
			continue
		}
		f, err := Read(p, text)
		if err != nil {
			return nil, fmt.Errorf("%s: cannot read a generated file: %w; compare with a state in which it is whole", against, err)
		}
		if err := f.AddList(src.read); err != nil {
			return nil, fmt.Errorf("%s: %w", against, err)
		}
		s.Files = append(s.Files, f)
	}
	if len(s.Files) == 0 {
		return nil, fmt.Errorf("%w in %s; name a state that has some, or other packages, as ./... does", ErrNoFiles, against)
	}
	slices.SortFunc(s.Files, func(a, b *File) int { return cmp.Compare(a.Path, b.Path) })
	return s, nil
}

// AddList adds the tools of the list that the file is generated from, if read finds it. The list has the places of the
// tools, and a file of the client's half has no more of them than their names.
func (f *File) AddList(read func(path string) ([]byte, error)) error {
	if f.List == "" {
		return nil
	}
	text, err := read(f.List)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var tools []*Tool
	if err == nil {
		tools, err = ReadList(f.List, text)
	}
	if err != nil {
		return fmt.Errorf("cannot read the list %s: %w", f.List, err)
	}
	if len(f.Services) == 0 {
		f.Services = []*Service{{Tools: tools}}
		return nil
	}
	for _, s := range f.Services {
		for _, t := range s.Tools {
			if i := slices.IndexFunc(tools, func(l *Tool) bool { return l.Name == t.Name }); i >= 0 {
				t.Pos = tools[i].Pos
			}
		}
	}
	return nil
}

func openSource(ctx context.Context, dir, against string) (source, func(), error) {
	if ref, ok := strings.CutPrefix(against, "git:"); ok {
		if ref == "" {
			return nil, nil, errors.New("--against git: names no commit; write one after git:, such as git:main")
		}
		g, err := openGit(ctx, dir, ref)
		if err != nil {
			return nil, nil, err
		}
		return g, g.stop, nil
	}
	root := against
	if !filepath.IsAbs(root) {
		root = filepath.Join(dir, root)
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return nil, nil, fmt.Errorf("%s is not a directory; name a commit as git:main, or the directory of another checkout", against)
	}
	// Both are directories of the same module, whichever of its directories they are.
	from, old := findModule(root)
	to, now := findModule(dir)
	if old != now {
		return nil, nil, fmt.Errorf("--against %s: %s, and %s; name a directory of the same module in another checkout, or a commit as git:main",
			against, describeModule(root, old), describeModule(dir, now))
	}
	return directory{filepath.ToSlash(from), filepath.ToSlash(to)}, func() {}, nil
}

// moduleLine is the line of a go.mod that has the path of the module.
var moduleLine = regexp.MustCompile("(?m)^module[ \\t]+[\"`]?([^\\s\"`]+)")

// findModule returns the directory at or above dir that has a go.mod, and the path of its module. If there is none, it
// returns dir itself.
func findModule(dir string) (root, module string) {
	for root = dir; ; root = filepath.Dir(root) {
		if text, err := os.ReadFile(filepath.Join(root, "go.mod")); err == nil { //nolint:gosec // a go.mod of the user
			if match := moduleLine.FindSubmatch(text); match != nil {
				module = string(match[1])
			}
			return root, module
		}
		if root == filepath.Dir(root) {
			return dir, ""
		}
	}
}

func describeModule(dir, module string) string {
	if module == "" {
		return "no go.mod in or above " + dir + " names a module"
	}
	return dir + " belongs to the module " + module
}

// directory is a source whose files are at another place.
type directory struct{ root, as string }

func (d directory) list() (paths []string, err error) {
	err = filepath.WalkDir(filepath.FromSlash(d.root), func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return filepath.SkipDir
		case entry.Type().IsRegular() && (entry.Name() == "go.mod" || filepath.Ext(name) == ".go"):
			paths = append(paths, d.as+strings.TrimPrefix(filepath.ToSlash(name), d.root))
		}
		return nil
	})
	return paths, err
}

func (d directory) read(name string) ([]byte, error) {
	rest, ok := strings.CutPrefix(name, d.as)
	if !ok {
		return nil, fs.ErrNotExist // a list outside of the module
	}
	return os.ReadFile(filepath.FromSlash(d.root + rest))
}

// gitSource reads the files of a commit. One process finds the generated files, and one reads them.
type gitSource struct {
	ctx       context.Context //nolint:containedctx // that of the one call that the source lives for
	top, hash string
	against   string

	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func gitCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--no-pager"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_LITERAL_PATHSPECS=0", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	return cmd
}

// gitOutput runs git and returns its output. The error has what git said.
func gitOutput(ctx context.Context, dir string, args ...string) ([]byte, error) {
	out, err := gitCommand(ctx, dir, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return out, fmt.Errorf("git: %s", findReason(string(exit.Stderr)))
	}
	return out, err
}

// findReason returns the line of git's messages that has the reason of a failure, with the way out if git will not read a
// repository of another user.
func findReason(messages string) string {
	lines := strings.Split(strings.TrimSpace(messages), "\n")
	reason := lines[0]
	for _, line := range lines {
		if fatal, ok := strings.CutPrefix(line, "fatal: "); ok {
			reason = fatal
			break
		}
	}
	if _, quoted, ok := strings.Cut(reason, "dubious ownership in repository at '"); ok {
		reason += "; if you trust it, run git config --global --add safe.directory " + strings.TrimSuffix(quoted, "'")
	}
	return reason
}

func openGit(ctx context.Context, dir, ref string) (*gitSource, error) {
	said, err := gitOutput(ctx, dir, "rev-parse", "--show-toplevel", "--show-cdup")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, errors.New("--against git:REF needs git; install it, or name the directory of another checkout")
	case err != nil:
		return nil, fmt.Errorf("cannot read git:%s in %s: %w; name the directory of another checkout instead", ref, dir, err)
	}
	// A name that starts with - would be an option.
	wanted := "main"
	hash, err := []byte(nil), errors.New("no name of a commit")
	if ref[0] != '-' {
		wanted = strings.TrimPrefix(ref, "origin/")
		hash, err = gitOutput(ctx, dir, "rev-parse", "--verify", "--quiet", ref+"^{commit}")
	}
	if err != nil {
		return nil, fmt.Errorf("git:%s is not a commit of this repository; if another has it, fetch it first: git fetch --depth=1 origin %s, then --against git:FETCH_HEAD", ref, wanted)
	}
	// The way up keeps symbolic links above the repository as dir names them.
	_, up, _ := strings.Cut(strings.TrimRight(string(said), "\r\n"), "\n")
	return &gitSource{ctx: ctx, top: filepath.ToSlash(filepath.Join(dir, up)), hash: string(bytes.TrimSpace(hash)), against: "git:" + ref}, nil
}

func (g *gitSource) list() ([]string, error) {
	// -a, because repositories often tell git not to show generated files.
	out, err := gitOutput(g.ctx, filepath.FromSlash(g.top), "grep", "--no-color", "--no-recurse-submodules", "-a", "-l", "-z", "-E",
		"-e", `Code generated by "?mcptaskgen`, "-e", `^module[[:space:]"]`, g.hash, "--", "*.go", "*go.mod")
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1 means that there are none
		return nil, fmt.Errorf("cannot search %s: %w", g.against, err)
	}
	var paths []string
	for name := range strings.SplitSeq(string(out), "\x00") {
		if p, ok := strings.CutPrefix(name, g.hash+":"); ok {
			paths = append(paths, g.top+"/"+p)
		}
	}
	return paths, nil
}

func (g *gitSource) read(name string) ([]byte, error) {
	rel, ok := strings.CutPrefix(name, g.top+"/")
	if !ok || strings.Contains(rel, "\n") {
		return nil, fs.ErrNotExist
	}
	if g.cmd == nil {
		if err := g.start(); err != nil {
			return nil, err
		}
	}
	text, err := g.ask(g.hash + ":" + rel)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read %s of %s: %w", rel, g.against, err)
	}
	return text, err
}

func (g *gitSource) start() (err error) {
	g.cmd = gitCommand(g.ctx, filepath.FromSlash(g.top), "cat-file", "--batch")
	if g.in, err = g.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	g.out = bufio.NewReader(out)
	return g.cmd.Start()
}

// ask reads one object: a line with its size, its bytes, and the end of a line.
func (g *gitSource) ask(object string) ([]byte, error) {
	if _, err := fmt.Fprintln(g.in, object); err != nil {
		return nil, err
	}
	line, err := g.out.ReadString('\n')
	if err != nil {
		return nil, err
	}
	var hash, kind string
	var size int
	if _, err := fmt.Sscan(line, &hash, &kind, &size); err != nil {
		return nil, fs.ErrNotExist // git says that the object is missing
	}
	text := make([]byte, size+1)
	if _, err = io.ReadFull(g.out, text); err == nil && kind != "blob" {
		err = fs.ErrNotExist
	}
	return text[:size], err
}

// stop ends the process that reads.
func (g *gitSource) stop() {
	if g.cmd != nil && g.cmd.Process != nil {
		g.in.Close()     //nolint:gosec // the process ends by it
		_ = g.cmd.Wait() // all that it had to say was read
	}
}
