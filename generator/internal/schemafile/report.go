package schemafile

import (
	"fmt"
	"slices"
	"strings"
)

// Report says what differs from the nearest revision, each with its place and what comes of it, and what
// to do; empty where nothing matters.
func (s *Schema) Report() string {
	if s.worstLevel() == Fine {
		return ""
	}
	var b strings.Builder
	names := strings.Join(s.Files, " and ")
	if s.Fits() {
		fmt.Fprintf(&b, "%s: this is revision %s and more; code is generated as for %[2]s\n", names, s.Revision)
	} else {
		fmt.Fprintf(&b, "%s: no known revision; the nearest is %s, which code can be generated for, but this is not it\n", names, s.Revision)
	}
	for _, f := range s.Findings {
		fmt.Fprintf(&b, "%v: %v: %v\n\t%s\n", f.Pos, f.Level(), f, f.Cause())
	}
	if s.Fits() {
		return b.String()
	}
	fmt.Fprintf(&b, "nothing is generated; what helps:\n"+
		"\ta newer mcptaskgen may know this revision: go get -tool github.com/mcptaskgen/mcptaskgen/cmd/mcptaskgen@latest\n"+
		"\tpeers that still speak %s are served by code for it: --revision %[1]s\n", s.Revision)
	b.WriteString("what a maintainer of mcptaskgen adds or touches (\"How to add a revision\" in CONTRIBUTING.md):\n")
	files := s.filesToChange()
	width := 0
	for _, f := range files {
		width = max(width, len(f[0]))
	}
	for _, f := range files {
		fmt.Fprintf(&b, "\t%-*s  %s\n", width, f[0], f[1])
	}
	return b.String()
}

// filesToChange are those of mcptaskgen that a schema concerns, with what goes into them.
func (s *Schema) filesToChange() [][2]string {
	files := slices.Clone(everyRevision)
	var more []string
	for _, f := range s.Findings {
		more = append(more, consequences[f.Kind].files...)
	}
	slices.Sort(more)
	for _, name := range slices.Compact(more) {
		files = append(files, [2]string{name, filePurposes[name]})
	}
	return files
}
