// Package questions has a question of a workflow. The workflow's own package imports it, and so does that of its tool.
package questions

//go:generate go tool mcptaskgen

// Approval lets a release go on.
//
//mcptask:input message="Release it?"
type Approval struct {
	// Approve lets it go on.
	Approve bool `json:"approve"`
}
