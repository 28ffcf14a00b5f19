// Package nearest finds the name that somebody most likely meant by a wrong one.
package nearest

import (
	"slices"
	"strings"
)

// longestName is longer than any name that people mistype.
const longestName = 128

// Name returns the candidate that is fewest edits away from a name. It returns "" if none is at most the given number of
// edits away, or if so many edits would replace all of it. Case counts for nothing.
func Name(name string, candidates []string, most int) string {
	best, distance := "", most+1
	if len(name) > longestName {
		return ""
	}
	for _, candidate := range candidates {
		if d := len(candidate) - len(name); d >= distance || -d >= distance { // without the work of editDistance
			continue
		}
		if d := editDistance(strings.ToLower(name), strings.ToLower(candidate)); d < distance && d < len(candidate) {
			best, distance = candidate, d
		}
	}
	return best
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
