// Package releases declares the tools of a server that ships releases, if a second person approves.
package releases

import (
	"context"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// Releases ships releases of services.
//
//mcptask:service
type Releases interface {
	// ShipRelease ships a version of a service to production. It waits, for days if need be, until another person has
	// approved.
	//
	//mcptask:tool task=required ttl=72h poll=1s onlost=restart
	//mcptask:tool immediate="The release waits for the approval of another person; its report follows."
	ShipRelease(ctx context.Context, task *mcptask.Task, in Release) (ShipReport, error)

	// ListApprovals lists the releases of other people that wait for an approval.
	//
	//mcptask:tool readonly
	ListApprovals(ctx context.Context, task *mcptask.Task) (ApprovalList, error)

	// DecideApproval approves or refuses a release of another person. Ask your user before you decide.
	//
	//mcptask:tool destructive
	DecideApproval(ctx context.Context, task *mcptask.Task, in DecideInput) (Decision, error)
}

// Release names what to ship.
type Release struct {
	// Service is the name of the service, such as billing.
	Service string `json:"service" jsonschema:"minLength=1"`
	// Version is the version to ship, such as 1.4.2.
	Version string `json:"version" jsonschema:"minLength=1"`
}

// ShipReport says what was shipped.
type ShipReport struct {
	// Service is the name of the service.
	Service string `json:"service"`
	// Version is the version that runs now.
	Version string `json:"version"`
	// ApprovedBy is the person who approved.
	ApprovedBy string `json:"approved_by"`
}

// ApprovalList lists open requests for approval.
type ApprovalList struct {
	// Approvals are at most 100 open requests: the oldest of each person first.
	Approvals []Approval `json:"approvals"`
}

// Approval is a request for approval.
type Approval struct {
	// ID names the request.
	ID string `json:"id"`
	// RequestedBy is the person who wants to ship the release.
	RequestedBy string `json:"requested_by"`
	// Release is what is to be shipped.
	Release Release `json:"release"`
	// Until is the time at which the request expires.
	Until time.Time `json:"until"`
}

// DecideInput is a decision about a request for approval.
type DecideInput struct {
	// ID is that of the request, from list_approvals.
	ID string `json:"id" jsonschema:"minLength=1"`
	// Approve says whether to ship the release.
	Approve bool `json:"approve"`
	// Reason is what the other person is told.
	Reason string `json:"reason,omitempty" jsonschema:"maxLength=500"`
}

// Decision is a decision that was made.
type Decision struct {
	// Approved reports whether the release may be shipped.
	Approved bool `json:"approved"`
	// By is the person who decided.
	By string `json:"by"`
	// Reason is why.
	Reason string `json:"reason,omitempty"`
}
