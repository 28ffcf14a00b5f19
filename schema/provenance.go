package schema

import "slices"

// Provenance says which official files the facts of a surface come from.
type Provenance struct {
	// Note says how the facts were taken.
	Note string `json:"note"`
	// Sources are read in order; where two define the same name, the later one counts.
	Sources []Source `json:"sources"`
}

// Source is one official schema file.
type Source struct {
	// File is the name under which the official file is kept for tests.
	File       string `json:"file"`
	Repository string `json:"repository"`
	Path       string `json:"path"`
	Commit     string `json:"commit"`
	SHA256     string `json:"sha256"`
	Licence    string `json:"licence"`
	// Fingerprints maps each definition that comes from this file to the
	// fingerprint of its official text; see [Fingerprint].
	Fingerprints map[string]string `json:"fingerprints"`
}

// Source returns the official file that a definition comes from.
func (p Provenance) Source(definition string) (Source, bool) {
	i := slices.IndexFunc(p.Sources, func(s Source) bool { return s.Fingerprints[definition] != "" })
	if i < 0 {
		return Source{}, false
	}
	return p.Sources[i], true
}
