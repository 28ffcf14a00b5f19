// Package pipeline calls the golden package of that name as if somebody else had written it.
package pipeline

//go:generate go tool mcptaskgen --tools tools.json --service Jobs
