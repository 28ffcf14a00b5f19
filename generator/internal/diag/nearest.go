package diag

import (
	"fmt"
	"slices"
)

// longestWord is longer than any word that people mistype.
const longestWord = 100

// Nearest returns the candidate that a person most likely meant by word, or "" if none is close. A
// close candidate is at most two edits away, and fewer edits than it has letters.
func Nearest(word string, candidates []string) string {
	best, distance := "", 3
	if len(word) > longestWord {
		return ""
	}
	for _, candidate := range candidates {
		if d := editDistance(word, candidate); d < distance && d < len(candidate) {
			best, distance = candidate, d
		}
	}
	return best
}

// DidYouMean returns a hint with the candidate that is [Nearest] to a word, or "" if none is close.
func DidYouMean(word string, candidates []string) string {
	if near := Nearest(word, candidates); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// editDistance returns the Damerau-Levenshtein distance (optimal string alignment) between a and b.
func editDistance(a, b string) int {
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = slices.Min([]int{last[j] + 1, row[j-1] + 1, last[j-1] + cost})
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
