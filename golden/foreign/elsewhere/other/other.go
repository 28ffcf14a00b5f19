// Package other has the name of a package beside it.
package other

// Node is another Node.
type Node struct {
	Weight float64 `json:"weight" jsonschema:"minimum=0"`
}
