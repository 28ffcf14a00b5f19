package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/oauth/releases"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

var billing = releases.Release{Service: "billing", Version: "1.4.2"}

// revisions are those that the tests speak.
var revisions = []string{mcptask.Revision20251125, mcptask.Revision20260728}

// awaitApprovals waits until the open requests, as an approver sees them, are as isWanted wants them.
func awaitApprovals(t *testing.T, approver *releases.ReleasesClient, isWanted func([]releases.Approval) bool) []releases.Approval {
	t.Helper()
	for {
		list, err := approver.ListApprovals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if isWanted(list.Approvals) {
			return list.Approvals
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// openApproval waits until a release of a user's waits for approval, and returns the request as another user sees it.
func openApproval(t *testing.T, approver *releases.ReleasesClient) releases.Approval {
	t.Helper()
	return awaitApprovals(t, approver, func(open []releases.Approval) bool { return len(open) > 0 })[0]
}

// TestSecondPerson ships a release that another person approves. The server is killed, or stopped, before and after the
// decision.
func TestSecondPerson(t *testing.T) {
	t.Parallel()
	for i, revision := range revisions {
		for name, end := range map[string]os.Signal{"killed": os.Kill, "stopped": syscall.SIGTERM} {
			t.Run(revision+" "+name, func(t *testing.T) {
				t.Parallel()
				s := newTestServer(t)
				stop := s.startProcess()
				alice := s.connect(revision, "alice", rights["alice"]...)
				call, err := alice.StartShipRelease(t.Context(), billing)
				if err != nil {
					t.Fatal(err)
				}
				token, ok := call.Token()
				if !ok {
					t.Fatal("the call is no task")
				}
				bob := s.connect(revisions[1-i], "bob", rights["bob"]...) // the revisions share the tasks and the approvals
				request := openApproval(t, bob)
				if request.RequestedBy != "alice" || request.Release != billing || request.Until.IsZero() {
					t.Errorf("the request is %+v", request)
				}
				own := releases.DecideInput{ID: request.ID, Approve: true}
				if _, err := alice.DecideApproval(t.Context(), own); err == nil || !strings.Contains(err.Error(), "another person must decide") {
					t.Errorf("alice approves her own release: %v", err)
				}
				stop(end)

				stop = s.startProcess()
				bob = s.connect(revision, "bob", rights["bob"]...)
				if again := openApproval(t, bob); again != request {
					t.Errorf("the request is %+v after the restart, and was %+v", again, request)
				}
				if _, err := bob.DecideApproval(t.Context(), releases.DecideInput{ID: request.ID, Approve: true}); err != nil {
					t.Error(err)
				}
				stop(end)

				stop = s.startProcess()
				defer stop(syscall.SIGTERM)
				resumed, err := s.connect(revision, "alice", rights["alice"]...).ResumeShipRelease(token)
				if err != nil {
					t.Fatal(err)
				}
				report, err := resumed.Wait(t.Context())
				if want := (releases.ShipReport{Service: "billing", Version: "1.4.2", ApprovedBy: "bob"}); err != nil || report != want {
					t.Errorf("%+v, %v", report, err)
				}
				_, err = s.connect(revision, "bob", rights["bob"]...).DecideApproval(t.Context(), own)
				if err == nil || !strings.Contains(err.Error(), "bob has decided already") {
					t.Errorf("a second decision: %v", err)
				}
				keys := map[string]bool{}
				for len(s.shipped) > 0 { // a run that is killed may have shipped without a record: its key tells
					keys[<-s.shipped] = true
				}
				if len(keys) != 1 {
					t.Errorf("shipped: %v", keys)
				}
			})
		}
	}
}

// TestRefused tells the requestor who has refused, and why.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, revision := range revisions {
		alice, carol := s.connect(revision, "alice", rights["alice"]...), s.connect(revision, "carol", rights["carol"]...)
		call, err := alice.StartShipRelease(t.Context(), billing)
		if err != nil {
			t.Fatal(err)
		}
		in := releases.DecideInput{ID: openApproval(t, carol).ID, Reason: "not on a Friday"}
		if decision, err := carol.DecideApproval(t.Context(), in); err != nil || decision.By != "carol" || decision.Approved {
			t.Errorf("%+v, %v", decision, err)
		}
		if _, err := call.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "billing 1.4.2 was not shipped: carol refused: not on a Friday") {
			t.Error(err)
		}
	}
	if len(s.shipped) != 0 {
		t.Errorf("shipped: %s", <-s.shipped)
	}
}

// TestCancelled withdraws the request of a task that is cancelled.
func TestCancelled(t *testing.T) {
	t.Parallel()
	s := serve(t)
	alice, bob := s.connect(mcptask.Revision20260728, "alice", rights["alice"]...), s.connect(mcptask.Revision20260728, "bob", rights["bob"]...)
	call, err := alice.StartShipRelease(t.Context(), billing)
	if err != nil {
		t.Fatal(err)
	}
	request := openApproval(t, bob)
	if err := call.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitApprovals(t, bob, func(open []releases.Approval) bool { return !slices.Contains(open, request) })
	_, err = bob.DecideApproval(t.Context(), releases.DecideInput{ID: request.ID, Approve: true})
	if err == nil || !strings.Contains(err.Error(), "there is no request") {
		t.Error(err)
	}
}

// TestToolScopes checks that no tool was forgotten, and none has another name.
func TestToolScopes(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, tool := range releases.ReleasesTools(&releaser{}).Tools {
		names[tool.Spec.Name] = true
		if !slices.Contains(toolScopes[tool.Spec.Name], scopeReleases) {
			t.Errorf("%s needs the scopes %q", tool.Spec.Name, toolScopes[tool.Spec.Name])
		}
	}
	if len(names) != len(toolScopes) {
		t.Errorf("the tools are %v, and those with scopes %v", names, toolScopes)
	}
}

// TestRights calls tools without their scopes, and ships a service that the person may not ship.
func TestRights(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, revision := range revisions {
		carol := s.connect(revision, "carol", rights["carol"]...)
		if _, err := carol.ShipRelease(t.Context(), billing); err == nil || !strings.Contains(err.Error(), `the tool "ship_release" may not be called: the token needs the scopes releases releases:ship`) {
			t.Errorf("without the scope: %v", err)
		}
		dave := s.connect(revision, "dave", rights["dave"]...)
		if _, err := dave.ShipRelease(t.Context(), billing); err == nil || !strings.Contains(err.Error(), "dave may not ship billing") {
			t.Errorf("another's service: %v", err)
		}
		if _, err := dave.ListApprovals(t.Context()); err == nil || !strings.Contains(err.Error(), "releases:approve") {
			t.Errorf("without the scope: %v", err)
		}
	}
}

// TestRightTakenAway checks that a right which is taken away while a release waits is gone when another person approves.
func TestRightTakenAway(t *testing.T) {
	t.Parallel()
	s := serve(t)
	call, err := s.connect(mcptask.Revision20251125, "alice", rights["alice"]...).StartShipRelease(t.Context(), billing)
	if err != nil {
		t.Fatal(err)
	}
	bob := s.connect(mcptask.Revision20260728, "bob", rights["bob"]...)
	request := openApproval(t, bob)
	if err := os.WriteFile(filepath.Join(s.dir, "people.json"), []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bob.DecideApproval(t.Context(), releases.DecideInput{ID: request.ID, Approve: true}); err != nil {
		t.Error(err)
	}
	if _, err := call.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "alice may not ship billing") {
		t.Error(err)
	}
	if len(s.shipped) != 0 {
		t.Errorf("shipped: %s", <-s.shipped)
	}
}

// TestManyRequests checks that the many requests of one person do not hide that of another.
func TestManyRequests(t *testing.T) {
	t.Parallel()
	a, err := openApprovals(t.Context(), filepath.Join(t.TempDir(), "approvals.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	until := time.Now().Add(time.Hour)
	for i := range 120 {
		if err := a.request(t.Context(), releases.Approval{ID: "alice-" + strconv.Itoa(i), RequestedBy: "alice", Release: billing, Until: until}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.request(t.Context(), releases.Approval{ID: "carol-0", RequestedBy: "carol", Release: billing, Until: until}); err != nil {
		t.Fatal(err)
	}
	open, err := a.open(t.Context(), "bob")
	if err != nil || len(open) != 100 || open[0].ID != "alice-0" || open[1].ID != "carol-0" || open[2].ID != "alice-1" {
		t.Errorf("%v, %d requests: %v", err, len(open), open)
	}
}
