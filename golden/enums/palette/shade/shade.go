// Package shade is imported by a package that is imported: export data of that one knows none of the
// constants here.
package shade

// Tone is how light it is.
type Tone string

// The tones, on one line: export data keeps no columns.
const Light, Dark Tone = "light", "dark" //nolint:revive // their order on a line is what is to be seen
