package schema

import (
	"fmt"
	"slices"
	"strings"
)

// Verify compares a surface with published official schema files. If the revision has more sources
// than there are files, Verify compares only the part from the sources that the files resemble
// most. notes describe deliberate differences. The error reports a revision without an official
// schema, or files that define no task.
func Verify(s *Surface, files ...*Document) (differences []Difference, notes []string, err error) {
	if len(s.Provenance.Sources) == 0 {
		return nil, nil, fmt.Errorf("there is no official schema of %s: %s", s.Revision, s.Provenance.Standing)
	}
	of := s
	if len(files) < len(s.Provenance.Sources) {
		of = s.selectSources(files)
	}
	official := Combine(files...)
	values := official.valuesByName()
	for _, p := range of.Patched {
		if p.applies(values) {
			notes = append(notes, fmt.Sprintf("%s is %s in the official schema, but different here. %s", p.describePlace(), p.Official, p.Reason))
		}
	}
	differences = Compare(of, official)
	if lacksTasks(differences, of) {
		return nil, nil, fmt.Errorf("no task is defined in the files, so they are not the schema of %s", s.Revision)
	}
	return differences, notes, nil
}

// lacksTasks reports whether all definitions about tasks are missing in the official files, which are
// then those of something else.
func lacksTasks(differences []Difference, s *Surface) bool {
	defined, missing := 0, 0
	for _, definition := range s.Definitions {
		if strings.Contains(definition.Name, "Task") && !s.isNotCompared(definition.Name) {
			defined++
		}
	}
	for _, d := range differences {
		if strings.Contains(d.Definition, "Task") && d.Aspect == AspectDefinition && d.Kind == Removed {
			missing++
		}
	}
	return defined > 0 && missing == defined
}

// IdentifyRevision returns the revision whose published official schema files these are, according
// to [Verify]. It returns "" if they match no known revision.
func IdentifyRevision(files ...*Document) (revision string, err error) {
	for _, name := range Revisions() {
		s, err := Load(name)
		if err != nil {
			return "", err
		}
		if len(s.Provenance.Sources) == 0 {
			continue
		}
		if found, _, err := Verify(s, files...); err == nil && len(found) == 0 {
			return name, nil
		}
	}
	return "", nil
}

// selectSources returns the surface without the definitions of sources that no file resembles.
// Their definitions are not compared.
func (s *Surface) selectSources(files []*Document) *Surface {
	counts := make([]bool, len(s.Provenance.Sources))
	for _, file := range files {
		values, best, most := file.valuesByName(), 0, -1.0
		for i, source := range s.Provenance.Sources {
			has := 0
			for name := range source.Fingerprints {
				if values[name] != nil {
					has++
				}
			}
			if share := float64(has) / float64(max(1, len(source.Fingerprints))); share > most {
				best, most = i, share
			}
		}
		counts[best] = true
	}
	out := *s
	out.skipped = map[string]bool{}
	for i, source := range s.Provenance.Sources {
		for name := range source.Fingerprints {
			out.skipped[name] = out.skipped[name] || !counts[i]
		}
	}
	return &out
}

// describePlace returns the place of a patch for a reader.
func (p Patch) describePlace() string {
	steps := slices.DeleteFunc(pointerSteps(p.Pointer), func(step string) bool { return step == "properties" })
	return strings.TrimSuffix(p.Definition+joinPath(steps), ".type")
}
