package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"

	"github.com/mcptaskgen/mcptaskgen/examples/oauth/releases"
)

// The scopes of tokens. Every tool needs scopeReleases.
const (
	scopeReleases = "releases"
	scopeShip     = "releases:ship"
	scopeApprove  = "releases:approve"
)

// toolScopes are the scopes of the tools.
var toolScopes = map[string][]string{
	"ship_release":    {scopeReleases, scopeShip},
	"list_approvals":  {scopeReleases, scopeApprove},
	"decide_approval": {scopeReleases, scopeApprove},
}

// directory is a file that says what each principal may do, such as {"alice": {"services": ["billing"]}}. It is read each
// time, because rights change while a release waits.
type directory string

// person is the principal of a run.
type person struct {
	name      string
	directory directory
}

type personKey struct{}

// addPerson is the option Context of the server: it adds the principal to the context of each run. The run may be days
// after the call, and on another machine.
func (d directory) addPerson(ctx context.Context, principal string) (context.Context, error) {
	return context.WithValue(ctx, personKey{}, person{principal, d}), nil
}

// checkShip returns an error if the person of a run may not ship a service now.
func checkShip(ctx context.Context, service string) error {
	p, _ := ctx.Value(personKey{}).(person)
	data, err := os.ReadFile(string(p.directory))
	if err != nil {
		return err
	}
	var rights map[string]struct {
		Services []string `json:"services"`
	}
	if err := json.Unmarshal(data, &rights); err != nil {
		return fmt.Errorf("%s: %w", p.directory, err)
	}
	if !slices.Contains(rights[p.name].Services, service) {
		return fmt.Errorf("%s may not ship %s", p.name, service)
	}
	return nil
}

// releaser implements releases.Releases.
type releaser struct {
	approvals *approvals
	// ship ships a release. The key is the same in each run of a task, so that a second run ships nothing twice.
	ship func(ctx context.Context, key string, r releases.Release) error
}

// ShipRelease implements releases.Releases.
func (r *releaser) ShipRelease(ctx context.Context, task *mcptask.Task, in releases.Release) (releases.ShipReport, error) {
	if err := checkShip(ctx, in.Service); err != nil {
		return releases.ShipReport{}, err
	}
	decision, err := mcptask.Step(ctx, task, "approval", func(ctx context.Context) (releases.Decision, error) {
		return r.awaitApproval(ctx, task, in)
	})
	if err != nil {
		return releases.ShipReport{}, err
	}
	if !decision.Approved {
		return releases.ShipReport{}, fmt.Errorf("%s %s was not shipped: %s refused: %s", in.Service, in.Version, decision.By, decision.Reason)
	}
	if err := checkShip(ctx, in.Service); err != nil { // days may have passed
		return releases.ShipReport{}, err
	}
	task.Message(ctx, "shipping; approved by "+decision.By)
	if err := r.ship(ctx, mcptask.StepKey(task, "ship"), in); err != nil {
		return releases.ShipReport{}, err
	}
	return releases.ShipReport{Service: in.Service, Version: in.Version, ApprovedBy: decision.By}, nil
}

// awaitApproval asks another person, and waits for the decision without a slot.
func (r *releaser) awaitApproval(ctx context.Context, task *mcptask.Task, in releases.Release) (decision releases.Decision, err error) {
	id := mcptask.StepKey(task, "approval") // the same in every run
	request := releases.Approval{ID: id, RequestedBy: task.Principal(), Release: in}
	request.Until, _ = ctx.Deadline() // the ttl's end: no server may be there to withdraw the request
	if err := r.approvals.request(ctx, request); err != nil {
		return decision, err
	}
	task.Message(ctx, "waiting for the approval of another person")
	err = task.WithoutSlot(ctx, func(ctx context.Context) error {
		decision, err = r.approvals.await(ctx, id)
		return err
	})
	if err != nil && !task.Interrupted(ctx) { // the task is over, so the request is too
		withdrawing, end := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer end()
		_ = r.approvals.withdraw(withdrawing, id) // otherwise it expires
	}
	return decision, err
}

// ListApprovals implements releases.Releases.
func (r *releaser) ListApprovals(ctx context.Context, task *mcptask.Task) (releases.ApprovalList, error) {
	open, err := r.approvals.open(ctx, task.Principal())
	return releases.ApprovalList{Approvals: open}, err
}

// DecideApproval implements releases.Releases.
func (r *releaser) DecideApproval(ctx context.Context, task *mcptask.Task, in releases.DecideInput) (releases.Decision, error) {
	decision := releases.Decision{Approved: in.Approve, By: task.Principal(), Reason: in.Reason}
	return decision, r.approvals.decide(ctx, in.ID, decision)
}
