package schemafile

import (
	"fmt"
	"strings"
)

// Report describes the differences from the nearest revision with their places and consequences,
// and says what to do. It returns "" if no difference matters.
func (s *Schema) Report() string {
	if s.worstLevel() == Fine {
		return ""
	}
	var b strings.Builder
	names := strings.Join(s.Files, " and ")
	if s.Fits() {
		fmt.Fprintf(&b, "%s: this is revision %s with additions; code is generated as for %[2]s\n", names, s.Revision)
	} else {
		fmt.Fprintf(&b, "%s: unknown revision; the nearest known one is %s\n", names, s.Revision)
	}
	for _, f := range s.Findings {
		fmt.Fprintf(&b, "%v: %v: %v\n\t%s\n", f.Pos, f.Level(), f, f.Cause())
	}
	if s.Fits() {
		return b.String()
	}
	fmt.Fprintf(&b, "nothing is generated; you can:\n"+
		"\tuse a newer mcptaskgen, which may know this revision: go get -tool github.com/mcptaskgen/mcptaskgen/cmd/mcptaskgen@latest\n"+
		"\tgenerate code for peers that still speak %s: --revision %[1]s\n"+
		"\tadd the revision to mcptaskgen, as docs/dev/add-a-revision.md says\n", s.Revision)
	return b.String()
}
