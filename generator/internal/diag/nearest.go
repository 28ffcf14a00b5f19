package diag

import (
	"fmt"

	"github.com/mcptaskgen/mcptaskgen/internal/nearest"
)

// Nearest returns the candidate that a person most likely meant by word, or "" if none is close. A
// close candidate is at most two edits away, and fewer edits than it has letters.
func Nearest(word string, candidates []string) string { return nearest.Name(word, candidates, 2) }

// DidYouMean returns a hint with the candidate that is [Nearest] to a word, or "" if none is close.
func DidYouMean(word string, candidates []string) string {
	if near := Nearest(word, candidates); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}
