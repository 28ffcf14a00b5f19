// Package commandline reads and writes the flags of mcptaskgen that change the generated code: those of the command,
// those of a //go:generate line, and those in the first line of a generated file.
package commandline

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// OutputName is the default name of the generated file in each package.
const OutputName = "mcptask_gen.go"

// Flags are the flags that change the generated code. The zero value means that none is given.
// Paths are relative to the directory of the command, of the line or of the generated file.
type Flags struct {
	// Out is the base name of the generated file in each package. Empty means [OutputName]. With
	// Tools, it is the path of the file. Empty then means Tools with _gen.go instead of its extension.
	Out string
	// ServerOnly leaves the client out and ClientOnly leaves the server out. Setting both is an
	// error.
	ServerOnly, ClientOnly bool
	// Portable refuses tools that a host of MCP or a provider of its model does not take. It changes nothing else.
	Portable bool
	// Revisions are the protocol revisions that generated servers declare tasks in. Empty means all
	// released revisions that package schema knows.
	Revisions []string
	// Schemas are paths of published MCP schema files. Their revisions are added to Revisions.
	Schemas []string
	// Tags are build tags, comma-separated.
	Tags string
	// Tools is the path of a server's list of tools. The other flags for lists are Out, Package and
	// Service.
	Tools string
	// Package is the package name of the file generated from a list. Empty means the package of the Go
	// files beside it, or else a name derived from its directory.
	Package string
	// Service is the name of the interface generated from a list. Empty means the server's name if the
	// list contains it, or else the name of the list's file.
	Service string
}

// Add declares the flags in a set.
func (f *Flags) Add(set *pflag.FlagSet) {
	set.StringVar(&f.Out, "out", "", "the `name` of the generated file in each package (default "+OutputName+");\nwith --tools, the file to write, which is otherwise named after the list")
	set.BoolVar(&f.ServerOnly, "server-only", false, "leave the client out")
	set.BoolVar(&f.ClientOnly, "client-only", false, "leave the server out")
	set.BoolVar(&f.Portable, "portable", false, "refuse tools that a host or the provider of its model does not take,\ninstead of a note on each")
	set.StringSliceVar(&f.Revisions, "revision", nil,
		"the `revisions` of the protocol that the server declares tasks in,\nrepeated or comma-separated (default "+strings.Join(schema.ReleasedRevisions(), ",")+")")
	set.StringArrayVar(&f.Schemas, "schema", nil,
		"a published schema `file` of MCP, repeated if a revision has several: generate\nfor its revision, or report what is new in it and not supported")
	set.StringVar(&f.Tags, "tags", "", "build `tags`, comma-separated, as for go build")
	set.StringVar(&f.Tools, "tools", "", "generate a client and a server from this `file`, a list of tools as\nmcptaskgen tools records it")
	set.StringVar(&f.Package, "package", "", "with --tools: the `name` of its package (default: that of the files\nbeside it)")
	set.StringVar(&f.Service, "service", "", "with --tools: the `name` of the interface (default: named after the\nserver or the file)")
}

// Check refuses flags that exclude each other. packages are the arguments after the flags.
func (f Flags) Check(packages []string) error {
	if f.ServerOnly && f.ClientOnly {
		return errors.New("--server-only and --client-only together leave nothing to generate; use one of them")
	}
	if !f.ReadsTools() {
		return nil
	}
	switch {
	case f.Tools == "":
		return errors.New("--package and --service need --tools; add --tools FILE")
	case len(packages) > 0:
		return errors.New("--tools reads one file and takes no packages; run it once for each file")
	case f.Tags != "":
		return errors.New("--tags is for packages and cannot be used with --tools")
	case len(f.Schemas) > 0:
		return errors.New("--schema is for packages and cannot be used with --tools")
	}
	return nil
}

// ReadsTools reports whether a flag for lists of tools is set.
func (f Flags) ReadsTools() bool { return f.Tools != "" || f.Package != "" || f.Service != "" }

// ChangesFile reports whether a flag is set that changes the generated files of packages, or that
// selects a list.
func (f Flags) ChangesFile() bool {
	f.Tags, f.Portable = "", false
	return f.Out != "" || f.String() != ""
}

// Output returns the file that is generated: its base name, or its path if it comes from a list.
func (f Flags) Output() string {
	return cmp.Or(f.Out, f.defaultOut())
}

func (f Flags) defaultOut() string {
	if f.Tools == "" {
		return OutputName
	}
	return strings.TrimSuffix(f.Tools, filepath.Ext(f.Tools)) + "_gen.go"
}

// Relative returns the flags with paths that were relative to the directory from and are now relative
// to the directory to. Both are absolute.
func (f Flags) Relative(from, to string) Flags {
	move := func(path string) string {
		if path == "" {
			return ""
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(from, filepath.FromSlash(path))
		}
		if rel, err := filepath.Rel(to, path); err == nil {
			path = rel
		}
		return filepath.ToSlash(path)
	}
	f.Schemas = slices.Clone(f.Schemas)
	for i, path := range f.Schemas {
		f.Schemas[i] = move(path)
	}
	if f.Tools != "" {
		f.Tools, f.Out = move(f.Tools), move(f.Out)
	}
	return f
}

// String returns the flags as text that a //go:generate line can have after mcptaskgen: in one order, each once,
// without those that repeat a default. Revisions are ordered by age.
func (f Flags) String() string {
	if f.Out == f.defaultOut() {
		f.Out = ""
	}
	var words []string
	add := func(name string, values ...string) {
		for _, value := range values {
			if value != "" {
				words = append(words, "--"+name, quoteWord(value))
			}
		}
	}
	add("out", f.Out)
	if f.ServerOnly {
		words = append(words, "--server-only")
	}
	if f.ClientOnly {
		words = append(words, "--client-only")
	}
	if f.Portable {
		words = append(words, "--portable")
	}
	add("revision", strings.Join(SortRevisions(f.Revisions), ","))
	add("schema", f.Schemas...)
	add("tags", f.Tags)
	add("tools", f.Tools)
	add("package", f.Package)
	add("service", f.Service)
	return strings.Join(words, " ")
}

// SortRevisions returns revisions once each, oldest first. Unknown ones come last.
func SortRevisions(revisions []string) []string {
	known := schema.Revisions()
	age := func(revision string) int {
		if i := slices.Index(known, revision); i >= 0 {
			return i
		}
		return len(known)
	}
	sorted := slices.Clone(revisions)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Or(age(a)-age(b), strings.Compare(a, b)) })
	return slices.Compact(sorted)
}

// quoteWord quotes a word that go generate would otherwise split or unquote.
func quoteWord(word string) string {
	if strings.HasPrefix(word, `"`) || strings.ContainsFunc(word, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }) {
		return strconv.Quote(word)
	}
	return word
}

// parse reads the words after mcptaskgen: the flags, and the packages after them. It accepts and
// ignores the command's flags that do not change the generated code.
func (f *Flags) parse(words []string) (packages []string, err error) {
	set := pflag.NewFlagSet("mcptaskgen", pflag.ContinueOnError)
	set.Usage = func() {}
	f.Add(set)
	for _, name := range []string{"check", "verbose", "version"} {
		set.Bool(name, false, "")
	}
	set.String("against", "", "")
	set.StringArray("allow", nil, "")
	err = set.Parse(words)
	return set.Args(), err
}
