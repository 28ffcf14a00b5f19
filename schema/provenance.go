package schema

// Provenance names the official files that a surface's facts come from.
type Provenance struct {
	// Standing describes the status of the revision in plain words.
	Standing string `json:"standing"`
	// Note tells how the facts were collected.
	Note string `json:"note"`
	// Documents are the texts that count if no schema states a fact, or states it wrongly.
	Documents []Text `json:"documents,omitempty"`
	// Sources are the schema files in reading order. If two define the same name, the later one
	// wins. An unofficial revision has none.
	Sources []Source `json:"sources"`
	// Structure is the SHA-256 (hex) of tasks.schema.json without its words, as it was last compared
	// with the sources.
	Structure string `json:"structure,omitempty"`
}

// Text is a document that facts come from.
type Text struct {
	Repository string `json:"repository"`
	Path       string `json:"path"`
	Commit     string `json:"commit"`
	Licence    string `json:"licence"`
}

// Source is one official schema file.
type Source struct {
	// File is the name under which the official file is kept for tests.
	File       string `json:"file"`
	Repository string `json:"repository"`
	Path       string `json:"path"`
	Commit     string `json:"commit"`
	SHA256     string `json:"sha256"`
	// Edition is the SHA-256 of another edition of the file, which was compared with it and has the same definitions. The
	// tests take either. It may be empty.
	Edition string `json:"edition,omitempty"`
	Licence string `json:"licence"`
}
