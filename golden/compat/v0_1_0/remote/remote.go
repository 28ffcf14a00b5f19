// Package remote calls the tools of package jobs as if somebody else had written them.
package remote
