// Package workflows_test takes the place of the sample's tests of workflows, which this version does not have.
package workflows_test
